"""What happened on chain to a name, by an account, and in a block."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection

from capdex.json import Json
from capdex_indexer.query.history import (
    HistoryEvent,
    read_account_history,
    read_block_history,
    read_name_history,
)
from capdex_indexer.query.pages import read_first_seen
from capdex_indexer.query.status import read_revision
from capdex_service.answers.release import as_of
from capdex_service.queries.reader import Reader


async def name_history(reader: Reader, name: str, before: tuple[int, int] | None = None) -> Json:
    """Return the newest events of a name, below a block and log index if they are given."""
    return await _history(reader, lambda x: read_name_history(x, name, before))


async def account_history(
    reader: Reader, account: str, before: tuple[int, int] | None = None
) -> Json:
    """Return the newest events that an account (EIP-55) made, or that name it."""
    return await _history(reader, lambda x: read_account_history(x, account, before))


async def block_history(reader: Reader, number: int, first: int = 0) -> Json:
    """Return the events of a block from a log index on, in their order."""
    return await _history(reader, lambda x: read_block_history(x, number, first))


async def _history(reader: Reader, find: Callable[[Connection], list[HistoryEvent]]) -> Json:
    """Return events, and of each whether anything is `released` under its name."""

    def read(connection: Connection) -> Json:
        _, position = read_revision(connection)
        found = find(connection)
        known = read_first_seen(connection, {x.name for x in found if x.name})
        events = [x.to_json() | {"released": x.name in known} for x in found]
        return {"events": events, "as_of": as_of(position)}

    return await reader.read(read)
