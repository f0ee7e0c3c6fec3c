"""Many rows at once, by each database's shortest way: wide INSERTs on SQLite, COPY on PostgreSQL.

A backfill spends most of its time here, and SQLAlchemy's own way takes twice as long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Final

from sqlalchemy import Connection, Table
from sqlalchemy.exc import DBAPIError

from indexer.rows import Row

# Rows of one statement on SQLite: a quarter faster than one each, and the interpreter's lock is let
# go for all of them at once, so that the chain is read meanwhile. A statement takes 32 766 values.
TOGETHER: Final = (1000, 100, 10, 1)


def insert_rows(
    connection: Connection,
    table: Table,
    rows: Sequence[Row],
    columns: Sequence[str] = (),
    same: Mapping[str, Any] | None = None,
) -> None:
    """Insert rows of these columns, or of all, or of all but the first, which the database gives.

    `same` are columns in which all rows have one value. Part of the connection's transaction.
    Raises DBAPIError as SQLAlchemy would.
    """
    if not rows:
        return
    same = same or {}
    names = columns or [column.name for column in table.columns][-len(rows[0]) :]
    quoted = ", ".join(f'"{name}"' for name in (*same, *names))
    dialect, driver = connection.dialect, connection.connection.cursor()
    anything: Any = dialect.dbapi
    try:
        _insert(dialect.name, driver, f'"{table.name}" ({quoted})', rows, tuple(same.values()))
    except anything.Error as error:
        what = f"insert into {table.name}"
        raise DBAPIError.instance(what, None, error, anything.Error) from error
    finally:
        driver.close()


def _insert(dialect: str, driver: Any, into: str, rows: Sequence[Row], same: Row) -> None:
    if dialect != "sqlite":
        with driver.copy(f"COPY {into} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(same + row)
        return
    done = 0
    for together in TOGETHER:
        insert = f"INSERT INTO {into} VALUES {_values(together, len(same), len(rows[0]))}"  # noqa: S608
        while len(rows) - done >= together:
            some = rows[done : done + together]
            driver.execute(insert, [*same, *chain.from_iterable(some)])
            done += together


@lru_cache(maxsize=64)
def _values(rows: int, same: int, width: int) -> str:
    shared = "".join(f"?{number}, " for number in range(1, same + 1))
    return ", ".join([f"({shared}{', '.join('?' * width)})"] * rows)
