"""What happened on chain to a name, by an account, and in a block."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection

from capdex.json import Json
from capdex_indexer.query import (
    HistoryEvent,
    read_account_history,
    read_block_history,
    read_name_history,
    read_revision,
)
from capdex_service.answers.release import as_of
from capdex_service.queries.reader import Reader


async def name_history(reader: Reader, name: str, before: int | None = None) -> Json:
    """Return the newest events of a name, below a block number if one is given."""
    return await _history(reader, lambda x: read_name_history(x, name, before))


async def account_history(reader: Reader, account: str, before: int | None = None) -> Json:
    """Return the newest events that an account (EIP-55) made, or that name it."""
    return await _history(reader, lambda x: read_account_history(x, account, before))


async def block_history(reader: Reader, number: int) -> Json:
    """Return the events of a block in their order."""
    return await _history(reader, lambda x: read_block_history(x, number))


async def _history(reader: Reader, find: Callable[[Connection], list[HistoryEvent]]) -> Json:
    def read(connection: Connection) -> Json:
        _, position = read_revision(connection)
        return {"events": [x.to_json() for x in find(connection)], "as_of": as_of(position)}

    return await reader.read(read)
