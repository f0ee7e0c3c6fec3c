"""Named secrets, each bound to a capability and a host, and the removal of them from texts.

They are kept in the keyring of the desktop if there is a usable one, else in a file with mode 0600.
A secret leaves this module only for the host that it is bound to.
"""

from __future__ import annotations

import re
import threading
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from html import escape
from itertools import count
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from capdex.errors import CapdexError, Code, InvalidInput, Refused, UsageError
from capdex_router.home.shared_file import SharedFile, texts_file

MIN_CHARS: Final = 8  # a shorter text also occurs by chance, and its removal would spoil results
MAX_CHARS: Final = 8192  # longer than what servers take in a header
HIDDEN: Final = "[secret]"
SERVICE: Final = "capdex"

Error = TypeVar("Error", bound=CapdexError)


class Vault(Protocol):
    """Keeps texts by name."""

    def read(self, key: str) -> str | None:
        """Return the text kept under a name."""
        ...

    def write(self, key: str, value: str | None) -> None:
        """Keep a text; None removes it."""
        ...


class Keyring:
    """A vault in the keyring of the desktop."""

    @staticmethod
    def usable() -> bool:
        """Return True if this session has a keyring that keeps what it is given."""
        import keyring
        from keyring.backends import fail, null
        from keyring.errors import KeyringError

        try:
            backend = keyring.get_keyring()
            return not isinstance(backend, fail.Keyring | null.Keyring) and backend.priority > 0
        except (KeyringError, RuntimeError):
            return False

    def read(self, key: str) -> str | None:
        """Return the text kept under a name; raises UsageError UNREADABLE for a locked keyring."""
        import keyring

        with _unlocked():
            return keyring.get_password(SERVICE, key)

    def write(self, key: str, value: str | None) -> None:
        """Keep a text; None removes it."""
        import keyring
        from keyring.errors import PasswordDeleteError

        with _unlocked():
            if value is not None:
                keyring.set_password(SERVICE, key, value)
                return
            with suppress(PasswordDeleteError):
                keyring.delete_password(SERVICE, key)


