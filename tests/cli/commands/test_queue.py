"""`capdex node queue`, on the database of a node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from capdex.problems import Reason
from capdex_indexer.store import Delay, Store


@pytest.fixture
def database(folder: Path, making: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """A node with a release that is new, one retried, one parked, one judged; in CAPDEX_DB."""
    url = f"sqlite:///{folder / 'index.db'}"
    chain, store = making.Chain(), Store.open(url, making.DEPLOYMENT)
    chain.publish("judged")
    making.follow(store, chain)
    for name in ("late", "lost", "new"):
        chain.publish(name)
    making.append(store, chain)
    late, lost, _ = store.due(0.0, 9)
    store.delay_many([Delay(late.release_id, "no source gave it", 4e9)])
    store.delay_many([Delay(lost.release_id, "gave up on \x1b[31mit", reason=Reason.UNAVAILABLE)])
    store.close()
    monkeypatch.setenv("CAPDEX_DB", url)
    return url


def test_what_waits_is_shown_with_its_reason_and_its_next_try(capdex: Any, database: str) -> None:
    shown = capdex.json("node", "queue")
    assert shown["totals"] == {"pending": 2, "parked": 1}
    assert shown["next_cursor"] is None
    told = {
        one["cap_uri"].partition("@")[0].rpartition(":")[2]: (
            one["state"], one["lane"], one["reason"], one["error"], one["attempts"]
        )
        for one in shown["results"]
    }  # fmt: skip
    assert told == {
        "late": ("pending", "retry", None, "no source gave it", 1),
        "lost": ("parked", None, "UNAVAILABLE", "gave up on \x1b[31mit", 1),
        "new": ("pending", "new", None, None, 0),
    }
    late, lost, new = shown["results"]
    assert late["next_try_seconds"] > 1e9
    assert lost["next_try_seconds"] is None
    assert (new["next_try_seconds"], new["age_seconds"] >= 0) == (0, True)
    assert new["ipfs_cid"].startswith("bafkrei")


def test_one_state_or_one_name_can_be_asked_for(capdex: Any, database: str) -> None:
    def shown(*arguments: str) -> list[str]:
        lines: list[str] = capdex("--plain", "node", "queue", *arguments).stdout.split()
        return lines

    assert shown("--state", "parked") == ["did:nuwa:cap:lost@1.0.0"]
    assert shown("did:nuwa:cap:late") == ["did:nuwa:cap:late@1.0.0"]
    assert shown("judged") == []
    said = capdex("--format", "human", "node", "queue", "judged").stdout
    assert "no such release waits" in said
    assert "the queue is empty" not in said


def test_a_long_queue_is_read_page_by_page(capdex: Any, database: str) -> None:
    found, cursor = [], None
    while True:
        more = ("--cursor", cursor) if cursor else ()
        page = capdex.json("node", "queue", "--limit", "1", *more)
        found += [one["cap_uri"].split("@")[0].split(":")[-1] for one in page["results"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert found == ["late", "lost", "new"]
    assert capdex("node", "queue", "--cursor", "the next one").exit_code == 1


def test_people_see_it_in_columns_without_what_others_put_into_it(
    capdex: Any, database: str
) -> None:
    text = capdex("--format", "human", "node", "queue").stdout
    assert "UNAVAILABLE" in text
    assert "no source gave it" in text
    assert "\x1b[31m" not in text


def test_what_is_parked_can_be_tried_again(capdex: Any, database: str) -> None:
    assert capdex.json("node", "queue", "new", "--rearm")["rearmed"] == 0
    assert capdex.json("node", "queue", "--rearm")["rearmed"] == 1
    assert capdex.json("node", "queue")["totals"] == {"pending": 3, "parked": 0}
    (lost,) = capdex.json("node", "queue", "lost")["results"]
    assert (lost["lane"], lost["attempts"], lost["next_try_seconds"]) == ("retry", 0, 0)


@pytest.mark.parametrize(
    "arguments", [("--rearm", "--state", "parked"), ("--limit", "0"), ("--state", "available")]
)
def test_what_cannot_be_meant_is_refused(
    capdex: Any, database: str, arguments: tuple[str, ...]
) -> None:
    assert capdex("node", "queue", *arguments).exit_code == 2
