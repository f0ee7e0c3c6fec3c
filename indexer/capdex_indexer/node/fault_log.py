"""The log of the faults whose texts no page of the node shows: of endpoints and the database."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import structlog

from capdex.errors import CapdexError
from capdex.net.log_lines import RareLines
from capdex.net.rpc.endpoint import EndpointState

log = structlog.get_logger(part="node")


class FaultLog:
    """Logs faults that last, or come again and again, once a minute."""

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._lines = RareLines(timer)

    def endpoints(self, states: Sequence[EndpointState]) -> None:
        """Log the endpoints that failed lately, by the numbers that `/status` shows."""
        for number, state in enumerate(states, 1):
            if (error := state.error) and self._lines.due(f"endpoint {number}"):
                about = {"endpoint": number, "url": state.label, "fault": str(error.fault)}
                log.warning("endpoint failed", **about, why=error.why)

    def failure(self, event: str, error: CapdexError) -> None:
        """Log that something of the node fails, such as its database, and why."""
        if self._lines.due(f"{event} {error.code}"):
            log.warning(event, code=str(error.code), what=error.message, why=error.why)