class SecretFile:
    """A vault in a JSON file that the user alone can read; several processes share it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = texts_file(path, "move it away, and give the secrets again")

    def read(self, key: str) -> str | None:
        """Return the text kept under a name.

        Raises Refused KEY_EXPOSED if others can read the file, UsageError if it is damaged.
        """
        return self._shared().read().get(key)

    def write(self, key: str, value: str | None) -> None:
        """Keep a text; None removes it. The file is replaced at once."""
        new = {} if value is None else {key: value}
        self._shared().change(lambda kept: {x: y for x, y in kept.items() if x != key} | new)

    def _shared(self) -> SharedFile[dict[str, str]]:
        mode = self._path.stat().st_mode if self._path.exists() else 0
        if mode & 0o077:
            raise Refused(
                f"others can read {self._path}",
                Code.KEY_EXPOSED,
                why=f"its mode is {mode & 0o777:03o}",
                fix=f"chmod 600 {self._path}, and change the secrets in it",
            )
        return self._file


class Secrets:
    """The secrets of the router: read at each use, and from then on hidden in what is shown.

    They are in a vault, or with a path in the keyring if it is usable, else in the file there.
    """

    def __init__(self, kept: Vault | Path) -> None:
        self._kept = kept
        self._hidden: set[str] = set()
        self._pattern = re.compile("")
        self._reading = threading.Lock()  # of two at once, one would take the other out again

    @cached_property
    def _vault(self) -> Vault:
        """The vault: looked for at the first secret, since the backends of keyrings are slow."""
        if not isinstance(self._kept, Path):
            return self._kept
        return Keyring() if Keyring.usable() else SecretFile(self._kept)

    def get(self, capability: str, host: str, name: str) -> str:
        """Return the secret that the user bound to the capability and the host.

        Raises Refused UNAUTHENTICATED if there is none.
        """
        value = self._vault.read(_key(capability, host, name))
        if value is None:
            raise Refused(
                f"{capability} needs the secret {name} for {host}",
                Code.UNAUTHENTICATED,
                why="the user has bound no such secret to this capability and host",
                fix=f"the user, not the model, runs: capdex secret {capability} {host} {name}",
                details={"capability": capability, "host": host, "secret": name},
            )
        with self._reading:
            if not self._hidden.issuperset(variants := set(forms(value))):
                self._hidden |= variants
                self._pattern = written(self._hidden)
        return value

    def set(self, capability: str, host: str, name: str, value: str | None) -> None:
        """Bind a secret to a capability and a host; None removes it.

        Raises InvalidInput for a value that is too short to be hidden, or has control characters,
        and NOT_FOUND if there is none to remove.
        """
        key = _key(capability, host, name)
        if value is not None and not (MIN_CHARS <= len(value) <= MAX_CHARS):
            what = f"a secret has {MIN_CHARS} to {MAX_CHARS} characters"
            raise InvalidInput(what, why=f"it has {len(value)}", fix="give the whole of it alone")
        if value is not None and not (value.isascii() and value.isprintable()):
            what = "a secret consists of printable ASCII characters"
            raise InvalidInput(what, fix="give it without line ends and quotation")
        if value is None and self._vault.read(key) is None:
            what = f"{capability} has no secret {name} for {host}, and nothing was removed"
            raise InvalidInput(what, Code.NOT_FOUND, fix="check all three; each host has its own")
        self._vault.write(key, value)

    def redact(self, value: object) -> Any:
        """Return a JSON value, or a text, without any secret that was read in this process."""
        if not self._hidden:
            return value
        if isinstance(value, str):
            return self._pattern.sub(HIDDEN, value)
        if type(value) is int and str(value) in self._hidden:
            return HIDDEN
        if isinstance(value, dict):
            shown: dict[str, Any] = {}
            numbers = count(2)  # of the whole object: many names may be one without their secrets
            for name, item in value.items():
                plain = once = self.redact(name)
                while plain in shown:
                    plain = f"{once} ({next(numbers)})"
                shown[plain] = self.redact(item)
            return shown
        if isinstance(value, list):
            return [self.redact(item) for item in value]
        return value

    def redact_error(self, error: Error) -> Error:
        """Return an error without secrets in its texts."""
        texts = ("message", "why", "fix", "details")
        return replace(error, **{name: self.redact(getattr(error, name)) for name in texts})


def basic(user_and_password: str) -> str:
    """Return the credentials of HTTP Basic authentication (RFC 7617)."""
    return b64encode(user_and_password.encode()).decode()


def forms(value: str) -> Iterator[str]:
    """Yield what a server that gets a secret may repeat: all of it, or its part of a header."""
    _, _, password = value.partition(":")  # of Basic authentication
    _, _, token = value.rpartition(" ")  # behind a scheme such as `Token`
    for text in {value, password, token}:
        if len(text) >= MIN_CHARS:
            yield text
    yield basic(value)


def written(texts: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern of some texts as they are, and as JSON, HTML, a URL or a form writes them.

    Libraries differ in the characters that they escape, and in how.
    """
    longest = sorted(texts, key=len, reverse=True)
    return re.compile("|".join(f"{re.escape(x)}|{''.join(map(_written, x))}" for x in longest))


def _written(char: str) -> str:
    if char.isalnum():
        return char
    code = f"{ord(char):02x}"
    coded = rf"%{code}|\\{{1,3}}u00{code}|&#x0*{code};|&#0*{ord(char)};"
    plus = r"|\+" if char == " " else ""
    # An atomic group: a text of many backslashes would be tried in every way.
    return rf"(?>(?i:{coded})|{re.escape(escape(char))}|\\{{0,3}}{re.escape(char)}{plus})"


def _key(capability: str, host: str, name: str) -> str:
    # None of the parts holds a space, so that no two bindings have one key.
    if any(part.split() != [part] for part in (capability, host, name)):
        what = "a secret is bound to a capability, a host and a name without spaces"
        raise InvalidInput(what, fix="give all three, as capdex secret --help shows")
    return f"{capability} {host.lower()} {name}"


@contextmanager
def _unlocked() -> Iterator[None]:
    from keyring.errors import KeyringError

    try:
        yield
    except (KeyringError, RuntimeError) as error:
        why = type(error).__name__  # a backend's text may hold more than it should
        what = "the keyring cannot be used"
        raise UsageError(what, Code.UNREADABLE, why=why, fix="unlock it") from None
