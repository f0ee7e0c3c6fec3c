"""What clients do wrong, in a few lines of the log, however often they do it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

import structlog
from starlette.requests import ClientDisconnect

from capdex.net.log_lines import RareLines

log = structlog.get_logger(part="http")

# Messages of uvicorn about a request, each a warning of its own: any client can cause them.
_UVICORN: Final = {
    "Invalid HTTP request received.": "not HTTP",
    "Unsupported upgrade request.": "another protocol",
}
# uvicorn goes on with pipelined requests of a closed connection, and uvloop raises this in words.
_CLOSED: Final = "the handler is closed"


class ClientFaults:
    """Counts faults of clients by kind, and logs a kind at most once a minute."""

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._lines = RareLines(timer)

    def note(self, kind: str) -> None:
        """Count a fault; log how many there were since the last line of this kind."""
        if count := self._lines.due(kind):
            log.info("faults of clients", kind=kind, count=count)

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
