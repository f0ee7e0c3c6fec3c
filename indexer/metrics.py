"""The node's metrics, in Prometheus' text form; zeros are exported from the start."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from capdex import __version__
from capdex.problems import Availability, Reason, Verdict
from indexer.health import Health
from indexer.search import State

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def render(state: State, health: Health) -> bytes:
    """One scrape's body; labels are enumerated, never names, CIDs, accounts or hosts."""
    registry = CollectorRegistry()
    registry.register(_Scrape(state, health))
    return generate_latest(registry)


class _Scrape(Collector):
    def __init__(self, state: State, health: Health) -> None:
        self.state, self.health = state, health

    def collect(self) -> Iterable[Metric]:
        state, health = self.state, self.health
        yield _gauge("capdex_indexed_block", "Last block in the index.", state.block_number)
        yield _gauge("capdex_chain_head_block", "Head the endpoint last reported.", health.at.head)
        yield _gauge("capdex_finalized_block", "Last block held to be final.", state.finalized)
        yield _gauge("capdex_lag_seconds", "Age of the index behind the head.", health.lag_s())
        yield _gauge("capdex_log_count", "Registry events in the index.", state.log_count)
        yield _gauge("capdex_ready", "1 when the node is ready.", int(not health.faults()))
        yield _gauge(
            "capdex_fetch_oldest_seconds",
            "Age of the oldest package still awaited.",
            state.oldest_pending_s or 0,
        )
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
        reorgs = CounterMetricFamily(
            "capdex_reorgs", "Reorgs undone, by depth.", labels=["depth_bucket"]
        )
        for bucket, count in health.reorgs.items():
            reorgs.add_metric([bucket], count)
        yield reorgs
        build = GaugeMetricFamily("capdex_build_info", "This build.", labels=["version"])
        build.add_metric([__version__], 1)
        yield build


def _gauge(name: str, text: str, value: float | None) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=float("nan") if value is None else value)
