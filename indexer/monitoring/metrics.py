"""Counters of a node's own work, and its metrics as Prometheus text (zeros from the start)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from capdex import __version__
from capdex.net.ipfs.source import Outcome, SourceState
from capdex.net.rpc.endpoint import EndpointState
from capdex.problems import Availability, Reason, Verdict
from indexer.monitoring.health import Health
from indexer.query import IndexStatus

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


# Codes of `/ready`; any other counts as INTERNAL.
FAULTS: Final = (
    *("BACKFILL", "NO_WRITER", "DATABASE_LOCKED", "DATABASE_UNAVAILABLE", "INTERNAL"),
    *("RATE_LIMITED", "RPC_UNAVAILABLE", "STALLED", "TIMEOUT", "UNREADABLE", "WRONG_CHAIN"),
)


@dataclass(frozen=True, slots=True)
class Counters:
    """Counters since the process started; only the writer has sources and a range size.

    `calls` are by (method, endpoint's label, outcome).
    """

    calls: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    endpoints: Sequence[EndpointState] = ()
    sources: Sequence[SourceState] = ()
    range_blocks: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return endpoints and sources for `/status`."""
        return {
            "endpoints": [
                {
                    "endpoint": number,
                    "current": one.current,
                    "circuit": str(one.circuit),
                    "trouble": one.trouble or None,
                }
                for number, one in enumerate(self.endpoints, 1)
            ],
            "sources": [
                {
                    "source": one.label,
                    "requests": one.requests,
                    "in_flight": one.in_flight,
                    "resting_seconds": round(one.resting_s, 3),
                }
                for one in self.sources
            ],
        }

    def number(self, label: str) -> str:
        """Return the number of an endpoint, from 1, since metrics must name no host."""
        for number, one in enumerate(self.endpoints, 1):
            if one.label == label:
                return str(number)
        return "0"


def render(state: IndexStatus | None, health: Health, counters: Counters | None = None) -> bytes:
    """Return the body of one scrape; labels never hold names, CIDs, accounts or hosts.

    Endpoints and sources are numbered in the order given. Without a state (the database cannot be
    read) the metrics of the index are left out.
    """
    registry = CollectorRegistry()
    registry.register(_ChainMetrics(health))
    if state is not None:
        registry.register(_IndexMetrics(state))
    registry.register(_WorkMetrics(counters or Counters()))
    return generate_latest(registry)


class _ChainMetrics(Collector):
    def __init__(self, health: Health) -> None:
        self.health = health

    def collect(self) -> Iterable[Metric]:
        health = self.health
        yield _gauge("capdex_chain_head_block", "Head the endpoint last reported.", health.at.head)
        yield _gauge("capdex_lag_seconds", "Age of the index behind the head.", health.lag_s())
        yield _gauge("capdex_ready", "1 when the node is ready.", int(not health.faults()))
        yield _gauge("capdex_writer", "1 when this node writes the index.", int(health.writes))
        codes = {fault["code"] for fault in health.faults()}
        faults = GaugeMetricFamily("capdex_fault", "1 for what keeps it unready.", labels=["code"])
        for code in FAULTS:
            other = code == "INTERNAL" and not codes <= set(FAULTS)
            faults.add_metric([code], int(code in codes or other))
        yield faults
        yield _gauge(
            "capdex_clock_skew_seconds",
            "Clock of the machine less the chain's, where they differ.",
            health.skew_s or 0,
        )
        reorgs = CounterMetricFamily(
            "capdex_reorgs", "Reorgs undone, by depth.", labels=["depth_bucket"]
        )
        for bucket, count in health.reorgs.items():
            reorgs.add_metric([bucket], count)
        yield reorgs
        build = GaugeMetricFamily("capdex_build_info", "This build.", labels=["version"])
        build.add_metric([__version__], 1)
        yield build


class _IndexMetrics(Collector):
    def __init__(self, state: IndexStatus) -> None:
        self.state = state

    def collect(self) -> Iterable[Metric]:
        state = self.state
        yield _gauge("capdex_indexed_block", "Last block in the index.", state.block_number)
        yield _gauge("capdex_finalized_block", "Last block held to be final.", state.finalized)
        yield _gauge("capdex_log_count", "Registry events in the index.", state.log_count)
        oldest = GaugeMetricFamily(
            "capdex_fetch_oldest_seconds", "Age of the oldest package not had.", labels=["state"]
        )
        oldest.add_metric([Availability.PENDING], state.oldest_pending_s or 0)
        oldest.add_metric([Availability.PARKED], state.oldest_parked_s or 0)
        yield oldest
        releases = GaugeMetricFamily("capdex_releases", "Releases by verdict.", labels=["verdict"])
        for verdict in Verdict:
            releases.add_metric([verdict], state.by_verdict.get(str(verdict), 0))
        yield releases
        queue = GaugeMetricFamily(
            "capdex_fetch_queue", "Releases by availability of their bytes.", labels=["state"]
        )
        for availability in Availability:
            queue.add_metric([availability], state.by_availability.get(str(availability), 0))
        yield queue
        rejected = GaugeMetricFamily(
            "capdex_rejected_releases", "Rejected releases by reason.", labels=["reason"]
        )
        for reason in Reason:
            rejected.add_metric([reason], state.rejected_by_reason.get(str(reason), 0))
        yield rejected


class _WorkMetrics(Collector):
    def __init__(self, counters: Counters) -> None:
        self.counters = counters

    def collect(self) -> Iterable[Metric]:
        counters = self.counters
        span = counters.range_blocks
        yield _gauge("capdex_range_blocks", "Blocks that one eth_getLogs asks for.", span)
        calls = CounterMetricFamily(
            "capdex_rpc_requests",
            "Calls to the chain, by how they ended.",
            labels=["method", "endpoint", "outcome"],
        )
        for (method, label, outcome), count in sorted(counters.calls.items()):
            calls.add_metric([method, counters.number(label), outcome], count)
        yield calls
        resting = GaugeMetricFamily(
            "capdex_rpc_endpoint_rests_seconds",
            "Until an endpoint is asked.",
            labels=["endpoint"],
        )
        for number, endpoint in enumerate(counters.endpoints, 1):
            resting.add_metric([str(number)], max(endpoint.rests_s, endpoint.avoided_s))
        yield resting
        yield from self._sources()

    def _sources(self) -> Iterable[Metric]:
        requests = CounterMetricFamily(
            "capdex_source_requests",
            "Blocks asked for, by how that ended.",
            labels=["source", "outcome"],
        )
        size = CounterMetricFamily(
            "capdex_source_bytes", "Bytes that a source has sent.", labels=["source"]
        )
        in_flight = GaugeMetricFamily(
            "capdex_source_in_flight", "Requests under way.", labels=["source"]
        )
        for source in self.counters.sources:
            for outcome in Outcome:
                requests.add_metric([source.label, outcome], source.outcomes.get(outcome, 0))
            size.add_metric([source.label], source.received_bytes)
            in_flight.add_metric([source.label], source.in_flight)
        yield from (requests, size, in_flight)


def _gauge(name: str, text: str, value: float | None) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=float("nan") if value is None else value)
