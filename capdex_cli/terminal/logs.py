"""Logs of the long-running commands: structlog on stderr, as logfmt or JSON lines."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from types import NoneType
from typing import Any, TextIO, cast

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from capdex_cli.terminal.output import LossyStream
from capdex_cli.terminal.text import safe


def set_up(form: str, *, stream: TextIO | None = None) -> None:
    """Log to `stream` (stderr) as `logfmt` or `json`; libraries log warnings and errors only."""
    sink = cast("TextIO", LossyStream(stream or sys.stderr))
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
        logger_factory=structlog.WriteLoggerFactory(sink),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(stream=sink, level=logging.WARNING, force=True)
    logging.getLogger().handlers[0].setFormatter(_LibraryFormatter(processors))


class _LibraryFormatter(logging.Formatter):
    """Formats records of libraries like our own events."""

    def __init__(self, processors: Sequence[Processor]) -> None:
        super().__init__()
        self._processors = processors

    def format(self, record: logging.LogRecord) -> str:
        line: Any = {"part": record.name, "event": record.getMessage()}
        if record.exc_info:
            line["exc_info"] = record.exc_info
        for process in self._processors:
            line = process(None, record.levelname.lower(), line)
        return str(line)


def _escape(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    # Log lines contain untrusted text, which must not control the terminal.
    plain = (bool, int, float, NoneType)
    return {key: x if isinstance(x, plain) else safe(x) for key, x in event.items()}
