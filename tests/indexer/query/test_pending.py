"""The queue as people look at it, on both databases."""

from __future__ import annotations

from typing import Any

import pytest

from capdex.errors import InvalidInput
from capdex.problems import Availability, Reason
from capdex_indexer.db.engine import open_reader, transaction
from capdex_indexer.query.pending import QueuePage, read_queue
from capdex_indexer.store import Delay, Lane, Store


def read(url: str, **options: Any) -> QueuePage:
    engine = open_reader(url)
    try:
        with transaction(engine) as connection:
            return read_queue(connection, **options)
    finally:
        engine.dispose()


def test_what_waits_is_read_page_by_page_whatever_its_state(
    making: Any, store: Store, chain: Any, database_url: str
) -> None:
    chain.mine(*(chain.release("note", f"1.0.{n}") for n in range(7)))
    making.append(store, chain)
    jobs = store.due(0.0, 9)
    making.fetch(store, chain, 1)
    store.delay_many([Delay(jobs[1].release_id, "too long", reason=Reason.WORKER_LIMIT)])
    store.delay_many([Delay(jobs[2].release_id, "nobody had it", 50.0)])
    releases: list[Any] = []
    cursor: str | None = None
    while True:
        page = read(database_url, limit=2, cursor=cursor)
        assert page.totals == {Availability.PENDING: 5, Availability.PARKED: 1}
        releases += page.releases
        cursor = page.next_cursor
        if cursor is None:
            break
    assert [x.cap_uri[-1] for x in releases] == ["1", "2", "3", "4", "5", "6"]
    parked, late, new, *_ = releases
    assert (parked.state, parked.reason, parked.lane) == ("parked", "WORKER_LIMIT", None)
    assert (late.lane, late.due_at, late.attempts) == (Lane.RETRY, 50.0, 1)
    assert (late.error, new.lane, new.due_at) == ("nobody had it", Lane.NEW, 0.0)
    assert read(database_url, name="other").totals == {"pending": 0, "parked": 0}
    only = read(database_url, states=[Availability.PARKED], name="note")
    assert [x.cap_uri for x in only.releases] == [parked.cap_uri]


@pytest.mark.parametrize("cursor", ["", "1", "1.5-x", "-1-1", "1e9-1", "١-١", "9" * 40 + "-1"])
def test_a_cursor_that_no_page_gave_is_refused(
    store: Store, database_url: str, cursor: str
) -> None:
    with pytest.raises(InvalidInput, match="not a cursor"):
        read(database_url, cursor=cursor)
