"""Cache of exact URIs for shell completion: one small file, the newest URI first, no network."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import click

from capdex.errors import UsageError
from capdex_cli.config.settings import user_directories

PREFIX: Final = "did:nuwa:cap:"  # not imported: completion must start fast
MAX_URIS: Final = 2000  # enough for one person; read on every TAB
MAX_BYTES: Final = 1 << 20
# The shell reads these words, and publishers choose them: only characters of names and versions.
_URI = re.compile(r"(?:did:nuwa:cap:)?([a-z][a-z0-9-]{1,63}@[0-9][0-9A-Za-z.-]{0,63})", re.ASCII)


def remember(uris: Iterable[object]) -> None:
    """Add exact URIs to the cache; ignore everything else."""
    new = [match[1] for uri in uris if (match := _URI.fullmatch(str(uri)))]
    before = _read()
    if set(new) - set(before):
        from capdex.net.files import write_atomically

        newest = list(dict.fromkeys([*reversed(new), *before]))[:MAX_URIS]
        lines = "".join(f"{uri}\n" for uri in newest)
        with suppress(UsageError):  # without a writable cache only completion is missing
            write_atomically(_file(), lines.encode("ascii"))


def complete(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    """Return the names, and after `@` the versions of one, that begin with `typed`."""
    prefix = PREFIX if typed.startswith(PREFIX) else ""
    words = _read()
    if "@" not in typed:
        words = sorted({uri.partition("@")[0] for uri in words})
    return [prefix + word for word in words if (prefix + word).startswith(typed)]


def _file() -> Path:
    return user_directories().cache / "names"


def _read() -> list[str]:
    """Return the URIs, the newest first; skip lines that are not ours."""
    try:
        with _file().open("rb") as file:
            lines = file.read(MAX_BYTES).decode("ascii", "replace").splitlines()
    except (OSError, RuntimeError):  # RuntimeError: no home directory is known
        return []
    return [match[1] for line in lines[:MAX_URIS] if (match := _URI.fullmatch(line))]
