"""What happened on chain to a name, by an account, and in a block."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection

from capdex.json import Json
from capdex_indexer.query.pages import read_first_seen
from capdex_indexer.query.status import read_revision
from capdex_service.answers.release import as_of


def chain_events(connection: Connection, find: Callable[..., list[Json]], *given: object) -> Json:
    """Return the events that `find` reads, one of the functions of `query.history`.

    Each event says whether anything is `released` under its name.
    """
    _, position = read_revision(connection)
    events = find(connection, *given)
    known = read_first_seen(connection, {x["name"] for x in events if x["name"]})
    told = [x | {"released": x["name"] in known} for x in events]
    return {"events": told, "as_of": as_of(position)}
