"""The node's own face over a real HTTP server: health, readiness, status, metrics, blocks."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from capdex import __version__
from capdex.codes import error_codes
from capdex.errors import Code, Unavailable
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.net.rpc.endpoint import EndpointState
from capdex.net.rpc.errors import RpcFault, rpc_error
from capdex.net.rpc.pacing import Circuit
from capdex.package import RULES_VERSION
from capdex.problems import Availability, Reason, Verdict
from capdex.registry.logs import LogHead
from capdex_indexer.db.heartbeat import Heartbeat
from capdex_indexer.db.models import DECODER_VERSION
from capdex_indexer.http.status import Surface
from capdex_indexer.monitoring.health import DEPTHS, Health
from capdex_indexer.monitoring.metrics import Counters
from capdex_indexer.query.index import Index
from capdex_indexer.store import Store
from capdex_indexer.sync.loop import SyncProgress

KEY = "a1b2c3d4e5f6"
OPERATIONS = Path(__file__).parents[3] / "docs" / "operations.md"
DOWN = Unavailable("no endpoint answers", Code.RPC_UNAVAILABLE, why="connection refused")


@pytest.fixture
def database_url(tmp_path: Path) -> str:
    """SQLite alone: what the routes read is tested on both databases where it is made."""
    return f"sqlite:///{tmp_path / 'index.db'}"


@dataclass
class Clock:
    """Seconds that pass when told so."""

    now: float = 1_700_000_100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def surface(search_index: Index, block_directory: BlockDirectory, clock: Clock) -> Surface:
    return Surface(search_index, block_directory, Health(clock))


@pytest.fixture
async def node(surface: Surface, serving: Any) -> AsyncIterator[Any]:
    async with serving.serve(surface) as node:
        yield node


@pytest.fixture
def filled(store: Store, chain: Any, making: Any) -> Any:
    """A chain with one verified, one rejected and one pending release, indexed."""
    chain.publish("good")
    chain.publish("bad", data=b"not a package")
    chain.publish("late")
    del chain.packages[next(reversed(chain.packages))]
    making.follow(store, chain)
    return chain


def at(chain: Any, **more: Any) -> dict[str, Any]:
    """A report of the walk standing at the chain's head."""
    head = chain.head
    return {"block": head, "head": head.number, "finalized": max(0, head.number - 2), **more}


async def test_the_process_is_healthy_as_long_as_it_answers(node: Any) -> None:
    node.report(trouble=DOWN)
    answer = await node("/health")
    assert answer.status == 200
    why = "the chain endpoint is down, or cannot answer yet"
    because = [{"code": "RPC_UNAVAILABLE", "message": why}]
    assert answer.json == {
        "status": "ok",
        "version": __version__,
        "because": because,
        "warnings": [],
    }
    assert answer.headers["Cache-Control"] == "no-store"


async def test_health_and_readiness_wait_for_no_page_that_waits_for_the_database(node: Any) -> None:
    loop, hung = asyncio.get_running_loop(), Event()
    loop.set_default_executor(ThreadPoolExecutor(1))
    waiting = loop.run_in_executor(None, hung.wait)  # as for a database that does not answer
    try:
        async with asyncio.timeout(30):
            assert (await node("/health")).status == 200
            assert (await node("/ready")).status == 503
    finally:
        hung.set()
        await waiting


async def test_a_node_before_its_first_block_is_not_ready_and_says_why(node: Any) -> None:
    answer = await node("/ready")
    assert answer.status == 503
    assert answer.headers["Retry-After"] == "1"
    because = [{"code": "BACKFILL", "message": "the chain is not read yet"}]
    assert answer.json == {"status": "not ready", "because": because}


async def test_a_node_is_ready_once_it_has_reached_the_head(node: Any, filled: Any) -> None:
    node.report(**at(filled, head=900))
    answer = await node("/ready")
    assert answer.status == 503
    assert answer.json["because"] == [{"code": "BACKFILL", "message": "at block 3 of 900"}]
    node.report(**at(filled))
    answer = await node("/ready")
    assert (answer.status, answer.json) == (200, {"status": "ready"})


@pytest.mark.parametrize(
    "code", [Code.STALLED, Code.RPC_UNAVAILABLE, Code.WRONG_CHAIN, Code.DATABASE_UNAVAILABLE]
)
async def test_trouble_makes_a_node_not_ready_and_its_end_ready_again(
    node: Any, filled: Any, code: Code
) -> None:
    node.report(**at(filled))
    node.report(**at(filled, trouble=Unavailable("it cannot go on", code, why="so it is")))
    answer = await node("/ready")
    assert answer.status == 503
    assert answer.json["because"] == [{"code": code, "message": error_codes()[code].meaning}]
    assert (await node("/metrics")).body.count(b"\ncapdex_ready 0.0\n") == 1
    node.report(**at(filled))
    assert (await node("/ready")).status == 200


