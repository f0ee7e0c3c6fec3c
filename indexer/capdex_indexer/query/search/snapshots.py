"""Engines and triggers kept on disk, so that a restart reads them instead of building them again.

Each segment is a file named by its SHA-256, which is never changed; `manifest` lists the segments
of one state with their removed documents, and its last line is a SHA-256 of the lines before it.
A file is complete before its name appears, and the manifest comes last: a process that is killed
leaves the state of before or that of after. Everything is checked when it is read.
"""

from __future__ import annotations

import mmap
import os
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

import msgspec
import numpy as np
from filelock import FileLock, Timeout

from capdex.errors import CapdexError, InvalidInput
from capdex.net.files import replacing
from capdex.routing import stored as stored_triggers
from capdex.routing.segment import Segment
from capdex.routing.triggers import TriggerSet
from capdex.search.engine import Engine
from capdex.search.segments import stored as stored_words
from capdex.search.segments.segment import Mask, WordSegment
from capdex.text.arrays import Chunk, Data
from capdex_indexer.query.search.state import State

MAX_MANIFEST_BYTES: Final = 64 * 1024 * 1024  # a bit for each document
MAX_SEGMENT_BYTES: Final = 8 * 1024**3
_NAME: Final = re.compile(r"[0-9a-f]{64}")
_LEFT: Final = re.compile(r"[0-9a-f]{64}|\.(?:[0-9a-f]{64}|manifest)\.[0-9a-f]{8}")
_S = TypeVar("_S", WordSegment, Segment)
_Written = dict[int, tuple[object, str]]  # by id; the segment keeps it from reuse


class _Stored(msgspec.Struct):
    name: str
    live: str | None  # a bit for each document, base64; None: all are live


class _Manifest(msgspec.Struct):
    revision: int
    index: str  # SHA-256 of the secret of the database
    segments: list[_Stored]
    triggers: list[_Stored]
    encoder: str | None = None


def directory_of(db: str, blocks: Path) -> Path:
    """Return the directory of snapshots: beside a SQLite file, or beside the blocks."""
    if db.startswith("sqlite:///"):
        path = Path(db.removeprefix("sqlite:///"))
        return path.with_name(path.name + ".search")
    return blocks.with_name("search")


class Snapshots:
    """The snapshots in a directory. Of several processes the first one to write goes on writing."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._lock = FileLock(directory / "lock", thread_local=False)  # `close` is another thread's
        self._written: _Written = {}

    def close(self) -> None:
        """Let another process write."""
        self._lock.release()

    def load(self, key: bytes) -> State | None:
        """Return the state that was saved for the database with this secret, None if none was.

        Raises InvalidInput if a file is damaged, OSError if one cannot be read.
        """
        try:
            raw = _read(self.directory / "manifest")
        except FileNotFoundError:
            return None
        body, _, digest = raw.rpartition(b"\n")
        if sha256(body).hexdigest().encode() != digest:
            raise _damaged("the digest of the manifest differs")
        try:
            manifest = msgspec.json.decode(body, type=_Manifest)
        except (msgspec.DecodeError, RecursionError) as error:
            raise _damaged(f"the manifest is invalid: {error}") from None
        if manifest.index != sha256(key).hexdigest():
            return None
        engine = Engine(self._sources(manifest.segments, stored_words.from_bytes))
        triggers = TriggerSet(self._sources(manifest.triggers, stored_triggers.from_bytes))
        return State(engine, triggers, manifest.revision, key, manifest.encoder)

    def lock(self) -> bool:
        """Become the one process that writes here; False while another is it. Raises OSError."""
        self.directory.mkdir(parents=True, exist_ok=True)
        if not self._lock.is_locked:
            try:
                self._lock.acquire(blocking=False)
            except Timeout:
                return False
        return True

    def save(self, state: State) -> None:
        """Save a state; the caller has the lock, or works for who has it. Raises OSError."""
        written: _Written = {}
        parts = [(x.segment, x.live) for x in state.engine.parts]
        segments = self._store(parts, stored_words.to_chunks, written)
        pieces = [(x.segment, x.live) for x in state.triggers.parts]
        triggers = self._store(pieces, stored_triggers.to_chunks, written)
        index = sha256(state.key).hexdigest()
        manifest = _Manifest(state.revision, index, segments, triggers, state.encoder)
        body = msgspec.json.encode(manifest)
        with replacing(self.directory / "manifest") as file:
            file.write(body + b"\n" + sha256(body).hexdigest().encode())
        self._written = written
        kept = {name for _, name in written.values()}
        for path in self.directory.iterdir():
            if path.name not in kept and _LEFT.fullmatch(path.name):
                path.unlink(missing_ok=True)

    def _sources(
        self, kept: Iterable[_Stored], read: Callable[[Data], _S]
    ) -> Iterator[tuple[_S, Mask | None]]:
        for stored in kept:
            if not _NAME.fullmatch(stored.name):
                raise _damaged("a segment has no name of one")
            segment = read(_map(self.directory / stored.name))
            self._written[id(segment)] = segment, stored.name
            yield segment, _live(stored.live, len(segment.names))

    def _store(
        self,
        parts: Iterable[tuple[_S, Mask | None]],
        to_chunks: Callable[[_S], list[Chunk]],
        written: _Written,
    ) -> list[_Stored]:
        stored = []
        for segment, live in parts:
            known = self._written.get(id(segment))
            name = known[1] if known else self._write(to_chunks(segment))
            written[id(segment)] = segment, name
            stored.append(_Stored(name, _bits(live)))
        return stored

    def _write(self, chunks: list[Chunk]) -> str:
        digest = sha256()
        for chunk in chunks:
            digest.update(chunk)
        with replacing(self.directory / digest.hexdigest()) as file:  # one of it may be damaged
            file.writelines(chunks)
        return digest.hexdigest()


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        _bound(file, MAX_MANIFEST_BYTES)
        return file.read()


def _map(path: Path) -> Data:
    """Return a file mapped into memory, of which all readers of the node share one copy."""
    with path.open("rb") as file:
        size = _bound(file, MAX_SEGMENT_BYTES)
        return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if size else b""


def _bound(file: BinaryIO, most: int) -> int:
    size = os.fstat(file.fileno()).st_size
    if size > most:
        raise _damaged(f"{file.name} is larger than {most} bytes")
    return size


def _bits(live: Mask | None) -> str | None:
    return None if live is None else b64encode(np.packbits(live).tobytes()).decode("ascii")


def _live(bits: str | None, documents: int) -> Mask | None:
    if bits is None:
        return None
    try:
        packed = np.frombuffer(b64decode(bits, validate=True), np.uint8)
    except ValueError:
        raise _damaged("the removed documents of a segment are invalid") from None
    if len(packed) != (documents + 7) // 8:
        raise _damaged("the removed documents of a segment are of another one")
    return np.unpackbits(packed, count=documents).astype(np.bool_)


def _damaged(why: str) -> CapdexError:
    return InvalidInput("the snapshot of the search is damaged", why=why, fix="it is built again")
