"""Counters of a node's own work, and its metrics as Prometheus text (zeros from the start)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from capdex import __version__
from capdex.net.ipfs.source import FetchOutcome, SourceHealth
from capdex.net.rpc.endpoint import EndpointState
from capdex.problems import Availability, Reason, Verdict
from capdex_indexer.monitoring.health import Health
from capdex_indexer.query.status import IndexStatus

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

# Codes of `/ready`; any other counts as INTERNAL.
FAULTS: Final = (
    *("BACKFILL", "NO_JUDGE", "NO_ROOM", "NO_WRITER", "DATABASE_LOCKED", "DATABASE_UNAVAILABLE"),
    *("INTERNAL", "RATE_LIMITED", "RPC_UNAVAILABLE", "STALLED", "TIMEOUT", "UNREADABLE"),
    "WRONG_CHAIN",
)


@dataclass(frozen=True, slots=True)
class FilesState:
    """Files of packages that the writer keeps: their budget and bytes on disk, and how many."""

    budget_bytes: int = 0
    kept_bytes: int = 0
    kept: int = 0


@dataclass(frozen=True, slots=True)
class Counters:
    """Counters since the process started; only the writer has sources and a range size.

    `calls` are by (method, endpoint's label, outcome).
    """

    calls: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    endpoints: Sequence[EndpointState] = ()
    sources: Sequence[SourceHealth] = ()
    files: FilesState = FilesState()
    range_blocks: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return endpoints, sources and kept files for `/status`."""
        return {
            "endpoints": [
                {
                    "endpoint": number,
                    "current": endpoint.current,
                    "circuit": str(endpoint.circuit),
                    "trouble": endpoint.error and str(endpoint.error.fault),
                    "abilities": endpoint.abilities.to_json(),
                }
                for number, endpoint in enumerate(self.endpoints, 1)
            ],
            "sources": [
                {
                    "source": source.label,
                    "requests": source.requests,
                    "outcomes": {str(kind): count for kind, count in source.outcomes.items()},
                    "in_flight": source.in_flight,
                    "resting_seconds": round(source.wait_s(time.monotonic()), 3),
                }
                for source in self.sources
            ],
            "files": asdict(self.files),
        }


def render(state: IndexStatus | None, health: Health, counters: Counters | None = None) -> bytes:
    """Return the body of one scrape; labels never hold names, CIDs, accounts or hosts.

    Endpoints and sources are numbered in the order given. Without a state (the database cannot be
    read) the metrics of the index are left out.
    """
    registry = CollectorRegistry()
    registry.register(_Metrics(state, health, counters or Counters()))
    return generate_latest(registry)


@dataclass(eq=False, frozen=True, slots=True)
class _Metrics(Collector):
    state: IndexStatus | None
    health: Health
    counters: Counters

    def collect(self) -> Iterator[Metric]:
        yield from _of_chain(self.health)
        if self.state is not None:
            yield from _of_index(self.state)
        yield from _of_work(self.counters)


def _of_chain(health: Health) -> Iterator[Metric]:
    yield _gauge("capdex_chain_head_block", "Head the endpoint last reported.", health.at.head)
    yield _gauge("capdex_lag_seconds", "Age of the index behind the head.", health.lag_s())
    yield _gauge("capdex_ready", "1 when the node is ready.", int(not health.faults()))
    yield _gauge("capdex_writer", "1 when this node writes the index.", int(health.writes))
    codes = {fault["code"] for fault in health.faults()}
    faults = {code: int(code in codes) for code in FAULTS}
    faults["INTERNAL"] |= int(not codes <= set(FAULTS))
    yield _gauges("capdex_fault", "1 for what keeps it unready.", "code", faults)
    text = "Clock of the machine less the chain's, where they differ."
    yield _gauge("capdex_clock_skew_seconds", text, health.skew_s or 0)
    depths = {(depth,): count for depth, count in health.reorgs.items()}
    yield _counter("capdex_reorgs", "Reorgs undone, by depth.", ["depth_bucket"], depths)
    yield _gauges("capdex_build_info", "This build.", "version", {__version__: 1})


def _of_index(state: IndexStatus) -> Iterator[Metric]:
    yield _gauge("capdex_indexed_block", "Last block in the index.", state.block_number)
    yield _gauge("capdex_finalized_block", "Last block held to be final.", state.finalized)
    yield _gauge("capdex_log_count", "Registry events in the index.", state.log_count)
    oldest = {
        Availability.PENDING: state.oldest_pending_s or 0,
        Availability.PARKED: state.oldest_parked_s or 0,
    }
    text = "Age of the oldest package not had."
    yield _gauges("capdex_fetch_oldest_seconds", text, "state", oldest)
    verdicts = {x: state.by_verdict.get(x, 0) for x in Verdict}
    yield _gauges("capdex_releases", "Releases by verdict.", "verdict", verdicts)
    queue = {x: state.by_availability.get(x, 0) for x in Availability}
    yield _gauges("capdex_fetch_queue", "Releases by availability of their bytes.", "state", queue)
    reasons = {x: state.rejected_by_reason.get(x, 0) for x in Reason}
    yield _gauges("capdex_rejected_releases", "Rejected releases by reason.", "reason", reasons)


def _of_work(counters: Counters) -> Iterator[Metric]:
    text = "Blocks that one eth_getLogs asks for."
    yield _gauge("capdex_range_blocks", text, counters.range_blocks)
    # An endpoint has a number, from 1, since metrics must name no host.
    hosts = [x.label for x in counters.endpoints]
    calls = {
        (method, str(hosts.index(label) + 1 if label in hosts else 0), outcome): count
        for (method, label, outcome), count in sorted(counters.calls.items())
    }
    text, labels = "Calls to the chain, by how they ended.", ["method", "endpoint", "outcome"]
    yield _counter("capdex_rpc_requests", text, labels, calls)
    rests = {str(n): max(x.cooldown_s, x.avoided_s) for n, x in enumerate(counters.endpoints, 1)}
    text = "Until an endpoint is asked."
    yield _gauges("capdex_rpc_endpoint_rests_seconds", text, "endpoint", rests)
    text, labels = "1 for what an endpoint can do, 0 for what it cannot.", ["endpoint", "ability"]
    ability = GaugeMetricFamily("capdex_rpc_ability", text, labels=labels)
    for number, endpoint in enumerate(counters.endpoints, 1):
        for name, able in endpoint.abilities.known().items():
            ability.add_metric([str(number), name], able)
    yield ability
    sources = counters.sources
    requests = {(x.label, kind): x.outcomes[kind] for x in sources for kind in FetchOutcome}
    text, labels = "Blocks asked for, by how that ended.", ["source", "outcome"]
    yield _counter("capdex_source_requests", text, labels, requests)
    sizes = {(x.label,): x.received_bytes for x in sources}
    yield _counter("capdex_source_bytes", "Bytes that a source has sent.", ["source"], sizes)
    in_flight = {x.label: x.in_flight for x in sources}
    yield _gauges("capdex_source_in_flight", "Requests under way.", "source", in_flight)


def _counter(
    name: str, text: str, labels: list[str], values: Mapping[Any, float]
) -> CounterMetricFamily:
    """Return a counter with a value for each tuple of its labels."""
    family = CounterMetricFamily(name, text, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family


def _gauges(name: str, text: str, label: str, values: Mapping[Any, float]) -> GaugeMetricFamily:
    """Return a gauge with a value for each value of its one label."""
    family = GaugeMetricFamily(name, text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def _gauge(name: str, text: str, value: float | None) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=float("nan") if value is None else value)