@pytest.mark.parametrize("seen_by", ["the writer", "a reader"])
async def test_no_page_shows_what_an_endpoint_says_or_where_it_is(
    search_index: Index, block_directory: BlockDirectory, clock: Clock, serving: Any, seen_by: str
) -> None:
    """Vendors put API keys into hosts and paths, and echo them in their errors."""
    said = f"the RPC endpoint https://{KEY}.rpc.example did not answer as it should"
    trouble = Unavailable(said, Code.RATE_LIMITED, why=f"quota of {KEY} is used up", fix=KEY)
    state = EndpointState(
        f"https://{KEY}.rpc.example/…", True, Circuit.OPEN, 1.0, 0.0,
        rpc_error(f"https://{KEY}.rpc.example/…", RpcFault.RATE, f"no key {KEY}"),
    )  # fmt: skip
    calls = {("eth_call", state.label, "rate"): 3}
    health = Health(clock, endpoints=lambda: [state])
    surface = Surface(
        search_index, block_directory, health, counters=lambda: Counters(calls, [state])
    )
    if seen_by == "the writer":
        health.report(SyncProgress(trouble=trouble))
        health.refused = Unavailable(f"no {KEY}", Code.DATABASE_UNAVAILABLE, why=KEY)
    else:  # of an older version, which wrote the text into its heartbeat
        health.observe(search_index.heartbeat()[0], Heartbeat(9, 3, False, "RATE_LIMITED", said))
    async with serving.serve(surface) as node:
        pages = {x: await node(x) for x in ("/health", "/ready", "/status", "/metrics")}
    assert {x: KEY in page.body.decode() for x, page in pages.items()} == dict.fromkeys(
        pages, False
    )
    for path in ("/health", "/ready", "/status"):
        assert pages[path].json["because"][0]["code"] == "RATE_LIMITED"
    assert pages["/status"].json["endpoints"][0]["trouble"] == "RATE"
    assert b'capdex_fault{code="RATE_LIMITED"} 1.0' in pages["/metrics"].body
    assert KEY not in str(health.warning())


async def test_the_status_tells_position_log_releases_and_rejections(
    node: Any, filled: Any, clock: Clock
) -> None:
    node.report(**at(filled))
    answer = await node("/status")
    assert answer.status == 200
    body, head, log = answer.json, filled.head, LogHead()
    for raw in filled.logs:
        log = log.fold(raw)
    oldest = body["releases"].pop("oldest_pending_seconds")
    assert oldest >= 0
    [rejection] = body.pop("rejections")
    assert rejection["cap_uri"] == "did:nuwa:cap:bad@1.0.0"
    assert rejection["verdict"] == Verdict.INVALID
    assert rejection["block_number"] == 2
    assert rejection["reason"] in set(Reason)
    assert re.fullmatch("0x[0-9a-f]{64}", body.pop("index_digest"))
    assert body == {
        "status": "ready",
        "because": [],
        "lag_seconds": 0.0,
        "reorgs": dict.fromkeys(DEPTHS, 0),
        "version": __version__,
        "chain": {
            "chain_id": 31337,
            "registry": "0x5FbDB2315678afecb367f032d93F642f64180aa3",
            "block_number": head.number,
            "block_hash": "0x" + head.hash.hex(),
            "head_number": head.number,
            "finalized_number": head.number - 2,
        },
        "log": {"count": 3, "head": "0x" + log.head.hex()},
        "content_digest": None,
        "decoder_version": DECODER_VERSION,
        "rules_version": RULES_VERSION,
        "releases": {
            "by_verdict": {"verified": 1, "invalid": 1},
            "by_availability": {"available": 2, "pending": 1},
            "rejected_by_reason": {rejection["reason"]: 1},
            "total": 3,
            "listed": 1,
        },
        "undecodable_logs": 0,
        "warnings": [],
        "role": "both",
        "writer": False,
        "endpoints": [],
        "sources": [],
        "files": {"budget_bytes": 0, "kept_bytes": 0, "kept": 0},
    }


