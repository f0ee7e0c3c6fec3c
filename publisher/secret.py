"""Secrets: a value that never shows itself, where passphrases come from, and files only we read."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NoReturn

from typing_extensions import override

from capdex.errors import Code, Refused, UsageError

MAX_PASSPHRASE_BYTES: Final = 4096  # a passphrase, not a file that was named by mistake
MAX_KEY_FILE_BYTES: Final = 65_536  # a keystore is about 500 bytes


class Secret:
    """Text that is printed, logged and represented as `Secret(…)`; only `reveal` gives it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself: call it where the secret is used, and keep the result nowhere."""
        return self._text

    @override
    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__

    def __bool__(self) -> bool:
        return bool(self._text)

    @override
    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret does not leave its process")


def read_passphrase(
    *,
    fd: int | None = None,
    file: Path | None = None,
    prompt: Callable[[], str] | None = None,
) -> Secret:
    """The passphrase from an open descriptor, else a private file, else by asking a person.

    One trailing line end is not part of it. Raises UsageError UNREADABLE, Refused KEY_EXPOSED for
    a file that others can read, and Refused NO_CONSENT when there is no way to get one.
    """
    if fd is not None:
        try:
            raw = _read_all(fd, MAX_PASSPHRASE_BYTES)
        except OSError as error:
            raise _unreadable(f"file descriptor {fd}", error.strerror or "") from None
        return _passphrase(raw, f"file descriptor {fd}")
    if file is not None:
        return _passphrase(read_private_file(file, MAX_PASSPHRASE_BYTES), str(file))
    if prompt is not None:
        return Secret(prompt())
    raise Refused(
        "no passphrase was given, and there is nobody to ask",
        fix="use --passphrase-file FILE or --passphrase-fd N",
    )


def read_private_file(path: Path, limit_bytes: int = MAX_KEY_FILE_BYTES) -> bytes:
    """The bytes of a file that nobody but its owner may touch.

    Raises UsageError UNREADABLE, and Refused KEY_EXPOSED when group or others have any access.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise _unreadable(str(path), error.strerror or "") from None
    try:
        # Asked of the open file, not of the path: what is judged is what is read.
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise Refused(
                f"{path} can be read or written by others",
                Code.KEY_EXPOSED,
                why=f"its mode is {mode:04o}; a secret belongs to one account alone",
                fix=f"chmod 600 {path}",
            )
        return _read_all(descriptor, limit_bytes)
    except OSError as error:
        raise _unreadable(str(path), error.strerror or "") from None
    except _TooLong:
        raise _unreadable(str(path), f"it has more than {limit_bytes} bytes") from None
    finally:
        os.close(descriptor)


def write_private_file(path: Path, data: bytes) -> None:
    """Create a file of mode 0600 that did not exist; raises UsageError, and never overwrites."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise UsageError(
            f"{path} exists already",
            why="a key that is overwritten is lost",
            fix="name another file, or move this one away first",
        ) from None
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
        path.unlink(missing_ok=True)  # ours, and not whole
        raise


class _TooLong(OSError):
    """More bytes than the limit."""


def _read_all(descriptor: int, limit_bytes: int) -> bytes:
    data = b""
    while chunk := os.read(descriptor, limit_bytes + 1 - len(data)):
        data += chunk
        if len(data) > limit_bytes:
            raise _TooLong(0, f"it has more than {limit_bytes} bytes")
    return data


def _passphrase(raw: bytes, source: str) -> Secret:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise _unreadable(source, "a passphrase is UTF-8 text") from None
    return Secret(text.removesuffix("\n").removesuffix("\r"))


def _unreadable(source: str, why: str, **details: Any) -> UsageError:
    return UsageError(f"{source} cannot be read", Code.UNREADABLE, why=why, details=details or None)
