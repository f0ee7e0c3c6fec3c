"""How the long-lived commands log: structlog on stderr, logfmt for people, JSON lines otherwise."""

from __future__ import annotations

import logging
import sys
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from cli.text import safe


def set_up(form: str, *, stream: TextIO | None = None) -> None:
    """Log to `stream` (stderr) as `logfmt` or `json`; libraries speak from warnings upwards."""
    processors: list[Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    if form == "json":
        processors += [structlog.processors.JSONRenderer()]
    else:
        order = ["timestamp", "level", "part", "event"]
        render = structlog.processors.LogfmtRenderer(key_order=order, drop_missing=True)
        processors += [_escape, render]
    structlog.configure(
        processors=processors,
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.WriteLoggerFactory(stream or sys.stderr),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(
        stream=stream or sys.stderr, level=logging.WARNING, format="%(message)s", force=True
    )


def _escape(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    # Strangers' words reach the log: nothing in them may move the cursor of a terminal.
    return {key: safe(value) if isinstance(value, str) else value for key, value in event.items()}
