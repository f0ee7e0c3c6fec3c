"""The text of one scrape, whatever state it is of."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from capdex import __version__
from capdex.errors import Code, Unavailable
from indexer.health import Health
from indexer.metrics import render
from indexer.state import State
from indexer.sync import Progress

EMPTY = State(
    block_number=None,
    block_hash=None,
    timestamp=None,
    head=None,
    finalized=None,
    log_count=0,
    log_head="0x" + "00" * 24,
    chain_id=1,
    registry="0x5FbDB2315678afecb367f032d93F642f64180aa3",
    start_block=0,
    releases=0,
    listed=0,
    by_verdict={},
    by_availability={},
    rejected_by_reason={},
    undecodable=0,
    oldest_pending_s=None,
    rejections=[],
)


def samples(state: State, health: Health | None = None) -> dict[tuple[str, ...], float]:
    """Values by metric name and label values."""
    text = render(state, health or Health()).decode("utf-8")
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_what_is_not_known_yet_is_no_number_and_every_count_is_zero() -> None:
    found = samples(EMPTY)
    unknown = {name for (name, *_), value in found.items() if math.isnan(value)}
    assert unknown == {"capdex_indexed_block", "capdex_finalized_block", "capdex_lag_seconds"}
    known = {key: value for key, value in found.items() if not math.isnan(value)}
    assert {key for key, value in known.items() if value} == {("capdex_build_info", __version__)}


@pytest.mark.parametrize(
    ("field", "value", "key"),
    [
        ("block_number", 7, ("capdex_indexed_block",)),
        ("finalized", 5, ("capdex_finalized_block",)),
        ("log_count", 9, ("capdex_log_count",)),
        ("oldest_pending_s", 2.5, ("capdex_fetch_oldest_seconds",)),
        ("by_verdict", {"signed": 4}, ("capdex_releases", "signed")),
        ("by_availability", {"parked": 3}, ("capdex_fetch_queue", "parked")),
        (
            "rejected_by_reason",
            {"SHA256_MISMATCH": 2},
            ("capdex_rejected_releases", "SHA256_MISMATCH"),
        ),
    ],
)
def test_each_part_of_the_state_moves_its_own_metric(
    field: str, value: Any, key: tuple[str, ...]
) -> None:
    before, after = samples(EMPTY), samples(replace(EMPTY, **{field: value}))
    expected = next(iter(value.values())) if isinstance(value, dict) else value
    assert after[key] == expected
    moved = {x for x in after if str(after[x]) != str(before[x])}  # NaN is not itself
    assert moved == {key}


def test_a_count_under_a_name_of_the_future_adds_no_label() -> None:
    odd = replace(EMPTY, by_verdict={"odd": 1}, rejected_by_reason={"ODD": 1})
    assert samples(odd).keys() == samples(EMPTY).keys()


def test_readiness_and_reorgs_come_from_the_walk() -> None:
    health = Health()
    health.report(Progress(head=40, undone=20, trouble=Unavailable("down", Code.STALLED)))
    found = samples(EMPTY, health)
    assert found["capdex_ready",] == 0
    assert found["capdex_chain_head_block",] == 40
    assert found["capdex_reorgs_total", "13-64"] == 1


def test_every_metric_says_what_it_is() -> None:
    text = render(EMPTY, Health()).decode("utf-8")
    for family in text_string_to_metric_families(text):
        assert family.documentation
        assert family.type in ("gauge", "counter")
