"""Files that are written as a whole or not at all, and read within a bound."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from capdex.errors import Code, InvalidInput, UsageError


def write_whole(path: Path, data: bytes) -> None:
    """Write a file for its user alone: after a crash the old or the new content is there.

    The new one is sure to be there only after `sync_folder` of its folder.

    Raises UsageError UNREADABLE if it cannot be written; the old content stays.
    """
    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(file, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            new.replace(path)
        except BaseException:
            with suppress(OSError):
                new.unlink()
            raise
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written",
            Code.UNREADABLE,
            why=error.strerror or str(error),
            fix="check that its directory is yours and that the disk is not full",
        ) from None


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_bounded(path: Path, most_bytes: int) -> bytes | None:
    """Return the bytes of a file, None if there is none.

    Raises UsageError UNREADABLE if it cannot be read, InvalidInput TOO_LARGE beyond the bound.
    """
    try:
        with path.open("rb") as file:
            data = file.read(most_bytes + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read", Code.UNREADABLE, why=error.strerror or str(error)
        ) from None
    if len(data) > most_bytes:
        raise InvalidInput(f"{path} has more than {most_bytes} bytes", Code.TOO_LARGE)
    return data


def drop_leftovers(path: Path) -> None:
    """Remove what writers of this file left when they were killed; only its one writer may."""
    for left in path.parent.glob(f".{path.name}.*"):
        with suppress(OSError):
            left.unlink()
