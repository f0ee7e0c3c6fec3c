"""Adding the router to a host's configuration: the new text of one file, and how it is written."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal

from capdex.errors import Code, InvalidInput, Refused, UsageError
from router.faces.hosts import jsonc, toml
from router.faces.hosts.table import Host

NAME: Final = "capdex"  # of the router among a host's servers
MAX_FILE_BYTES: Final = 32 * 1024 * 1024  # Claude Code keeps its history in the same file

Action = Literal["added", "replaced", "removed", "unchanged"]


@dataclass(frozen=True, slots=True)
class Edit:
    """The change of one file: its bytes now (None if it is not there), and then.

    `known` and `wanted` are the router's entry now and then, None if there is none.
    """

    file: Path
    action: Action
    before: bytes | None
    after: bytes
    known: Any = None
    wanted: Any = None


def adding(host: Host, file: Path, entry: Mapping[str, Any]) -> Edit:
    """Return the edit that makes `entry` the router's; other keys in an entry of it stay.

    Raises InvalidInput with line and column if the file is broken, UsageError if it cannot be read.
    """
    before, text = _read(file)
    known = _servers(host, file, text).get(NAME)
    wanted = {"type": "stdio", **entry} if host.typed else dict(entry)
    form, path, after = _form(file), (host.key, NAME), text
    if not isinstance(known, dict):
        after = form.put(text, path, wanted)
    else:
        wanted = {**known, **wanted}
        for key, value in wanted.items():
            if known.get(key) != value:
                after = form.put(after, (*path, key), value)
    _check(host, file, text, after, wanted)
    if after == text and known is not None:
        return Edit(file, "unchanged", before, before or b"", known, known)
    action: Action = "added" if known is None else "replaced"
    return Edit(file, action, before, after.encode(), known, wanted)


def removing(host: Host, file: Path) -> Edit:
    """Return the edit that takes the router out; raises as `adding`."""
    before, text = _read(file)
    known = _servers(host, file, text).get(NAME)
    if known is None:
        return Edit(file, "unchanged", before, before or b"")
    after = _form(file).remove(text, (host.key, NAME))
    _check(host, file, text, after, None)
    return Edit(file, "removed", before, after.encode(), known)


def write(edit: Edit, backups: Path) -> Path | None:
    """Write an edit, after a copy of the file as it was; return the copy's path.

    Raises Refused if the file changed meanwhile, UsageError if it cannot be written.
    """
    file = edit.file.resolve()  # a link of the user's stays one
    copy = None
    try:
        now = file.read_bytes() if file.exists() else None
        if now != edit.before:
            raise Refused(f"{file} changed meanwhile", fix="run the command again")
        if now is not None:
            backups.mkdir(mode=0o700, parents=True, exist_ok=True)
            at = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
            copy = backups / f"{at}-{secrets.token_hex(2)}-{file.name.lstrip('.')}"
            _create(copy, now, 0o600)
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
        try:
            _create(new, edit.after, 0o666 if now is None else file.stat().st_mode & 0o777)
            new.replace(file)
        except BaseException:
            with suppress(FileNotFoundError):
                new.unlink()
            raise
    except OSError as error:
        raise _unusable(file, error) from None
    return copy


def _form(file: Path) -> ModuleType:
    return toml if file.suffix == ".toml" else jsonc


def _read(file: Path) -> tuple[bytes | None, str]:
    """Return the bytes of a file, None if there is none, and a text to edit."""
    before, text = None, ""
    try:
        with file.open("rb") as stream:
            before = stream.read(MAX_FILE_BYTES + 1)
        text = before.decode("utf-8")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise _unusable(file, error) from None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} is not UTF-8", why=f"at byte {error.start}") from None
    if len(before or b"") > MAX_FILE_BYTES:
        raise InvalidInput(f"{file} is too long", Code.TOO_LARGE)
    return before, text if text.strip() or _form(file) is toml else "{}\n"


def _values(file: Path, text: str) -> dict[str, Any]:
    try:
        found = _form(file).read(text)
    except InvalidInput as error:
        raise InvalidInput(
            f"{file} cannot be read", why=error.why, fix="correct the file, then run this again"
        ) from None
    if not isinstance(found, dict):
        raise InvalidInput(f"{file} holds no object", fix="correct the file, then run this again")
    return found


def _servers(host: Host, file: Path, text: str) -> dict[str, Any]:
    found = _values(file, text).get(host.key, {})
    if not isinstance(found, dict):
        raise InvalidInput(
            f"{host.key} in {file} holds no servers", fix="correct the file, then run this again"
        )
    return found


def _check(host: Host, file: Path, text: str, after: str, entry: Any) -> None:
    """Make sure that an edit changes the router's entry alone; raises InvalidInput."""
    expected, found = _values(file, text), _values(file, after)
    servers = expected.pop(host.key, {})
    servers.pop(NAME, None)
    if entry is not None:
        servers[NAME] = entry
    if found.pop(host.key, {}) != servers or found != expected:
        raise InvalidInput(
            f"{file} cannot be edited without a change to something else",
            fix=f"write the server {NAME!r} into it by hand",
        )


def _create(path: Path, data: bytes, mode: int) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as stream:
        if mode != 0o666:  # the mode of a file that was there, whatever the umask is
            os.fchmod(stream.fileno(), mode)
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _unusable(file: Path, error: OSError) -> UsageError:
    return UsageError(f"{file} cannot be used", Code.UNREADABLE, why=error.strerror or str(error))
