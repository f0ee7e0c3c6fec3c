"""Faults of clients are counted, and each kind is one line of the log in a minute."""

from __future__ import annotations

import asyncio
import logging

import pytest
from starlette.requests import ClientDisconnect
from structlog.testing import capture_logs

from capdex.net.log_lines import INTERVAL_S
from capdex_service.limits.client_faults import ClientFaults


def test_each_kind_is_logged_once_in_an_interval_with_its_count() -> None:
    times = [0.0, 1.0, INTERVAL_S - 1, INTERVAL_S, INTERVAL_S + 1]
    clock = iter([*times, INTERVAL_S + 2])
    faults = ClientFaults(timer=lambda: next(clock))
    with capture_logs() as lines:
        for _ in times:
            faults.note("cut off")
        faults.note("not HTTP")
    assert [(x["log_level"], x["kind"], x["count"]) for x in lines] == [
        ("info", "cut off", 1),
        ("info", "cut off", 3),
        ("info", "not HTTP", 1),
    ]


def record(message: str, error: BaseException | None = None) -> logging.LogRecord:
    information = (type(error), error, None) if error else None
    return logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, message, (), information)


@pytest.mark.parametrize(
    ("caused", "kind"),
    [
        (record("Invalid HTTP request received."), "not HTTP"),
        (record("Unsupported upgrade request."), "another protocol"),
        (record("No supported WebSocket library detected. Please use …"), None),
        (record("Exception in ASGI application\n", ClientDisconnect()), "cut off"),
        (record("Exception in ASGI application\n", asyncio.CancelledError()), None),
        (
            record(
                "Exception in ASGI application\n",
                RuntimeError(
                    "unable to perform operation on <TCPTransport>; the handler is closed"
                ),
            ),
            "cut off",
        ),
    ],
)
def test_a_record_that_a_client_caused_is_counted_instead(
    caused: logging.LogRecord, kind: str | None
) -> None:
    with capture_logs() as lines:
        assert not ClientFaults().filter(caused)
    assert [x["kind"] for x in lines] == ([kind] if kind else [])


@pytest.mark.parametrize(
    "own",
    [
        record("Exception in ASGI application\n", RuntimeError("a fault of ours")),
        record("Exception in ASGI application\n", KeyError("x")),
        record("Cancel 1 running task(s), timeout graceful shutdown exceeded"),
    ],
)
def test_every_other_record_is_kept(own: logging.LogRecord) -> None:
    assert ClientFaults().filter(own)
