"""Short forms of packages: all that a start, a search and a route need of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Final

import msgspec

from capdex.manifest.prompt import placeholders
from capdex.package import RULES_VERSION, VerifiedPackage
from capdex.uri import PREFIX
from capdex_router.catalog.catalog import MAX_TERMS, Listed, terms_of
from capdex_router.catalog.packages import offered
from capdex_router.home.directory import Home
from capdex_router.model.refs import CapabilityRef

FORMAT: Final = 4  # raised whenever the short forms are made in another way
VERSION: Final = f"{FORMAT}.{RULES_VERSION}"

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(tuple[Listed, ...]).decode


class ShortForms:
    """Short forms (`decode`) by the sha256 (hex) of their packages, in a SQLite file of a home.

    The file can be thrown away: a damaged one is removed, and everything is derived again. Nothing
    here is worth an error. Those of another version of the rules are passed over.
    """

    def __init__(self, home: Home) -> None:
        self._path = home.derived

    def read(self) -> dict[str, bytes]:
        """Return all that are kept."""
        try:
            with self._open() as database:
                rows = database.execute(
                    "SELECT key, value FROM derived WHERE version = ?", (VERSION,)
                )
                return {str(key): bytes(value) for key, value in rows}
        except sqlite3.OperationalError:  # busy, or on a disk that is full
            return {}
        except (sqlite3.DatabaseError, TypeError):
            self._remove()
            return {}

    def add(self, package: VerifiedPackage) -> None:
        """Keep the short form of a package that was verified."""
        self.add_all({package.announcement.sha256.hex(): tuple(short(package))})

    def add_all(self, forms: Mapping[str, tuple[Listed, ...]]) -> None:
        """Keep some short forms; if they cannot be kept, they are derived again when needed."""
        if not forms:
            return
        with suppress(sqlite3.Error), self._open() as database, database:
            database.executemany(
                "INSERT OR REPLACE INTO derived VALUES (?, ?, ?)",
                [(digest, VERSION, _encode(listed)) for digest, listed in forms.items()],
            )

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path, timeout=5.0)) as database:
            database.execute("PRAGMA synchronous = OFF")  # what a power cut damages is made anew
            database.execute(
                "CREATE TABLE IF NOT EXISTS derived"
                " (key TEXT PRIMARY KEY, version TEXT NOT NULL, value BLOB NOT NULL) WITHOUT ROWID"
            )
            yield database

    def _remove(self) -> None:
        for name in (self._path.name, f"{self._path.name}-journal"):
            with suppress(OSError):
                self._path.with_name(name).unlink()


def decode(data: bytes | None) -> tuple[Listed, ...] | None:
    """Return a short form; None if there is none, or it is damaged."""
    try:
        return None if data is None else _decode(data)
    except msgspec.DecodeError:
        return None


def short(package: VerifiedPackage) -> Iterator[Listed]:
    """Yield the short forms of a package: its skill, then its tools."""
    manifest = package.manifest
    uri, version = f"{PREFIX}{manifest.uri.name}", str(manifest.uri.version)
    said = (x.value for x in manifest.triggers if x.type != "regex" and x.model is None)
    words = [*manifest.tags, *said]
    terms = " ".join(words[:MAX_TERMS])
    yield Listed(
        CapabilityRef(uri, version),
        "skill",
        manifest.title,
        manifest.summary or manifest.description,
        manifest.domain,
        terms,
        manifest.triggers,
        manifest.llm_requirements,
        None if manifest.prompt is None else tuple(placeholders(manifest.prompt)),
    )
    for tool in offered(manifest):
        yield Listed(
            CapabilityRef(f"{uri}#{tool.name}", version),
            "tool",
            tool.name,
            tool.description,
            manifest.domain,
            terms_of(tool.parameters),
        )
