"""The revision of the tables: whoever opens those of another version is told so."""

from __future__ import annotations

from typing import Any, Final

from capdex.errors import Code, UsageError

REVISION: Final = "0010"  # the newest in indexer/capdex_indexer/db/migrations/versions


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
        cursor.execute("SELECT version_num FROM alembic_version")
        row = cursor.fetchone()
    except connection.Error:
        row = None
    finally:
        cursor.close()
        connection.rollback()
    if row is not None and row[0] != REVISION:
        raise foreign_revision(row[0])
