"""Files of this user: read within a bound, written whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from capdex.errors import Code, InvalidInput, Refused, UsageError

_CHECK = "check the path, and that the disk is not full"
_REPLACE = "take it back from a copy, or move it away and begin anew"


@contextmanager
def creating(path: Path, mode: int | None = None) -> Iterator[BinaryIO]:
    """Open a file that is not there yet; it is durable after the block, and gone after an error.

    `mode` holds whatever the umask is; without one it is the usual one. Raises OSError.
    """
    new = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC  # O_EXCL fails for a link, too
    with os.fdopen(os.open(path, new, 0o666 if mode is None else mode), "wb") as file:
        try:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            yield file
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            with suppress(OSError):
                path.unlink()
            raise


@contextmanager
def replacing(path: Path, mode: int | None = None) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of `path` after the block, and is gone after an error.

    After a crash the old or the new content is there; the new one is sure to be there only after
    `sync_folder` of its folder. A link is replaced, not followed. `mode` as in `creating`. Raises
    OSError.
    """
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with creating(partial, mode) as file:
        yield file
    try:
        partial.replace(path)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise


@contextmanager
def overwriting(path: Path, own: int | None = None) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of `path`, with its mode or `own`; links are followed.

    Raises UsageError UNREADABLE, also for a device or another special file.
    """
    target = Path(os.path.realpath(path))
    with saying(f"cannot write {path}", _CHECK):
        mode = target.stat().st_mode if target.exists() else None
        if mode is not None and not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is not a file")
        with replacing(target, own if own or mode is None else stat.S_IMODE(mode)) as file:
            yield file


def write_whole(path: Path, data: bytes) -> None:
    """Write a file for its user alone, as `replacing` does; raises UsageError UNREADABLE."""
    with saying(f"cannot write {path}", _CHECK), replacing(path, 0o600) as file:
        file.write(data)


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file as `overwriting` does, with missing directories."""
    with saying(f"cannot write {path}", _CHECK):
        Path(os.path.realpath(path)).parent.mkdir(parents=True, exist_ok=True)
    with overwriting(path) as file:
        file.write(data)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_bounded(path: Path, most_bytes: int) -> bytes | None:
    """Return the bytes of a file, None if there is none.

    Raises UsageError UNREADABLE if it cannot be read or is a device or a pipe, InvalidInput
    TOO_LARGE beyond the bound.
    """
    try:
        # Without O_NONBLOCK a pipe waits for its writer.
        with open(path, "rb", opener=lambda x, flags: os.open(x, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OSError(errno.EINVAL, "it is not a file")
            data = file.read(most_bytes + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unusable(f"{path} cannot be read", error, _REPLACE) from None
    if len(data) > most_bytes:
        message = f"{path} has more than {most_bytes} bytes"
        raise InvalidInput(message, Code.TOO_LARGE, fix=_REPLACE)
    return data


def drop_leftovers(path: Path) -> None:
    """Remove what writers of this file left when they were killed; only its one writer may."""
    for left in path.parent.glob(f".{path.name}.*"):
        with suppress(OSError):
            left.unlink()


def read_private_file(path: Path, limit_bytes: int) -> bytes:
    """Return the bytes of a private file.

    Raises UsageError UNREADABLE, and Refused KEY_EXPOSED if group or others have any access.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise unreadable(str(path), error.strerror or "") from None
    try:
        # The mode of the open file, not of the path: the file that is checked is the one read.
        st_mode = os.fstat(descriptor).st_mode
        mode = stat.S_IMODE(st_mode)
        if stat.S_ISDIR(st_mode):
            raise unreadable(str(path), os.strerror(errno.EISDIR))
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise Refused(
                f"{path} can be read or written by others",
                Code.KEY_EXPOSED,
                why=f"its mode is {mode:04o}; a secret belongs to one account alone",
                fix=f"chmod 600 {path}",
            )
        return read_descriptor(descriptor, str(path), limit_bytes)
    finally:
        os.close(descriptor)


def write_private_file(path: Path, data: bytes) -> None:
    """Create a file of mode 0600; raise UsageError if it exists."""
    with saying(f"cannot write {path}", _CHECK):
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with creating(path, 0o600) as file:
                file.write(data)
        except FileExistsError as error:
            raise taken(Path(error.filename)) from None


def read_descriptor(descriptor: int, source: str, limit_bytes: int) -> bytes:
    """Read a descriptor to its end, up to a limit; raise UsageError UNREADABLE."""
    data = b""
    try:
        while chunk := os.read(descriptor, limit_bytes + 1 - len(data)):
            data += chunk
            if len(data) > limit_bytes:
                raise unreadable(source, f"it has more than {limit_bytes} bytes")
    except OverflowError:
        raise unreadable(source, "no descriptor has so high a number") from None
    except OSError as error:
        raise unreadable(source, error.strerror or "") from None
    return data


def write_download(path: Path, data: bytes, *, replace: bool) -> None:
    """Create a file; with `replace` put it in place of a regular file of this name.

    A file that has these bytes is left alone. Raises UsageError if the name is taken, or is that of
    a link or a special file: another account may have planted it in a directory that is shared.
    """
    with saying(f"cannot write {path}", _CHECK):
        status = _regular_file(path)
        if status is not None and status.st_size == len(data) and path.read_bytes() == data:
            return
        if status is not None and not replace:
            raise UsageError(
                f"{path} exists already",
                why="its contents are not those of the package",
                fix="replace it with --force, or name another file with --output",
            )
        opened = creating(path) if status is None else replacing(path, stat.S_IMODE(status.st_mode))
        with opened as file:
            file.write(data)


def write_folder(path: Path, files: Mapping[str, tuple[bytes, int]]) -> None:
    """Create a folder with files, each bytes and a mode by its path below: all of them or nothing.

    All of it is durable, but for the name of the folder. Raises UsageError if the name is taken by
    something else than an empty folder, and UNREADABLE if it cannot be written.
    """
    partial = path.parent / f".{path.name}.{secrets.token_hex(4)}"
    try:
        for below, (data, mode) in files.items():
            file = partial / below
            file.parent.mkdir(parents=True, exist_ok=True)
            with creating(file, mode) as opened:
                opened.write(data)
        for inside, _, _ in os.walk(partial):
            sync_folder(Path(inside))
        partial.rename(path)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EBUSY):  # . is busy
            why, fix = "it is no empty folder", "name another one, or move this one away first"
            raise UsageError(f"{path} exists already", why=why, fix=fix) from None
        raise unusable(f"cannot write {path}", error, _CHECK) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)  # gone unless something failed


def _regular_file(path: Path) -> os.stat_result | None:
    """Return the status of a regular file, None if there is nothing; raise UsageError."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(
            f"{path} is {'a link' if stat.S_ISLNK(status.st_mode) else 'not a regular file'}",
            Code.UNREADABLE,
            why="a download is written to a regular file only",
            fix="remove it, or name another file with --output",
        )
    return status


def taken(path: Path) -> UsageError:
    """Return the error for a key file that would be overwritten."""
    return UsageError(
        f"{path} exists already",
        why="a key that is overwritten is lost",
        fix="name another file (--out), or move this one away first",
    )


def unreadable(source: str, why: str) -> UsageError:
    """Return the error for a file or descriptor that cannot be read."""
    fix = "check the path, or give another file"
    return UsageError(f"{source} cannot be read", Code.UNREADABLE, why=why, fix=fix)


def unusable(message: str, error: OSError, fix: str = "") -> UsageError:
    """Return the error for a file or directory that the system does not let us use."""
    return UsageError(message, Code.UNREADABLE, why=error.strerror or str(error), fix=fix)


@contextmanager
def saying(message: str, fix: str = "") -> Iterator[None]:
    """Raise UsageError UNREADABLE with a message in place of an OSError."""
    try:
        yield
    except OSError as error:
        raise unusable(message, error, fix) from None
