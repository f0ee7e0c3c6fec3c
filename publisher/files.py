"""Read and write private files (mode 0600), and replace files atomically."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from capdex.errors import Code, Refused, UsageError


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
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
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
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise taken(path) from None
    except OSError as error:
        raise UsageError(
            f"{path} cannot be created", Code.UNREADABLE, why=error.strerror or ""
        ) from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)  # incomplete
        raise


def read_descriptor(descriptor: int, source: str, limit_bytes: int) -> bytes:
    """Read a descriptor to its end, up to a limit; raise UsageError UNREADABLE."""
    data = b""
    try:
        while chunk := os.read(descriptor, limit_bytes + 1 - len(data)):
            data += chunk
            if len(data) > limit_bytes:
                raise unreadable(source, f"it has more than {limit_bytes} bytes")
    except OSError as error:
        raise unreadable(source, error.strerror or "") from None
    return data


def write_atomically(path: Path, data: bytes, *, parents: bool = True) -> None:
    """Replace a file atomically, keeping its mode; raise UsageError UNREADABLE.

    A link stays a link, and its target is replaced. Devices and other special files are refused.
    `parents`: create missing directories.
    """
    target = Path(os.path.realpath(path))
    partial = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        if parents:
            target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode if target.exists() else None
        if mode is not None and not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is not a file")
        with partial.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            partial.chmod(stat.S_IMODE(mode))
        partial.replace(target)
    except OSError as error:
        why, fix = error.strerror or "", "check the path, and that the disk is not full"
        raise UsageError(f"cannot write {path}", Code.UNREADABLE, why, fix) from None
    finally:
        with suppress(OSError):  # it was renamed if all went well
            partial.unlink()


def write_download(path: Path, data: bytes, *, replace: bool) -> None:
    """Create a file; with `replace` put it in place of a regular file of this name.

    A file that has these bytes is left alone. Raises UsageError if the name is taken, or is that of
    a link or a special file: another account may have planted it in a directory that is shared.
    """
    try:
        found = _regular_file(path)
        if found is None:
            _create(path, data)
        elif found.st_size == len(data) and path.read_bytes() == data:
            return
        elif not replace:
            raise UsageError(
                f"{path} exists already",
                why="its contents are not those of the package",
                fix="replace it with --force, or name another file with --output",
            )
        else:
            partial = path.with_name(f".{secrets.token_hex(8)}.part")
            try:
                _create(partial, data)
                partial.chmod(stat.S_IMODE(found.st_mode))
                partial.replace(path)  # replaces a name, and never follows a link
            finally:
                partial.unlink(missing_ok=True)
    except OSError as error:
        why, fix = error.strerror or "", "check the path, and that the disk is not full"
        raise UsageError(f"cannot write {path}", Code.UNREADABLE, why, fix) from None


def _regular_file(path: Path) -> os.stat_result | None:
    """Return the status of a regular file, None if there is nothing; raise UsageError."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise UsageError(
            f"{path} is {'a link' if stat.S_ISLNK(found.st_mode) else 'not a regular file'}",
            Code.UNREADABLE,
            why="a download is written to a regular file only",
            fix="remove it, or name another file with --output",
        )
    return found


def _create(path: Path, data: bytes) -> None:
    """Create a file and write it whole; O_EXCL fails for a link, too."""
    with path.open("xb") as file:
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            path.unlink(missing_ok=True)  # incomplete
            raise


def taken(path: Path) -> UsageError:
    """Return the error for a key file that would be overwritten."""
    return UsageError(
        f"{path} exists already",
        why="a key that is overwritten is lost",
        fix="name another file (--out), or move this one away first",
    )


def unreadable(source: str, why: str) -> UsageError:
    """Return the error for a file or descriptor that cannot be read."""
    return UsageError(f"{source} cannot be read", Code.UNREADABLE, why=why)
