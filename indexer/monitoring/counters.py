"""Counters of a node's own work: calls, endpoints, sources of packages, the range size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from capdex.net.ipfs.source import SourceState
from capdex.net.rpc.endpoint import EndpointState


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
