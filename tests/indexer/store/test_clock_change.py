"""Retries that a wrong clock has put off."""

from __future__ import annotations

from typing import Any

from indexer.store.store import Store

NOW = 1_800_000_000.0
DAY_S = 86_400.0


def test_what_a_wrong_clock_has_put_off_is_due_at_once(
    making: Any, database_url: str, chain: Any
) -> None:
    store = Store.open(database_url, making.DEPLOYMENT, clock=lambda: NOW)
    for name in ("late", "soon", "never-tried"):
        chain.publish(name)
    making.append(store, chain)
    late, soon, fresh = sorted(store.due(NOW, 9), key=lambda x: x.release_id)
    store.retry_later(late.release_id, "absent", at=NOW + DAY_S)
    store.retry_later(soon.release_id, "absent", at=NOW + 9.0)
    assert [x.release_id for x in store.due(NOW, 9)] == [fresh.release_id]
    store.hasten(lambda tries: 10.0 * tries)
    due = {x.release_id: x.attempts for x in store.due(NOW, 9)}
    assert due == {late.release_id: 1, fresh.release_id: 0}  # the other waits as it should
    store.close()
