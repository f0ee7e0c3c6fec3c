"""Writing a mirror into a directory: what has changed alone, each file whole or not at all."""

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
from indexer.db import denylist as denial
from indexer.mirror.content import FORMAT, config, count_names, read_files
from indexer.mirror.layout import CONFIG, name_at, path_of
from indexer.query.digest import Digest, read_digest

PARTIAL: Final = ".new-"  # how the name of a file begins that is not whole yet

Report = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Written:
    """What a mirror holds now, and how many files that took; `denied` is what it leaves out."""

    digest: Digest
    names: int
    releases: int
    written: int
    unchanged: int
    removed: int
    denied: int


def write_mirror(
    connection: Connection, directory: Path, *, gateway: str | None, report: Report
) -> Written:
    """Make `directory` a mirror of the index; `report` is told of names done, and of how many.

    Raises UsageError for a directory that holds something else or cannot be written, Unavailable
    before the first block, and while another run writes it.
    """
    digest, denials = read_digest(connection), denial.read(connection)
    total, done, releases, written = count_names(connection), 0, 0, 0
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with _alone(directory):
            stale = _claim(directory)
            for name, body, count in read_files(connection, denials):
                path = path_of(name)
                written += _put(directory / path, body)
                stale.discard(path)
                done, releases = done + 1, releases + count
                report(done, total)
            for path in stale:
                _remove(directory, path)
            # The last one: whoever reads it finds nothing older than it says.
            written += _put(directory / CONFIG, config(digest, denials, gateway))
    except OSError as error:
        raise UsageError(
            f"{directory} cannot be written",
            Code.UNREADABLE,
            why=error.strerror or str(error),
            fix="check that it is a directory of yours and that the disk is not full",
        ) from None
    unchanged = done + 1 - written
    return Written(digest, done, releases, written, unchanged, len(stale), denials.count)


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """One run at a time: one of an older index would undo what another has just written.

    The lock is on the directory itself, for no file of it is to be published.
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
            pass  # a file system without such locks: nobody is kept out
        yield
    finally:
        os.close(descriptor)


def _claim(directory: Path) -> set[str]:
    """See that the directory is empty or a mirror; the files of names in it."""
    if not _is_mirror(directory):
        raise UsageError(
            f"{directory} holds something else than a mirror",
            Code.UNREADABLE,
            why="files of names that are gone would be removed from it",
            fix="name a new or empty directory",
        )
    found = set()
    for file in _files(directory):
        path = file.relative_to(directory).as_posix()
        if name_at(path):
            found.add(path)
        elif file.name.startswith(PARTIAL):
            file.unlink(missing_ok=True)  # of a run that was cut short
    return found


def _is_mirror(directory: Path) -> bool:
    """Whether its config says so; or, where a first run was cut short, all looks like one."""
    with suppress(FileNotFoundError):
        try:
            said = orjson.loads((directory / CONFIG).read_bytes())
        except orjson.JSONDecodeError:
            return False
        return isinstance(said, dict) and said.get("format") == FORMAT
    paths = (file.relative_to(directory).as_posix() for file in _files(directory))
    return all(name_at(path) or path.rpartition("/")[2].startswith(PARTIAL) for path in paths)


def _files(directory: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(directory):  # links to folders are not followed
        for name in names:
            yield Path(folder, name)


def _put(path: Path, body: bytes) -> bool:
    """Write a file unless it holds these bytes; whether that was needed.

    It is not forced to the disk: after a crash of the machine the next run sees what is damaged.
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
    """Remove the file of a name that is gone, and the folders that are empty without it."""
    file = directory / path
    file.unlink(missing_ok=True)
    with suppress(OSError):
        for folder in file.parents:
            if folder == directory:
                return
            folder.rmdir()
