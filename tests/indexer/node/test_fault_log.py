"""What the pages of a node do not show is in its log, and does not fill it."""

from __future__ import annotations

from structlog.testing import capture_logs

from capdex.errors import Code, Unavailable
from capdex.net.log_lines import INTERVAL_S
from capdex.net.rpc.endpoint import EndpointState
from capdex.net.rpc.errors import RpcFault, rpc_error
from capdex.net.rpc.pacing import Circuit
from capdex_indexer.node.fault_log import FaultLog


def endpoint(fault: RpcFault | None) -> EndpointState:
    error = None if fault is None else rpc_error("https://x", fault, "quota used up")
    return EndpointState("https://x", True, Circuit.OPEN, 0.0, 0.0, error)


def test_an_endpoint_that_fails_is_logged_with_its_words_once_a_minute() -> None:
    clock = iter([0.0, 1.0, INTERVAL_S, INTERVAL_S])
    faults = FaultLog(timer=lambda: next(clock))
    with capture_logs() as lines:
        for state in (RpcFault.RATE, RpcFault.RATE, None, RpcFault.TIMEOUT):
            faults.endpoints([endpoint(None), endpoint(state)])
    about: dict[str, object] = {"event": "endpoint failed", "log_level": "warning", "part": "node"}
    assert lines == [
        about | {"endpoint": 2, "url": "https://x", "fault": x, "why": "quota used up"}
        for x in ("RATE", "TIMEOUT")
    ]


def test_each_fault_of_the_database_is_logged_once_a_minute() -> None:
    faults = FaultLog(timer=lambda: 0.0)
    full = Unavailable("it takes nothing", Code.DATABASE_UNAVAILABLE, why="the disk is full")
    locked = Unavailable("it is locked", Code.DATABASE_LOCKED)
    with capture_logs() as lines:
        for error in (full, locked, full, locked):
            faults.failure("database failed", error)
    assert [(x["code"], x["what"], x["why"]) for x in lines] == [
        ("DATABASE_UNAVAILABLE", "it takes nothing", "the disk is full"),
        ("DATABASE_LOCKED", "it is locked", ""),
    ]
