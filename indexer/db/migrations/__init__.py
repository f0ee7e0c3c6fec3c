"""Migrations of the tables, run by alembic when a writer opens the database.

There is one revision. Databases of capdex before it are refused: index into a new one.
"""

from __future__ import annotations

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection

from capdex.errors import Code, UsageError


def migrate(connection: Connection) -> None:
    """Bring the tables up to date inside the connection's transaction.

    Raises UsageError FOREIGN_DATABASE for a database of another version of capdex.
    """
    config = Config()
    config.set_main_option("script_location", "indexer.db:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise foreign_version(str(error)[:200]) from error


def foreign_version(why: str) -> UsageError:
    """Return the error for a database that another version of capdex has written."""
    return UsageError(
        "the database was written by another version of capdex",
        Code.FOREIGN_DATABASE,
        why=why,
        fix="index into a new database, or run the version of capdex that wrote this one",
    )
