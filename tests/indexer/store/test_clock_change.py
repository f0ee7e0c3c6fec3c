"""Retries that were scheduled while the clock was wrong."""

from __future__ import annotations

from typing import Any

from capdex_indexer.fetch.result_writer import DISK_RETRY_S, MAX_TRIES, delay_s
from capdex_indexer.store import Delay, Store

NOW = 1_800_000_000.0
DAY_S = 86_400.0
JITTER = 1.25


def test_a_retry_that_a_fast_clock_has_put_off_is_due_at_once(
    making: Any, database_url: str, chain: Any
) -> None:
    store = Store.open(database_url, making.DEPLOYMENT, clock=lambda: NOW)
    for name in ("late", "soon", "never-tried"):
        chain.publish(name)
    making.append(store, chain)
    late, soon, fresh = sorted(store.due(NOW, 9), key=lambda x: x.release_id)
    delays = [
        Delay(late.release_id, "absent", NOW + DAY_S),
        Delay(soon.release_id, "absent", NOW + 9.0),
    ]
    store.delay_many(delays)
    assert [x.release_id for x in store.due(NOW, 9)] == [fresh.release_id]
    store.reset_skewed_delays()
    due = {x.release_id: x.attempts for x in store.due(NOW, 9)}
    assert due == {late.release_id: 1, fresh.release_id: 0}  # `soon` still waits its 9 seconds
    store.close()


def test_no_delay_of_the_schedule_is_taken_for_one_of_a_wrong_clock(
    making: Any, database_url: str, chain: Any
) -> None:
    store = Store.open(database_url, making.DEPLOYMENT, clock=lambda: NOW)
    chain.publish("note")
    making.append(store, chain)
    (job,) = store.due(NOW, 9)
    store.delay_many([Delay(job.release_id, "disk full", NOW + DISK_RETRY_S, tried=False)])
    for attempts in range(MAX_TRIES):
        store.reset_skewed_delays()
        assert store.due(NOW, 9) == []
        at = NOW + JITTER * delay_s(attempts)
        store.delay_many([Delay(job.release_id, "absent", at)])
    store.close()
