"""Secrets: a value that is never printed, and the sources of passphrases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn

from typing_extensions import override

from capdex.errors import Refused
from capdex.net.files import read_descriptor, read_private_file, unreadable

MAX_SECRET_BYTES: Final = 4096  # a passphrase, not a file that was named by mistake


class Secret:
    """Text that is printed, logged and represented as `Secret(…)`; only `reveal` returns it."""

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
    *, fd: int | None = None, file: Path | None = None, prompt: Callable[[], str] | None = None
) -> Secret:
    """Read the passphrase from an open descriptor, else a private file, else a prompt.

    One trailing line end is not part of it. Raises UsageError UNREADABLE, Refused KEY_EXPOSED for
    a file that others can read, and Refused NO_CONSENT when there is no way to get one.
    """
    if fd is not None:
        return read_secret(fd)
    if file is not None:
        return secret_of(read_private_file(file, MAX_SECRET_BYTES), str(file))
    if prompt is not None:
        return Secret(prompt())
    raise Refused(
        "no passphrase was given, and no question can be asked",
        fix="use --passphrase-file FILE or --passphrase-fd N",
    )


def read_secret(fd: int) -> Secret:
    """Read a secret of one line from an open descriptor; raises UsageError UNREADABLE."""
    source = f"file descriptor {fd}"
    return secret_of(read_descriptor(fd, source, MAX_SECRET_BYTES), source)


def secret_of(raw: bytes, source: str) -> Secret:
    """Return the secret without one trailing line end; raises UsageError UNREADABLE."""
    if len(raw) > MAX_SECRET_BYTES:
        raise unreadable(source, f"it has more than {MAX_SECRET_BYTES} bytes")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise unreadable(source, "a secret is UTF-8 text") from None
    return Secret(text.removesuffix("\n").removesuffix("\r"))
