"""Capabilities that were answered lately, for completion: one small file, and never the network.

A line of it is a name and its versions, the newest first.
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

PREFIX: Final = "did:nuwa:cap:"
MAX_NAMES: Final = 500  # what one person works with; read on every TAB
MAX_VERSIONS: Final = 20
MAX_BYTES: Final = 1 << 20
# Strangers name capabilities, and a shell reads this: only what a name and a version may be.
_URI = re.compile(r"(?:did:nuwa:cap:)?([a-z][a-z0-9-]{1,63})@([0-9][0-9A-Za-z.-]{0,63})", re.ASCII)


def remember(uris: Iterable[object]) -> None:
    """Keep the names and versions of exact URIs; anything else is left out, and no error."""
    found = [match for uri in uris if (match := _URI.fullmatch(str(uri)))]
    if not found:
        return
    kept = before = _read()
    for match in found:
        name, version = match.groups()
        versions = [x for x in kept.get(name, []) if x != version]
        others = {key: value for key, value in kept.items() if key != name}
        kept = {name: [version, *versions][:MAX_VERSIONS], **others}
    if kept != before:
        from publisher.files import write_atomically

        newest = list(kept.items())[:MAX_NAMES]
        lines = "".join(f"{name} {' '.join(versions)}\n" for name, versions in newest)
        with suppress(UsageError):  # a read-only home costs completion alone
            write_atomically(_file(), lines.encode("ascii"))


def complete(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    """Names, and after `@` the versions of one, that begin with what was typed."""
    prefix = PREFIX if typed.startswith(PREFIX) else ""
    name, at, _version = typed.removeprefix(prefix).partition("@")
    known = _read()
    words = [f"{name}@{version}" for version in known.get(name, [])] if at else sorted(known)
    return [prefix + word for word in words if (prefix + word).startswith(typed)]


def _file() -> Path:
    return user_directories().cache / "names"


def _read() -> dict[str, list[str]]:
    """What is kept, the newest first; nothing of a file that we did not write."""
    try:
        with _file().open("rb") as file:
            text = file.read(MAX_BYTES).decode("ascii", "replace")
    except OSError:
        return {}
    found = {}
    for line in text.splitlines()[:MAX_NAMES]:
        name, *versions = line.split(" ")
        good = [x for x in versions[:MAX_VERSIONS] if _URI.fullmatch(f"{name}@{x}")]
        if good:
            found[name] = good
    return found
