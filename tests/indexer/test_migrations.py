"""The migrations make what the models say, on both databases."""

from __future__ import annotations

from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text

from capdex.errors import Code, UsageError
from indexer.database import open_writer, transaction
from indexer.migrations import migrate
from indexer.models import IndexTable
from indexer.store import Store


def test_models_and_migrations_agree(database_url: str) -> None:
    engine, lock = open_writer(database_url)
    with transaction(engine) as connection:
        migrate(connection)
        migrate(connection)  # once more: nothing to do
    with transaction(engine) as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "compare_type": True,
                "include_name": lambda name, kind, _: (
                    not (kind == "table" and (name or "").startswith("document"))
                ),
            },
        )
        assert compare_metadata(context, IndexTable.metadata) == []
    engine.dispose()
    if lock is not None:
        lock.release()


def test_a_database_of_a_newer_capdex_is_refused(making: Any, database_url: str) -> None:
    Store.open(database_url, making.DEPLOYMENT).close()
    engine, lock = open_writer(database_url)
    with transaction(engine) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    if lock is not None:
        lock.release()
    with pytest.raises(UsageError) as refusal:
        Store.open(database_url, making.DEPLOYMENT)
    assert refusal.value.code is Code.FOREIGN_DATABASE


def test_a_database_of_another_program_is_left_alone(making: Any, database_url: str) -> None:
    engine, lock = open_writer(database_url)
    with transaction(engine) as connection:
        connection.execute(text("CREATE TABLE release (title TEXT)"))
    engine.dispose()
    if lock is not None:
        lock.release()
    with pytest.raises(UsageError) as refusal:
        Store.open(database_url, making.DEPLOYMENT)
    assert refusal.value.code is Code.FOREIGN_DATABASE
    engine, lock = open_writer(database_url)
    with transaction(engine) as connection:
        assert not connection.dialect.has_table(connection, "deployment")
    engine.dispose()
    if lock is not None:
        lock.release()
