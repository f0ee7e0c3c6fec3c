"""Adding the router to a host's configuration: the new text of one file, and how it is written."""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal

from capdex.errors import InvalidInput, Refused
from capdex.net.files import creating, read_bounded, replacing, saying
from capdex_router.faces.hosts import jsonc, toml, yaml
from capdex_router.faces.hosts.table import Host

NAME: Final = "capdex"  # of the router among a host's servers
CORRECT: Final = "correct the file, then run this again"
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


def adding(host: Host, file: Path, entry: Mapping[str, Any], owned: Collection[str] = ()) -> Edit:
    """Return the edit that makes `entry` the router's.

    Other keys in an entry of it stay, and variables of its environment that are not `owned`.
    Raises InvalidInput with line and column if the file is broken, UsageError if it cannot be read.
    """
    before, text = _read(file)
    known = _servers(host, file, text).get(NAME)
    wanted = host.shape(entry)
    path = (host.key, NAME)
    changes: dict[tuple[str, ...], Any] = {path: wanted}
    if isinstance(known, dict):
        for key, value in wanted.items():
            if isinstance(value, dict) and isinstance(known.get(key), dict):
                kept = {name: was for name, was in known[key].items() if name not in owned}
                wanted[key] = {**kept, **value}
        changes = {(*path, k): v for k, v in wanted.items() if known.get(k) != v}
        wanted = {**known, **wanted}
    after = _edited(host, file, text, changes, wanted)
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
    after = _edited(host, file, text, {(host.key, NAME): None}, None)
    return Edit(file, "removed", before, after.encode(), known)


def write(edit: Edit, backups: Path, *, private: bool = False) -> Path | None:
    """Write an edit, after a copy of the file as it was; return the copy's path.

    A new file is for its user alone if it is `private`: a URL in it may have a key of a provider.
    Raises Refused if the file changed meanwhile, UsageError if it cannot be written.
    """
    file = edit.file.resolve()  # a link of the user's stays one
    copy = None
    fix = "see who owns it, its mode, and that the disk is not full, then run this again"
    with saying(f"{file} cannot be used", fix):
        now = file.read_bytes() if file.exists() else None
        if now != edit.before:
            raise Refused(f"{file} changed meanwhile", fix="run the command again")
        if now is not None:
            backups.mkdir(mode=0o700, parents=True, exist_ok=True)
            at = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
            copy = backups / f"{at}-{secrets.token_hex(2)}-{file.name.lstrip('.')}"
            with creating(copy, 0o600) as stream:
                stream.write(now)
        file.parent.mkdir(parents=True, exist_ok=True)
        made = 0o600 if private else None
        with replacing(file, made if now is None else file.stat().st_mode & 0o777) as stream:
            stream.write(edit.after)
    return copy


def _form(file: Path) -> ModuleType:
    return {".toml": toml, ".yaml": yaml}.get(file.suffix, jsonc)


def _read(file: Path) -> tuple[bytes | None, str]:
    """Return the bytes of a file, None if there is none, and a text to edit."""
    before = read_bounded(file, MAX_FILE_BYTES)
    try:
        text = (before or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{file} is not UTF-8", why=f"at byte {error.start}", fix=CORRECT
        ) from None
    return before, text if text.strip() or _form(file) is not jsonc else "{}\n"


def _values(file: Path, text: str) -> dict[str, Any]:
    try:
        values = _form(file).read(text)
    except InvalidInput as error:
        raise InvalidInput(f"{file} cannot be read", why=error.why, fix=CORRECT) from None
    if not isinstance(values, dict):
        raise InvalidInput(f"{file} holds no object", fix=CORRECT)
    return values


def _servers(host: Host, file: Path, text: str) -> dict[str, Any]:
    servers = _values(file, text).get(host.key, {})
    if servers is None and _form(file) is yaml:
        return {}
    if not isinstance(servers, dict):
        raise InvalidInput(f"{host.key} in {file} holds no servers", fix=CORRECT)
    return servers


def _edited(
    host: Host, file: Path, text: str, changes: Mapping[tuple[str, ...], Any], entry: object
) -> str:
    """Return a text after changes by path, which make the router's entry, or take it out for None.

    Raises InvalidInput, which says what to write by hand, if anything else would change.
    """
    expected, form, after = _values(file, text), _form(file), text
    servers = dict(expected.pop(host.key, None) or {})
    servers.pop(NAME, None)
    if entry is not None:
        servers[NAME] = entry
    with suppress(InvalidInput):
        for path, value in changes.items():
            after = form.remove(after, path) if entry is None else form.put(after, path, value)
        values = _values(file, after)
        if (values.pop(host.key, None) or {}) == servers and values == expected:
            return after
    by_hand = f"take {NAME} out" if entry is None else f"write {_line(file, entry)} into it"
    raise InvalidInput(
        f"{file} cannot be edited without a change to something else",
        fix=f"{by_hand} by hand, under {host.key}",
    )


def _line(file: Path, entry: Any) -> str:
    if _form(file) is toml:
        return f"{NAME} = {toml.line(entry)}"
    return json.dumps({NAME: entry}, ensure_ascii=False)[1:-1]
