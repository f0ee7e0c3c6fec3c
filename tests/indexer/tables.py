"""The tables of an index in SQLite, made once for each test process and copied for its tests."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from capdex_indexer.db import engine
from capdex_indexer.db.revision import create_tables


@cache
def tables() -> bytes:
    """A SQLite database that has the tables and no row."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tables.db"
        writer, lock = engine.open_writer(f"sqlite:///{path}")
        with engine.transaction(writer) as connection:
            create_tables(connection)
        writer.dispose()
        if lock is not None:
            lock.release()
        return path.read_bytes()


def with_tables(path: Path) -> str:
    """The URL of a new SQLite database, in which a store finds the tables that it would make."""
    path.write_bytes(tables())
    return f"sqlite:///{path}"
