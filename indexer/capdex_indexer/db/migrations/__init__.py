"""Migrations of the tables, run by alembic when a writer opens the database.

There is one revision. Databases of capdex before it are refused: index into a new one.
"""

from __future__ import annotations

from sqlalchemy import Connection, inspect, text

from capdex_indexer.db.revision import REVISION, foreign_revision


def migrate(connection: Connection) -> None:
    """Bring the tables up to date inside the connection's transaction.

    Raises UsageError FOREIGN_DATABASE for a database of another version of capdex.
    """
    revision = None
    if inspect(connection).has_table("alembic_version"):
        revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
        if revision == REVISION:  # alembic takes a while to load, and 6 MB
            return
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", "capdex_indexer.db:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise foreign_revision(revision) from error
