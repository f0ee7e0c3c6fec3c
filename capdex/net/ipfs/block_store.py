"""A directory of blocks by CID: a node's store of verified packages, and the storage of `up`.

Paths are strings here, because pathlib is too slow for thousands of blocks a second.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Lock
from typing import ClassVar, Final

from capdex.errors import Code, InvalidInput, Unavailable, UsageError
from capdex.ipld.cid import Cid
from capdex.ipld.unixfs import MAX_BLOCK_BYTES, divide
from capdex.net.files import unusable

MANY: Final = 4  # from this many files on, one syncfs() (Linux) instead of one fsync() each

# Unlike a pid: in a container the next process can have the same one.
_NUMBERS = count(time.time_ns())
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


class BlockDirectory:
    """Blocks as files `<two letters>/<cid>`: written atomically, hashed when read.

    `trouble` is why the last new block could not be written; None if it was.
    """

    kind: ClassVar[str] = "dir"

    def __init__(self, path: Path, most_bytes: int = MAX_BLOCK_BYTES) -> None:
        self.path = path
        self._most_bytes = most_bytes  # of a block
        self._folder = os.fspath(path)
        self.label = f"dir:{path}"
        self._lock = Lock()
        self.trouble: UsageError | None = None

    def read(self, cid: Cid) -> bytes | None:
        """Return the block, or None if it is absent or its bytes do not match its CID."""
        try:
            with open(self._file(cid), "rb") as file:
                data = file.read(self._most_bytes + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(self.path, error) from None
        return data if cid.matches(data) else None

    def holds(self, cid: Cid) -> bool:
        """Return True if there is a file for the block, unread; fast enough for an event loop."""
        try:
            os.stat(self._file(cid))
        except OSError:
            return False
        return True

    def write(self, data: bytes) -> Cid:
        """Store a file as one raw block; safe to repeat, also from several processes at once."""
        cid = Cid.of(data)
        self.keep(cid, data)
        return cid

    def keep(self, cid: Cid, data: bytes) -> None:
        """Store a block under its CID; raises InvalidInput if the digest differs."""
        self.keep_many([(cid, data)])

    def keep_many(self, blocks: Collection[tuple[Cid, bytes]]) -> None:
        """Store several blocks; all of them are durable when it returns."""
        with self._lock:  # another call may have written a block that is not durable yet
            self._keep_new({self._file(x): data for x, data in blocks if self._is_new(x, data)})

    def _keep_new(self, new: Mapping[str, bytes]) -> None:
        together = len(new) >= MANY and hasattr(_LIBC, "syncfs")
        written: list[str] = []
        try:
            for target, data in new.items():
                _write(target, data, sync=not together)
                written.append(target)
            if together:
                _sync(self._folder, file_system=True)
            elif new:
                for folder in {self._folder, *map(os.path.dirname, new)}:
                    _sync(folder)
        except OSError as error:
            for target in written:  # they may not be durable: the next call writes them again
                with suppress(OSError):
                    os.unlink(target)
            self.trouble = _unreadable(self.path, error)
            raise self.trouble from None
        if new:
            self.trouble = None

    def remove(self, cid: Cid) -> None:
        """Remove a block, if it is there; raises OSError."""
        with suppress(FileNotFoundError):
            os.unlink(self._file(cid))

    async def get(self, cid: Cid) -> bytes:
        """Return the block; raises Unavailable if it is absent."""
        data = await asyncio.to_thread(self.read, cid)
        if data is None:
            raise Unavailable(
                f"{cid} is not in {self.path}",
                Code.IPFS_UNAVAILABLE,
                fix="publish again, or name another source with --ipfs",
            )
        return data

    async def put(self, data: bytes) -> Cid:
        """Store a file in the blocks of `divide` and return the CID of its root."""
        blocks = divide(data)
        await asyncio.to_thread(self.keep_many, blocks)
        return blocks[0][0]

    async def close(self) -> None:
        """Do nothing: no file stays open."""

    def _is_new(self, cid: Cid, data: bytes) -> bool:
        if not cid.matches(data):
            raise InvalidInput(f"the bytes given are not the block {cid}")
        if len(data) > self._most_bytes:
            raise InvalidInput(
                f"a block has at most {self._most_bytes} bytes, this one {len(data)}",
                Code.TOO_LARGE,
            )
        return not self.holds(cid) or self.read(cid) is None

    def _file(self, cid: Cid) -> str:
        text = cid.v1.text
        return f"{self._folder}/{text[-2:]}/{text}"


def files_of(blocks: BlockDirectory) -> BlockDirectory:
    """Return the directory of the blocks of files that packages name, beside their own blocks."""
    return BlockDirectory(blocks.path / "files")


def _write(target: str, data: bytes, *, sync: bool) -> None:
    """Write one file atomically."""
    folder = os.path.dirname(target)
    temporary = f"{folder}/.new-{os.getpid()}-{next(_NUMBERS)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        descriptor = os.open(temporary, flags, 0o644)
    except FileNotFoundError:
        os.makedirs(folder, exist_ok=True)
        descriptor = os.open(temporary, flags, 0o644)
    try:
        with open(descriptor, "wb", buffering=0) as file:
            if file.write(data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if sync:
                os.fsync(descriptor)
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _sync(folder: str, *, file_system: bool = False) -> None:
    """Make the entries of a folder durable, or all writes to its file system."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if not file_system:
            os.fsync(descriptor)
        elif _LIBC.syncfs(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(descriptor)


def _unreadable(path: Path, error: OSError) -> UsageError:
    fix = "check that it is writable and that the disk is not full"
    return unusable(f"the block directory {path} cannot be used", error, fix)
