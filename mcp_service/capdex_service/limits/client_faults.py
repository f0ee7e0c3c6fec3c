"""What clients do wrong, in a few lines of the log, however often they do it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

import structlog
from starlette.requests import ClientDisconnect

INTERVAL_S: Final = 60.0  # between two lines of one kind

log = structlog.get_logger(part="http")

# Messages of uvicorn about a request, each a warning of its own: any client can cause them.
_UVICORN: Final = {
    "Invalid HTTP request received.": "not HTTP",
    "Unsupported upgrade request.": "another protocol",
}
# uvicorn goes on with pipelined requests of a closed connection, and uvloop raises this in words.
_CLOSED: Final = "the handler is closed"


class ClientFaults:
    """Counts faults of clients by kind, and logs a kind at most once in INTERVAL_S."""

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._timer = timer
        self._unlogged: dict[str, int] = {}
        self._next_line_at: dict[str, float] = {}

    def note(self, kind: str) -> None:
        """Count a fault; log how many there were since the last line of this kind."""
        now = self._timer()
        self._unlogged[kind] = self._unlogged.get(kind, 0) + 1
        if now >= self._next_line_at.get(kind, now):
            log.info("faults of clients", kind=kind, count=self._unlogged.pop(kind))
            self._next_line_at[kind] = now + INTERVAL_S

    def filter(self, record: logging.LogRecord) -> bool:
        """False for a record of `uvicorn.error` that a client, or the end of the node, caused."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, asyncio.CancelledError):
            return False  # uvicorn logs the number of cancelled requests in another record
        message = record.getMessage()
        kind = _UVICORN.get(message)
        if isinstance(error, ClientDisconnect) or _CLOSED in str(error):
            kind = "cut off"
        if kind is not None:
            self.note(kind)
        return kind is None and not message.startswith("No supported WebSocket library")
