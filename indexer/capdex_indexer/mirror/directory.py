"""Write a mirror into a directory: only changed files, each replaced atomically."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson
from sqlalchemy import Connection

from capdex.errors import Code, Unavailable, UsageError
from capdex.net.files import saying
from capdex_indexer.db.denylist import read_denials
from capdex_indexer.mirror.content import (
    CONFIG,
    FORMAT,
    config,
    count_names,
    name_at,
    path_of,
    read_files,
)
from capdex_indexer.query.digest import Digest, read_digest

PARTIAL: Final = ".new-"  # prefix of files that are not complete yet


@dataclass(frozen=True, slots=True)
class MirrorResult:
    """The content of a mirror, and what the run changed; `denied` counts what it leaves out."""

    digest: Digest
    names: int
    releases: int
    written: int
    unchanged: int
    removed: int
    denied: int


def write_mirror(
    connection: Connection,
    directory: Path,
    *,
    gateway: str | None,
    report: Callable[[int, int], None],
) -> MirrorResult:
    """Make `directory` a mirror of the index; calls `report` with the names done and all names.

    Raises UsageError for a directory that holds something else or cannot be written, Unavailable
    before the first block, and while another run writes it.
    """
    digest, denials = read_digest(connection), read_denials(connection)
    total, done, releases, written = count_names(connection), 0, 0, 0
    fix = "check that it is a directory of yours and that the disk is not full"
    with saying(f"{directory} cannot be written", fix):
        directory.mkdir(parents=True, exist_ok=True)
        with _locked(directory):
            stale = _existing_files(directory)
            for name, body, count in read_files(connection, denials):
                path = path_of(name)
                written += _write_if_changed(directory / path, body)
                stale.discard(path)
                done, releases = done + 1, releases + count
                report(done, total)
            for path in stale:
                _remove(directory, path)
            # Written last, so no file is older than the block that it names.
            written += _write_if_changed(directory / CONFIG, config(digest, denials, gateway))
    unchanged = done + 1 - written
    return MirrorResult(digest, done, releases, written, unchanged, len(stale), denials.count)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Lock the directory against a second run, which could replace files by older ones.

    The lock is on the directory itself because every file in it is published.
    """
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Unavailable(
                f"another run writes the mirror {directory}",
                Code.STALLED,
                fix="wait until it has ended, then try again",
            ) from None
        except OSError:
            pass  # the file system has no such locks: go on without one
        yield
    finally:
        os.close(descriptor)


def _existing_files(directory: Path) -> set[str]:
    """Return the paths of the names' files, and remove partial ones.

    Raises UsageError if the directory is neither empty nor a mirror.
    """
    if not _is_mirror(directory):
        raise UsageError(
            f"{directory} holds something else than a mirror",
            Code.UNREADABLE,
            why="files of names that are gone would be removed from it",
            fix="name a new or empty directory",
        )
    paths = set()
    for file in _files(directory):
        path = file.relative_to(directory).as_posix()
        if name_at(path):
            paths.add(path)
        elif file.name.startswith(PARTIAL):
            file.unlink(missing_ok=True)  # of a run that was cut short
    return paths


def _is_mirror(directory: Path) -> bool:
    """True if the config says so, or if it has only the files of an interrupted first run."""
    with suppress(FileNotFoundError):
        try:
            document = orjson.loads((directory / CONFIG).read_bytes())
        except orjson.JSONDecodeError:
            return False
        return isinstance(document, dict) and document.get("format") == FORMAT
    paths = (file.relative_to(directory).as_posix() for file in _files(directory))
    return all(name_at(path) or path.rpartition("/")[2].startswith(PARTIAL) for path in paths)


def _files(directory: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(directory):  # links to folders are not followed
        for name in names:
            yield Path(folder, name)


def _write_if_changed(path: Path, body: bytes) -> bool:
    """Write a file unless it has this content; True if it was written.

    Without fsync: after a crash of the machine the next run finds and replaces damaged files.
    """
    with suppress(FileNotFoundError):
        if path.stat().st_size == len(body) and path.read_bytes() == body:
            return False
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=PARTIAL)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(body)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
    return True


def _remove(directory: Path, path: str) -> None:
    """Remove the file of a name that is gone, and the folders that become empty."""
    file = directory / path
    file.unlink(missing_ok=True)
    with suppress(OSError):
        for folder in file.parents:
            if folder == directory:
                return
            folder.rmdir()
