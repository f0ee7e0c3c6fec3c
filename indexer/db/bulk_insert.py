"""Many rows at once, by each database's shortest way: wide INSERTs on SQLite, COPY on PostgreSQL.

A backfill spends most of its time here, and SQLAlchemy's own way takes twice as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Table
from sqlalchemy.exc import DBAPIError

from indexer.projection.event_rows import Row

# Rows of one statement on SQLite: a quarter faster than one each, and the interpreter's lock is let
# go for all of them at once, so that the chain is read meanwhile. A statement takes 32 766 values.
TOGETHER: Final = (1000, 100, 10, 1)
CHUNK: Final = 500  # values in one IN list, far below every database's limit

T = TypeVar("T")


def chunks(values: Sequence[T]) -> Iterable[Sequence[T]]:
    """The values in pieces that one IN list holds."""
    return (values[i : i + CHUNK] for i in range(0, len(values), CHUNK))


def insert_rows(
    connection: Connection,
    table: Table,
    rows: Sequence[Row],
    columns: Sequence[str] = (),
    same: Mapping[str, Any] | None = None,
) -> None:
    """As `insert_columns`, for rows."""
    insert_columns(connection, table, list(zip(*rows, strict=True)), columns, same)


def insert_columns(
    connection: Connection,
    table: Table,
    columns: Sequence[Sequence[Any]],
    names: Sequence[str] = (),
    same: Mapping[str, Any] | None = None,
) -> None:
    """Insert rows by column: those named, or all, or all but the first, which the database gives.

    `same` are columns in which all rows have one value. Part of the connection's transaction.
    Raises DBAPIError as SQLAlchemy would.
    """
    if not columns or not columns[0]:
        return
    names = names or [column.name for column in table.columns][-len(columns) :]
    same = same or {}
    quoted = ", ".join(f'"{name}"' for name in (*same, *names))
    dialect, driver = connection.dialect, connection.connection.cursor()
    anything: Any = dialect.dbapi
    try:
        _insert(dialect.name, driver, f'"{table.name}" ({quoted})', columns, tuple(same.values()))
    except anything.Error as error:
        what = f"insert into {table.name}"
        raise DBAPIError.instance(what, None, error, anything.Error) from error
    finally:
        driver.close()


def _insert(
    dialect: str, driver: Any, into: str, columns: Sequence[Sequence[Any]], same: Row
) -> None:
    if dialect != "sqlite":
        with driver.copy(f"COPY {into} FROM STDIN") as copy:
            for row in zip(*columns, strict=True):
                copy.write_row(same + row)
        return
    count, done = len(columns[0]), 0
    values: list[Any] = [None] * (len(columns) * count)  # row by row
    for at, column in enumerate(columns):
        values[at :: len(columns)] = _bindable(column)
    for together in TOGETHER:
        insert = f"INSERT INTO {into} VALUES {_values(together, len(same), len(columns))}"  # noqa: S608
        while count - done >= together:
            some = values[done * len(columns) : (done + together) * len(columns)]
            driver.execute(insert, [*same, *some])
            done += together


def _bindable(column: Sequence[Any]) -> Sequence[Any]:
    """The column as sqlite3 binds it at once: of bytes and truth it looks for an adapter first."""
    kinds = {*map(type, column)}
    if kinds == {bytes}:
        return list(map(bytearray, column))
    return list(map(int, column)) if kinds == {bool} else column


@lru_cache(maxsize=64)
def _values(rows: int, same: int, width: int) -> str:
    shared = "".join(f"?{number}, " for number in range(1, same + 1))
    return ", ".join([f"({shared}{', '.join('?' * width)})"] * rows)
