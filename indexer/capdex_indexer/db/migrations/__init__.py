"""Migrations of the tables, run by alembic when a writer opens the database.

There is one revision. Databases of capdex before it are refused: index into a new one.
"""

from __future__ import annotations

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection

from capdex_indexer.db.revision import foreign_version


def migrate(connection: Connection) -> None:
    """Bring the tables up to date inside the connection's transaction.

    Raises UsageError FOREIGN_DATABASE for a database of another version of capdex.
    """
    config = Config()
    config.set_main_option("script_location", "capdex_indexer.db:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise foreign_version(str(error)[:200]) from error
