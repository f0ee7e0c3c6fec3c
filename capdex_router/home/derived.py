"""Values derived from packages, kept by key in a SQLite file that can be thrown away."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path


class Derived:
    """Bytes by key, of one `version` of whatever derives them; another version starts empty.

    A damaged file is removed, and everything is derived again: nothing here is worth an error.
    """

    def __init__(self, path: Path, version: str) -> None:
        self._path = path
        self._version = version

    def read(self) -> dict[str, bytes]:
        """Return all values."""
        try:
            with self._open() as database:
                rows = database.execute(
                    "SELECT key, value FROM derived WHERE version = ?", (self._version,)
                )
                return {str(key): bytes(value) for key, value in rows}
        except sqlite3.OperationalError:  # busy, or on a disk that is full
            return {}
        except (sqlite3.DatabaseError, TypeError):
            self._remove()
            return {}

    def write(self, values: Mapping[str, bytes]) -> None:
        """Keep some values; if they cannot be kept, they are derived again when they are needed."""
        with suppress(sqlite3.Error), self._open() as database, database:
            database.executemany(
                "INSERT OR REPLACE INTO derived VALUES (?, ?, ?)",
                [(key, self._version, value) for key, value in values.items()],
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
