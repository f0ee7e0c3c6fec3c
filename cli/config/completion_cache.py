"""Cache of capability names and versions for shell completion: one small file, no network.

Each line is a name and its versions, the newest first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import click

from capdex.errors import UsageError
from cli.config.directories import user_directories

PREFIX: Final = "did:nuwa:cap:"  # not imported: completion must start fast
MAX_NAMES: Final = 500  # enough for one person; read on every TAB
MAX_VERSIONS: Final = 20
MAX_BYTES: Final = 1 << 20
# The shell reads these words, and publishers choose them: only characters of names and versions.
_URI = re.compile(r"(?:did:nuwa:cap:)?([a-z][a-z0-9-]{1,63})@([0-9][0-9A-Za-z.-]{0,63})", re.ASCII)


def remember(uris: Iterable[object]) -> None:
    """Add the names and versions of exact URIs to the cache; ignore everything else."""
    matches = [match for uri in uris if (match := _URI.fullmatch(str(uri)))]
    if not matches:
        return
    names = before = _read()
    for name, version in (match.groups() for match in matches):
        versions = [version, *(x for x in names.get(name, []) if x != version)]
        others = {key: value for key, value in names.items() if key != name}
        names = {name: versions[:MAX_VERSIONS], **others}
    if names != before:
        from publisher.files import write_atomically

        newest = list(names.items())[:MAX_NAMES]
        lines = "".join(f"{name} {' '.join(versions)}\n" for name, versions in newest)
        with suppress(UsageError):  # without a writable cache only completion is missing
            write_atomically(_file(), lines.encode("ascii"))


def complete(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    """Return the names, and after `@` the versions of one, that begin with `typed`."""
    prefix = PREFIX if typed.startswith(PREFIX) else ""
    name, at, _version = typed.removeprefix(prefix).partition("@")
    names = _read()
    words = [f"{name}@{version}" for version in names.get(name, [])] if at else sorted(names)
    return [prefix + word for word in words if (prefix + word).startswith(typed)]


def _file() -> Path:
    return user_directories().cache / "names"


def _read() -> dict[str, list[str]]:
    """Return the versions by name, the newest name first; skip lines that are not ours."""
    try:
        with _file().open("rb") as file:
            text = file.read(MAX_BYTES).decode("ascii", "replace")
    except OSError:
        return {}
    names = {}
    for line in text.splitlines()[:MAX_NAMES]:
        name, *versions = line.split(" ")
        valid = [x for x in versions[:MAX_VERSIONS] if _URI.fullmatch(f"{name}@{x}")]
        if valid:
            names[name] = valid
    return names
