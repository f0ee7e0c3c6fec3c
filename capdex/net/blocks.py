"""A directory of blocks by CID: what a node keeps and serves, and where `up` publishes."""

from __future__ import annotations

import asyncio
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from capdex.cid import Cid
from capdex.errors import Code, InvalidInput, Unavailable, UsageError
from capdex.unixfs import MAX_BLOCK_BYTES


class BlockDirectory:
    """Blocks as files `<two letters>/<cid>`; written whole or not at all, checked when read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.label = f"dir:{path}"

    def read(self, cid: Cid) -> bytes | None:
        """The block, or None; a file whose bytes do not match its name counts as absent."""
        try:
            with self._file(cid).open("rb") as file:
                data = file.read(MAX_BLOCK_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(self.path, error) from None
        return data if cid.matches(data) else None

    def write(self, data: bytes) -> Cid:
        """Keep a file as one raw block; safe to repeat, from several processes at once too."""
        cid = Cid.of(data)
        self.keep(cid, data)
        return cid

    def keep(self, cid: Cid, data: bytes) -> None:
        """Keep a block of either codec under its CID, whose digest it must have."""
        if not cid.matches(data):
            raise InvalidInput(f"the bytes given are not the block {cid}")
        if len(data) > MAX_BLOCK_BYTES:
            raise InvalidInput(
                f"a block has at most {MAX_BLOCK_BYTES} bytes, this one {len(data)}", Code.TOO_LARGE
            )
        if self.read(cid) is not None:
            return
        target = self._file(cid)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".new-")
            temporary = Path(name)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                temporary.chmod(0o644)
                temporary.replace(target)
            except BaseException:
                with suppress(OSError):
                    temporary.unlink()
                raise
        except OSError as error:
            raise _unreadable(self.path, error) from None

    async def get(self, cid: Cid) -> bytes:
        """The block; raises Unavailable when it is not here."""
        data = await asyncio.to_thread(self.read, cid)
        if data is None:
            raise Unavailable(
                f"{cid} is not in {self.path}",
                Code.IPFS_UNAVAILABLE,
                fix="publish again, or name another source with --ipfs",
            )
        return data

    async def put(self, data: bytes) -> Cid:
        """Keep a block and return its CID."""
        return await asyncio.to_thread(self.write, data)

    async def close(self) -> None:
        """Nothing is held open."""

    def _file(self, cid: Cid) -> Path:
        if cid.version == 0:  # the same block has a name of version 1
            cid = Cid.from_bytes(b"\x01\x70\x12\x20" + cid.digest)
        return self.path / cid.text[-2:] / cid.text


def _unreadable(path: Path, error: OSError) -> UsageError:
    return UsageError(
        f"the block directory {path} cannot be used",
        Code.UNREADABLE,
        why=error.strerror or str(error),
        fix="check that it is writable and that the disk is not full",
    )
