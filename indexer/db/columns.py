"""The columns that tables are made of: their types on either database, and the keys they share."""

from __future__ import annotations

import json
from typing import Any, Final

from sqlalchemy import BigInteger, Column, ForeignKey, Integer, Text
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator
from typing_extensions import override

# SQLite numbers its rows in INTEGER only; PostgreSQL needs 64 bits to be told.
BIG: Final = BigInteger().with_variant(Integer(), "sqlite")
# Ordered by code point everywhere: PostgreSQL's locale must not decide which version is higher.
PLAIN: Final = Text().with_variant(Text(collation="C"), "postgresql")


class Json(TypeDecorator[Any]):
    """A JSON value, written as the text of `indexer.projection.package_rows.json_text`."""

    impl = Text
    cache_ok = True

    @override
    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        """Read the value back."""
        return None if value is None else json.loads(value)


def release_key(**options: Any) -> Any:
    """The release that a row is about; it goes when that goes."""
    return Column(BIG, ForeignKey("release.id", ondelete="CASCADE"), **options)


def event_key(**options: Any) -> Any:
    """The event that a row follows from; it goes when that goes."""
    return Column(BIG, ForeignKey("event.sequence", ondelete="CASCADE"), **options)


def deployment_key() -> Any:
    """The deployment that a row is of: its key, or the first part of it."""
    return Column(ForeignKey("deployment.id"), primary_key=True, autoincrement=False)