async def test_the_status_of_an_empty_index_is_complete(node: Any) -> None:
    body = (await node("/status")).json
    assert body["chain"]["block_number"] is None
    assert body["lag_seconds"] is None
    assert body["log"] == {"count": 0, "head": "0x" + "00" * 24}
    assert body["releases"]["total"] == 0
    assert body["status"] == "not ready"


async def test_a_limit_for_the_lag_decides_the_status_code(
    node: Any, filled: Any, clock: Clock
) -> None:
    assert (await node("/status?max_lag=999999999")).status == 503  # nothing is indexed yet
    clock.now = filled.head.timestamp + 10
    node.report(**at(filled, head=900))
    assert (await node("/status?max_lag=9")).status == 503
    assert (await node("/status?max_lag=10")).status == 200
    answer = await node("/status?max_lag=9")
    assert answer.json["lag_seconds"] == 10.0  # a refusal still says where the node is
    node.report(**at(filled))
    assert (await node("/status?max_lag=0")).status == 200


@pytest.mark.parametrize("bad", ["", "-1", "1.5", "soon", "%C2%B2", "%D9%A1", "1e3", "+1", "%00"])
async def test_a_limit_that_is_no_whole_number_is_refused(node: Any, bad: str) -> None:
    answer = await node(f"/status?max_lag={bad}")
    assert (answer.status, answer.headers["Content-Type"]) == (400, "application/problem+json")
    assert answer.json["code"] == Code.INVALID_INPUT


async def test_a_limit_of_thousands_of_digits_is_refused(node: Any) -> None:
    assert (await node("/status?max_lag=" + "9" * 5000)).status == 400


async def scrape(node: Any) -> dict[str, dict[str, float]]:
    """Samples by metric and by the value of their one label ('' without)."""
    answer = await node("/metrics")
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(answer.body.decode()):
        for sample in family.samples:
            label = next(iter(sample.labels.values()), "")
            found.setdefault(sample.name, {})[label] = sample.value
    return found


async def test_every_metric_is_documented_and_exported_from_the_start(node: Any) -> None:
    documented = re.findall(r"^\| `(capdex_\w+)(?:\{([\w,]+)\})?` \|", OPERATIONS.read_text(), re.M)
    found = await scrape(node)
    by_use = {name for name, _ in documented if name.startswith(("capdex_rpc_", "capdex_source_"))}
    assert found.keys() == {name for name, _ in documented} - by_use  # nothing to number yet
    assert set(found["capdex_releases"].items()) == {(str(x), 0) for x in Verdict}
    assert set(found["capdex_rejected_releases"].items()) == {(str(x), 0) for x in Reason}
    assert set(found["capdex_fetch_queue"].items()) == {(str(x), 0) for x in Availability}
    assert set(found["capdex_reorgs_total"].items()) == {(x, 0) for x in DEPTHS}
    assert found["capdex_build_info"] == {__version__: 1}
    assert found["capdex_ready"] == {"": 0}


async def test_the_metrics_count_what_the_index_holds(node: Any, filled: Any, clock: Clock) -> None:
    node.report(**at(filled, undone=3))
    found = await scrape(node)
    assert found["capdex_indexed_block"] == found["capdex_chain_head_block"] == {"": 3}
    assert found["capdex_finalized_block"] == {"": 1}
    assert found["capdex_log_count"] == {"": 3}
    assert found["capdex_lag_seconds"] == {"": 0}
    assert found["capdex_ready"] == {"": 1}
    assert found["capdex_releases"] == {str(x): 0 for x in Verdict} | {"verified": 1, "invalid": 1}
    assert found["capdex_fetch_queue"] == {"pending": 1, "available": 2, "parked": 0}
    assert sum(found["capdex_rejected_releases"].values()) == 1
    assert found["capdex_reorgs_total"]["2-12"] == 1


async def test_no_label_holds_what_strangers_write(node: Any, filled: Any) -> None:
    text = (await node("/metrics")).body.decode()
    for word in ("good", "bad@", "bafk", "0x", "did:"):
        assert word not in text


@pytest.mark.parametrize("path", ["/health", "/ready", "/status", "/metrics"])
async def test_nothing_can_be_written(node: Any, path: str) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert (await node(path, method=method)).status == 405


async def test_many_readers_at_once_get_the_same_answer(node: Any, filled: Any) -> None:
    node.report(**at(filled))
    answers = await asyncio.gather(*(node("/status") for _ in range(20)))
    bodies = [answer.json for answer in answers]
    for body in bodies:
        body["releases"].pop("oldest_pending_seconds")
    assert all(body == bodies[0] for body in bodies)
