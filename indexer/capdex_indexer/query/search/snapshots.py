"""Engines and triggers kept on disk, so that a restart reads them instead of building them again.

Each segment is a file named by its SHA-256, which is never changed; `manifest` lists the segments
of one state with their removed documents, and its last line is a SHA-256 of the lines before it.
A file is complete before its name appears, and the manifest comes last: a process that is killed
leaves the state of before or that of after. Everything is checked when it is read.
"""

from __future__ import annotations

import os
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final, TypeVar

import msgspec
import numpy as np
from filelock import FileLock, Timeout

from capdex import routing, search
from capdex.errors import CapdexError, InvalidInput
from capdex.net.files import replacing
from capdex.search.segments.segment import Mask
from capdex_indexer.query.search.state import State

MAX_MANIFEST_BYTES: Final = 64 * 1024 * 1024  # a bit for each document
MAX_SEGMENT_BYTES: Final = 8 * 1024**3
_NAME: Final = re.compile(r"[0-9a-f]{64}")
_LEFT: Final = re.compile(r"[0-9a-f]{64}|\.(?:[0-9a-f]{64}|manifest)\.[0-9a-f]{8}")
_S = TypeVar("_S", search.WordSegment, routing.Segment)
_Written = dict[int, tuple[object, str]]  # by id; the segment keeps it from reuse


class _Stored(msgspec.Struct):
    name: str
    live: str | None  # a bit for each document, base64; None: all are live


class _Manifest(msgspec.Struct):
    revision: int
    index: str  # SHA-256 of the secret of the database
    segments: list[_Stored]
    encoder: str | None = None
    triggers: list[_Stored] | None = None  # None: they had not been read


def directory_of(db: str, blocks: Path) -> Path:
    """Return the directory of snapshots: beside a SQLite file, or beside the blocks."""
    if db.startswith("sqlite:///"):
        path = Path(db.removeprefix("sqlite:///"))
        return path.with_name(path.name + ".search")
    return blocks.with_name("search")


class Snapshots:
    """The snapshots in a directory. Of several processes the first one to write goes on writing."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
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
            raw = _read(self._directory / "manifest", MAX_MANIFEST_BYTES)
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
        engine = search.Engine(self._sources(manifest.segments, search.from_bytes))
        triggers = None
        if manifest.triggers is not None:
            sources = self._sources(manifest.triggers, routing.from_bytes)
            triggers = routing.TriggerSet(sources)
        return State(engine, manifest.revision, key, manifest.encoder, triggers)

    def save(self, state: State) -> bool:
        """Save a state; returns False while another process writes here. Raises OSError."""
        self._directory.mkdir(parents=True, exist_ok=True)
        if not self._lock.is_locked:
            try:
                self._lock.acquire(blocking=False)
            except Timeout:
                return False
        written: _Written = {}
        parts = [(x.segment, x.live) for x in state.engine.parts]
        segments = self._store(parts, search.to_bytes, written)
        triggers = None
        if state.triggers is not None:
            pieces = [(x.segment, x.live) for x in state.triggers.parts]
            triggers = self._store(pieces, routing.to_bytes, written)
        index = sha256(state.key).hexdigest()
        manifest = _Manifest(state.revision, index, segments, state.encoder, triggers)
        body = msgspec.json.encode(manifest)
        _replace(self._directory / "manifest", body + b"\n" + sha256(body).hexdigest().encode())
        self._written = written
        kept = {name for _, name in written.values()}
        for path in self._directory.iterdir():
            if path.name not in kept and _LEFT.fullmatch(path.name):
                path.unlink(missing_ok=True)
        return True

    def _sources(
        self, kept: Iterable[_Stored], read: Callable[[bytes], _S]
    ) -> Iterator[tuple[_S, Mask | None]]:
        for stored in kept:
            if not _NAME.fullmatch(stored.name):
                raise _damaged("a segment has no name of one")
            segment = read(_read(self._directory / stored.name, MAX_SEGMENT_BYTES))
            self._written[id(segment)] = segment, stored.name
            yield segment, _live(stored.live, len(segment.names))

    def _store(
        self,
        parts: Iterable[tuple[_S, Mask | None]],
        to_bytes: Callable[[_S], bytes],
        written: _Written,
    ) -> list[_Stored]:
        stored = []
        for segment, live in parts:
            known = self._written.get(id(segment))
            name = known[1] if known else self._write(to_bytes(segment))
            written[id(segment)] = segment, name
            stored.append(_Stored(name, _bits(live)))
        return stored

    def _write(self, data: bytes) -> str:
        name = sha256(data).hexdigest()
        _replace(self._directory / name, data)  # a damaged one may have this name
        return name


def _read(path: Path, most: int) -> bytes:
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size > most:
            raise _damaged(f"{path.name} is larger than {most} bytes")
        return file.read()


def _replace(path: Path, data: bytes) -> None:
    with replacing(path) as file:
        file.write(data)


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
