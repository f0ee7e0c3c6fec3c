"""The tables of one revision: made in an empty database, refused where they are of another."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Connection, inspect, text

from capdex.errors import Code, UsageError
from capdex_indexer.db.models import DEPLOYMENT

REVISION: Final = "0010"  # changes with the tables; those of 0001 to 0009 cannot be upgraded
# Older versions made their tables with alembic. They look in its table, and refuse newer tables.
_TABLE: Final = (
    "CREATE TABLE alembic_version ( version_num VARCHAR(32) NOT NULL,"
    " CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num) )"
)
_QUERY: Final = "SELECT version_num FROM alembic_version"


def create_tables(connection: Connection) -> None:
    """Make the tables inside the connection's transaction, unless they are there.

    Raises UsageError FOREIGN_DATABASE for those of another version of capdex.
    """
    if inspect(connection).has_table("alembic_version"):
        found = connection.execute(text(_QUERY)).scalar()
        if found != REVISION:
            raise foreign_revision(found)
        return
    DEPLOYMENT.metadata.create_all(connection, checkfirst=False)
    connection.execute(text(_TABLE))
    connection.execute(text("INSERT INTO alembic_version VALUES (:it)"), {"it": REVISION})


def foreign_version(why: str) -> UsageError:
    """Return the error for a database that another version of capdex has written."""
    return UsageError(
        "the database was written by another version of capdex",
        Code.FOREIGN_DATABASE,
        why=why,
        fix="index into a new database, or run the version of capdex that wrote this one",
    )


def foreign_revision(found: object) -> UsageError:
    """Return the error for tables of another revision than REVISION."""
    return foreign_version(f"its tables have revision {str(found)[:32]}, not {REVISION}")


def check_revision(connection: Any, _: Any) -> None:
    """Raise FOREIGN_DATABASE if the tables are of another version; none at all are told later."""
    cursor = connection.cursor()
    try:
        cursor.execute(_QUERY)
        row = cursor.fetchone()
    except connection.Error:
        row = None
    finally:
        cursor.close()
        connection.rollback()
    if row is not None and row[0] != REVISION:
        raise foreign_revision(row[0])
