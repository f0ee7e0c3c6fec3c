"""A directory of blocks by CID: what a node keeps and serves, and where `up` publishes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import ClassVar, Final

from capdex.cid import Cid
from capdex.errors import Code, InvalidInput, Unavailable, UsageError
from capdex.unixfs import MAX_BLOCK_BYTES

MAX_WRITERS: Final = 16  # files synced at once

_NUMBERS = count()


class BlockDirectory:
    """Blocks as files `<two letters>/<cid>`; written whole or not at all, checked when read."""

    kind: ClassVar[str] = "dir"

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

    def holds(self, cid: Cid) -> bool:
        """Whether there is a file for a block, not read; quick enough for an event loop."""
        try:
            self._file(cid).stat()
        except OSError:
            return False
        return True

    def write(self, data: bytes) -> Cid:
        """Keep a file as one raw block; safe to repeat, from several processes at once too."""
        cid = Cid.of(data)
        self.keep(cid, data)
        return cid

    def keep(self, cid: Cid, data: bytes) -> None:
        """Keep a block of either codec under its CID, whose digest it must have."""
        self.keep_many([(cid, data)])

    def keep_many(self, blocks: Collection[tuple[Cid, bytes]]) -> None:
        """`keep` for several blocks; all of them are durable when it returns."""
        new = {self._file(cid): data for cid, data in blocks if self._is_new(cid, data)}
        try:
            if len(new) < 2:
                folders = {_write(target, data) for target, data in new.items()}
            else:
                # A disk syncs many files in little more time than one, but only if asked at once.
                with ThreadPoolExecutor(min(MAX_WRITERS, len(new))) as writers:
                    folders = set(writers.map(_write, new, new.values()))
            for folder in folders and {*folders, self.path}:
                _sync(folder)
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

    def _is_new(self, cid: Cid, data: bytes) -> bool:
        if not cid.matches(data):
            raise InvalidInput(f"the bytes given are not the block {cid}")
        if len(data) > MAX_BLOCK_BYTES:
            raise InvalidInput(
                f"a block has at most {MAX_BLOCK_BYTES} bytes, this one {len(data)}", Code.TOO_LARGE
            )
        return not self.holds(cid) or self.read(cid) is None

    def _file(self, cid: Cid) -> Path:
        if cid.version == 0:  # the same block has a name of version 1
            cid = Cid.from_bytes(b"\x01\x70\x12\x20" + cid.digest)
        return self.path / cid.text[-2:] / cid.text


def _write(target: Path, data: bytes) -> Path:
    """Write one file, whole or not at all; the folder it is in."""
    folder = target.parent
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".new-{os.getpid()}-{next(_NUMBERS)}"
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    return folder


def _sync(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unreadable(path: Path, error: OSError) -> UsageError:
    return UsageError(
        f"the block directory {path} cannot be used",
        Code.UNREADABLE,
        why=error.strerror or str(error),
        fix="check that it is writable and that the disk is not full",
    )
