"""The log of the faults whose texts no page of the node shows: of endpoints and the database."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from capdex.errors import CapdexError
from capdex.net.rpc.endpoint import EndpointState

INTERVAL_S: Final = 60.0  # between two lines about one endpoint, or of one code

log = structlog.get_logger(part="node")


class FaultLog:
    """Logs faults that last, or come again and again, once in INTERVAL_S."""

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._timer = timer
        self._next_at: dict[str, float] = {}

    def endpoints(self, states: Sequence[EndpointState]) -> None:
        """Log the endpoints that failed lately, by the numbers that `/status` shows."""
        for number, state in enumerate(states, 1):
            if state.fault is not None and self._is_due(f"endpoint {number}"):
                about = {"endpoint": number, "url": state.label, "fault": str(state.fault)}
                log.warning("endpoint failed", **about, why=state.last_error)

    def failure(self, event: str, error: CapdexError) -> None:
        """Log that something of the node fails, such as its database, and why."""
        if self._is_due(f"{event} {error.code}"):
            log.warning(event, code=str(error.code), what=error.message, why=error.why)

    def _is_due(self, key: str) -> bool:
        now = self._timer()
        if now < self._next_at.get(key, now):
            return False
        self._next_at[key] = now + INTERVAL_S
        return True
