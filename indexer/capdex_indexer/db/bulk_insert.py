"""Insert many rows by each database's fastest way: wide INSERTs on SQLite, COPY on PostgreSQL.

A backfill spends most of its time here, and SQLAlchemy's own inserts take twice as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Table
from sqlalchemy.exc import DBAPIError

from capdex_indexer.projection.event_rows import Row

# Rows per statement on SQLite: a quarter faster than one each, and the GIL is released for a whole
# statement, so the chain is read meanwhile. A statement takes 32 766 values.
ROWS_PER_STATEMENT: Final = (1000, 100, 10, 1)
CHUNK: Final = 500  # values in one IN list, far below every database's limit

T = TypeVar("T")


def chunks(values: Sequence[T]) -> Iterable[Sequence[T]]:
    """Iterate over slices of the values that fit in one IN list."""
    return (values[i : i + CHUNK] for i in range(0, len(values), CHUNK))


def insert_rows(
    connection: Connection, table: Table, rows: Sequence[Row], columns: Sequence[str] = ()
) -> None:
    """Insert rows; see `insert_columns`."""
    insert_columns(connection, table, list(zip(*rows, strict=True)), columns)


def insert_columns(
    connection: Connection,
    table: Table,
    columns: Sequence[Sequence[Any]],
    names: Sequence[str] = (),
    same: Mapping[str, Any] | None = None,
) -> None:
    """Insert rows given by column: the `names`, or else the table's last columns.

    `same` are columns with one value for all rows. Part of the connection's transaction. Raises
    DBAPIError as SQLAlchemy does.
    """
    if not columns or not columns[0]:
        return
    names = names or [column.name for column in table.columns][-len(columns) :]
    same = same or {}
    quoted = ", ".join(f'"{name}"' for name in (*same, *names))
    dialect, driver = connection.dialect, connection.connection.cursor()
    dbapi: Any = dialect.dbapi
    try:
        _insert(dialect.name, driver, f'"{table.name}" ({quoted})', columns, tuple(same.values()))
    except dbapi.Error as error:
        what = f"insert into {table.name}"
        raise DBAPIError.instance(what, None, error, dbapi.Error) from error
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
    for together in ROWS_PER_STATEMENT:
        insert = f"INSERT INTO {into} VALUES {_values(together, len(same), len(columns))}"  # noqa: S608
        while count - done >= together:
            some = values[done * len(columns) : (done + together) * len(columns)]
            driver.execute(insert, [*same, *some])
            done += together


def _bindable(column: Sequence[Any]) -> Sequence[Any]:
    """Convert bytes and bool, for which sqlite3 would first look for an adapter."""
    kinds = {*map(type, column)}
    if kinds == {bytes}:
        return list(map(bytearray, column))
    return list(map(int, column)) if kinds == {bool} else column


@lru_cache(maxsize=64)
def _values(rows: int, same: int, width: int) -> str:
    shared = "".join(f"?{number}, " for number in range(1, same + 1))
    return ", ".join([f"({shared}{', '.join('?' * width)})"] * rows)
