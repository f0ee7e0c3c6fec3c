"""The base of all tables, column types, shared keys, and the conditions of partial indexes.

SQLite uses a partial index only where the query repeats its condition word for word, so each
condition is written here once, for the tables and for the queries. They are texts because
SQLAlchemy writes " = 1" behind a column that it knows to be Boolean.
"""

from __future__ import annotations

import json
import re
from enum import IntEnum
from typing import Any, ClassVar, Final

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Text,
    TextClause,
    event,
    literal_column,
    text,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import declared_attr
from sqlalchemy.types import TypeDecorator
from sqlmodel import SQLModel
from typing_extensions import override

# SQLite generates row ids for INTEGER columns only; PostgreSQL needs BIGINT for 64 bits.
BIG: Final = BigInteger().with_variant(Integer(), "sqlite")
# Ordered by code point everywhere: PostgreSQL's locale must not decide which version is higher.
PLAIN: Final = Text().with_variant(Text(collation="C"), "postgresql")

STANDS: Final[ColumnElement[Any]] = literal_column("release.stands")
NOT_YANKED: Final = text("NOT release.yanked")
JUDGED: Final = text("release.verdict IS NOT NULL")
REJECTED: Final = text("release.verdict <> 'verified'")
PENDING: Final = text("release.availability = 'pending'")
PARKED: Final = text("release.availability = 'parked'")
# The lanes of the queue: Lane.NEW, Lane.RETRY and Lane.AGAIN.
NEW: Final = text("release.availability = 'pending' AND release.due_at = 0")
RETRIED: Final = text(
    "release.availability = 'pending' AND release.due_at > 0 AND release.verdict IS NULL"
)
JUDGED_AGAIN: Final = text(
    "release.availability = 'pending' AND release.due_at > 0 AND release.verdict IS NOT NULL"
)


class IndexTable(SQLModel):
    """Base of all tables: their metadata, and the names of tables and of constraints."""

    metadata: ClassVar[MetaData] = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )

    @declared_attr.directive
    def __tablename__(cls) -> str:  # noqa: N805 - it is of the class
        """The name of the class without Row: `name_change` of NameChangeRow."""
        return re.sub("(?<=[a-z])(?=[A-Z])", "_", cls.__name__.removesuffix("Row")).lower()


class Lane(IntEnum):
    """The lane of a queued release; lower numbers go first."""

    NEW = 0  # waits for its first try
    RETRY = 1  # waits for another try: its bytes were not found, or it was parked
    AGAIN = 2  # is judged again by newer rules, while its verdict stands


class Json(TypeDecorator[Any]):
    """A column of JSON text; reading it gives the parsed value, writing takes the text."""

    impl = Text
    cache_ok = True

    @override
    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        """Parse the stored text."""
        return None if value is None else json.loads(value)


def release_key(**options: Any) -> Any:
    """Foreign key to the release that a row describes; deleting the release deletes the row."""
    return Column(BIG, ForeignKey("release.id", ondelete="CASCADE"), **options)


def event_key(**options: Any) -> Any:
    """Foreign key to the event that caused a row; deleting the event deletes the row."""
    return Column(BIG, ForeignKey("event.sequence", ondelete="CASCADE"), **options)


def deployment_key() -> Any:
    """Foreign key to the deployment that a row belongs to: (the first part of) its primary key."""
    return Column(ForeignKey("deployment.id"), primary_key=True, autoincrement=False)


def partial_index(
    name: str, *columns: str, where: ColumnElement[Any] | TextClause, unique: bool = False
) -> Index:
    """An index of the rows that fulfil a condition.

    It gets the condition when it is made, for the database in use: to name a dialect here would
    load it, and PostgreSQL's takes 3 MB.
    """
    index = Index(name, *columns, unique=unique)

    @event.listens_for(index, "before_create")
    def _(_: Index, connection: Connection, **__: Any) -> None:
        index.dialect_kwargs[f"{connection.dialect.name}_where"] = where

    return index
