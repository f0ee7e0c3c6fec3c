"""The text of one scrape, whatever state it is of."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import orjson
import pytest
from prometheus_client.parser import text_string_to_metric_families

from capdex import __version__
from capdex.errors import Code, Unavailable
from capdex.net.ipfs.source import FetchOutcome, SourceHealth
from capdex.net.rpc.abilities import Abilities
from capdex.net.rpc.endpoint import EndpointState
from capdex.net.rpc.pacing import Circuit
from capdex_indexer.monitoring.health import Health
from capdex_indexer.monitoring.metrics import Counters, render
from capdex_indexer.query.status import IndexStatus
from capdex_indexer.sync.loop import SyncProgress

EMPTY = IndexStatus(
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


def samples(
    state: IndexStatus, health: Health | None = None, counters: Counters | None = None
) -> dict[tuple[str, ...], float]:
    """Values by metric name and label values."""
    text = render(state, health or Health(), counters).decode("utf-8")
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_what_is_not_known_yet_is_no_number_and_every_count_is_zero() -> None:
    found = samples(EMPTY)
    unknown = {name for (name, *_), value in found.items() if math.isnan(value)}
    assert unknown == {
        "capdex_indexed_block",
        "capdex_finalized_block",
        "capdex_lag_seconds",
        "capdex_range_blocks",
    }
    known = {key: value for key, value in found.items() if not math.isnan(value)}
    ones = {("capdex_build_info", __version__), ("capdex_fault", "BACKFILL")}
    assert {key for key, value in known.items() if value} == ones


@pytest.mark.parametrize(
    ("field", "value", "key"),
    [
        ("block_number", 7, ("capdex_indexed_block",)),
        ("finalized", 5, ("capdex_finalized_block",)),
        ("log_count", 9, ("capdex_log_count",)),
        ("oldest_pending_s", 2.5, ("capdex_fetch_oldest_seconds", "pending")),
        ("oldest_parked_s", 9.5, ("capdex_fetch_oldest_seconds", "parked")),
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
    health.report(SyncProgress(head=40, undone=20, trouble=Unavailable("down", Code.STALLED)))
    found = samples(EMPTY, health)
    assert found["capdex_ready",] == 0
    assert found["capdex_chain_head_block",] == 40
    assert found["capdex_reorgs_total", "13-64"] == 1


def test_what_keeps_a_node_unready_is_one_of_the_faults() -> None:
    health = Health(writes=True)
    health.report(SyncProgress(head=40, trouble=Unavailable("down", Code.RPC_UNAVAILABLE)))
    health.refused = Unavailable("odd", Code.NOT_FOUND)  # not one that anybody foresaw
    found = samples(EMPTY, health)
    told = {code for (name, *codes), on in found.items() if name == "capdex_fault" and on
            for code in codes}  # fmt: skip
    assert told == {"RPC_UNAVAILABLE", "INTERNAL"}
    assert found["capdex_writer",] == 1


def test_calls_and_sources_are_counted_without_naming_a_host() -> None:
    endpoints = [
        EndpointState(f"https://{host}", True, Circuit.CLOSED, rests, 0.0)
        for host, rests in (("one.example", 0.0), ("two.example", 7.5))
    ]
    outcomes = Counter({FetchOutcome.GAVE: 2, FetchOutcome.SLOW: 1})
    source = SourceHealth("gateway-1", 2, 3, 999, outcomes)
    counters = Counters(
        {("eth_getLogs", "https://two.example", "ok"): 5, ("eth_call", "gone", "rate"): 1},
        endpoints,
        [source],
        range_blocks=64,
    )
    endpoints[1] = replace(endpoints[1], abilities=Abilities(proofs=False, genesis=True))
    values = samples(EMPTY, None, counters)
    assert values["capdex_rpc_ability", "proofs", "2"] == 0
    assert values["capdex_rpc_ability", "genesis", "2"] == 1
    assert ("capdex_rpc_ability", "gzip", "2") not in values
    assert counters.to_json()["endpoints"][1]["abilities"]["proofs"] is False
    assert values["capdex_rpc_requests_total", "2", "eth_getLogs", "ok"] == 5
    assert values["capdex_rpc_requests_total", "0", "eth_call", "rate"] == 1
    assert values["capdex_rpc_endpoint_rests_seconds", "2"] == 7.5
    assert values["capdex_source_requests_total", "gave", "gateway-1"] == 2
    assert values["capdex_source_requests_total", "wrong", "gateway-1"] == 0
    assert values["capdex_source_bytes_total", "gateway-1"] == 999
    assert values["capdex_source_in_flight", "gateway-1"] == 2
    told = orjson.loads(orjson.dumps(counters.to_json()))
    assert told["sources"][0]["outcomes"] == {"gave": 2, "slow": 1}
    assert values["capdex_range_blocks",] == 64
    assert b"example" not in render(EMPTY, Health(), counters)
    assert "example" not in str(counters.to_json())


def test_without_its_database_a_node_still_says_that_it_is_not_ready() -> None:
    health = Health(writes=True)
    health.refused = Unavailable("away", Code.DATABASE_UNAVAILABLE)
    text = render(None, health).decode("utf-8")
    assert "capdex_ready 0.0" in text
    assert 'capdex_fault{code="DATABASE_UNAVAILABLE"} 1.0' in text
    assert "capdex_indexed_block" not in text


def test_every_metric_says_what_it_is() -> None:
    text = render(EMPTY, Health()).decode("utf-8")
    for family in text_string_to_metric_families(text):
        assert family.documentation
        assert family.type in ("gauge", "counter")
