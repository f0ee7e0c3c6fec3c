"""Sessions of the protocol revisions up to 2025-11-25: their ids, and the URIs they subscribed to.

A session id is self-contained, so `initialize` stores nothing, and every node answers the calls of
any session. Only subscriptions and ended sessions are kept, a file each, in a directory that all
worker processes of a node share.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import tempfile
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Final
from weakref import finalize

import orjson

from capdex.errors import Code, InvalidInput

MAX_FILES: Final = 1024  # sessions with subscriptions of one node, and as many ended ones
MAX_URIS: Final = 256  # subscriptions of one session
_SPARED: Final = MAX_FILES * 9 // 10  # files left over when the oldest give way
_RANDOM_BYTES: Final = 16
_OWN_BYTES: Final = 8
_CHECK_BYTES: Final = 4
_ID_CHARS: Final = 38  # base64url of the three parts, without padding


@dataclass(frozen=True, slots=True)
class Record:
    """The subscriptions of a session, which was told of all changes up to `revision`."""

    revision: int
    uris: frozenset[str]


class Sessions:
    """The sessions of one node, in a directory that only its own processes may enter.

    Without a directory they are in a new one, which goes with them, at the latest by `close`.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._remove = None
        if directory is None:
            directory = Path(tempfile.mkdtemp(prefix="capdex-sessions-"))
            self._remove = finalize(self, shutil.rmtree, directory, ignore_errors=True)
        self._subscribed, self._ended = directory / "subscribed", directory / "ended"
        directory.mkdir(mode=0o700, exist_ok=True)
        self._key = _read_key(directory)

    def close(self) -> None:
        """Remove the directory, unless it was given."""
        if self._remove is not None:
            self._remove()

    def issue(self) -> str:
        """Return a new session id: visible ASCII, with 128 random bits."""
        random = secrets.token_bytes(_RANDOM_BYTES)
        body = random + _digest(random, self._key, _OWN_BYTES)
        return _text(body + _digest(body, b"", _CHECK_BYTES))

    def knows(self, session: str) -> bool:
        """True for an id that a node has issued, here or elsewhere, and that was not ended here."""
        return _parse(session) is not None and not (self._ended / session).exists()

    def owns(self, session: str) -> bool:
        """True for an id that this node has issued since it started, and that was not ended."""
        body = _parse(session)
        if body is None or (self._ended / session).exists():
            return False
        own = _digest(body[:_RANDOM_BYTES], self._key, _OWN_BYTES)
        return secrets.compare_digest(own, body[_RANDOM_BYTES:])

    def end(self, session: str) -> None:
        """Forget the subscriptions of a session of this node, and refuse its id from now on."""
        _make_room(self._ended)
        (self._ended / session).touch(mode=0o600)
        (self._subscribed / session).unlink(missing_ok=True)

    def read(self, session: str) -> Record | None:
        """Return the subscriptions of a session, or None if it has none."""
        try:
            with (self._subscribed / session).open("rb") as file:
                fcntl.flock(file.fileno(), fcntl.LOCK_SH)
                return _record(file.read())
        except FileNotFoundError:
            return None

    def note(self, session: str, revision: int) -> None:
        """Note that a session is in use, and was told of all changes up to a revision."""
        with suppress(OSError):  # without a free descriptor the note is left out
            self._change(session, lambda record: record and replace(record, revision=revision))

    def subscribe(self, session: str, uri: str, revision: int) -> None:
        """Add a subscription at a revision of the index; raises InvalidInput for too many."""

        def add(record: Record | None) -> Record:
            if record is None:
                return Record(revision, frozenset({uri}))
            if len(record.uris | {uri}) > MAX_URIS:
                raise too_many()
            return replace(record, uris=record.uris | {uri})

        _make_room(self._subscribed)
        (self._subscribed / session).touch(mode=0o600)
        self._change(session, add)

    def unsubscribe(self, session: str, uri: str) -> None:
        """Remove a subscription; nothing happens if there is none."""
        self._change(session, lambda record: record and replace(record, uris=record.uris - {uri}))

    def _change(self, session: str, change: Callable[[Record | None], Record | None]) -> None:
        """Change what is kept of a session, if anything is."""
        with suppress(FileNotFoundError), (self._subscribed / session).open("r+b") as file:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX)  # another worker may change it now
            after = change(_record(file.read()))
            if after is not None:
                file.seek(0)
                file.write(orjson.dumps([after.revision, sorted(after.uris)]))
                file.truncate()


def too_many() -> InvalidInput:
    """Return the error for more subscriptions than one session may have."""
    return InvalidInput(
        f"a client has at most {MAX_URIS} subscriptions",
        Code.TOO_LARGE,
        fix="subscribe to capdex://registry/changes",
    )


def _parse(session: str) -> bytes | None:
    """Return the random part and the node's part of a session id; None if it is not one.

    An id is the name of a file, too: it has one spelling, in letters, digits, `-` and `_`.
    """
    if len(session) != _ID_CHARS or not session.isascii():
        return None
    try:
        whole = urlsafe_b64decode(session + "==")
    except ValueError:
        return None
    body, check = whole[:-_CHECK_BYTES], whole[-_CHECK_BYTES:]
    return body if check == _digest(body, b"", _CHECK_BYTES) and session == _text(whole) else None


def _text(whole: bytes) -> str:
    return urlsafe_b64encode(whole).decode("ascii").rstrip("=")


def _digest(data: bytes, key: bytes, size_bytes: int) -> bytes:
    return blake2b(data, digest_size=size_bytes, key=key, person=b"capdex session").digest()


def _record(data: bytes) -> Record | None:
    if not data:
        return None
    revision, uris = orjson.loads(data)
    return Record(revision, frozenset(uris))


def _make_room(folder: Path) -> None:
    """Remove the files that were not changed for the longest time, if there are too many.

    The folder is made where it is not: a machine may tidy up what is old in its /tmp.
    """
    for place in (folder.parent, folder):
        place.mkdir(mode=0o700, exist_ok=True)
    names = os.listdir(folder)  # noqa: PTH208 - on each call: names alone are fastest
    if len(names) < MAX_FILES:
        return
    ages: list[tuple[float, Path]] = []
    for name in names:
        with suppress(FileNotFoundError):
            ages.append(((folder / name).stat().st_mtime, folder / name))
    for _, path in sorted(ages)[: len(ages) - _SPARED]:
        path.unlink(missing_ok=True)


def _read_key(directory: Path) -> bytes:
    """Return the key of the directory's session ids; the first process makes it."""
    file = directory / "key"
    if not file.exists():
        new = directory / f"key-{os.getpid()}-{secrets.token_hex(4)}"
        new.touch(mode=0o600)
        new.write_bytes(secrets.token_bytes(32))
        with suppress(FileExistsError):
            file.hardlink_to(new)  # fails if another process was faster; a rename would not
        new.unlink()
    return file.read_bytes()
