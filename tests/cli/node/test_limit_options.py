"""The options that limit clients: their defaults, and what a node gets of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from capdex_cli.node import serve as node_run
from capdex_cli.node.options import LIMITS
from capdex_cli.node.workers import Serving
from capdex_service.limits.options import ClientLimits

READER = ("node", "--role", "reader", "--db", "sqlite:///index.db")


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[ClientLimits]:
    """The limits of the nodes that would have been run."""
    found: list[ClientLimits] = []

    def run_node(_: object, host: str, port: int, serving: Serving, **__: object) -> int:
        found.append(serving.limits)
        return 0

    monkeypatch.setattr(node_run, "run_node", run_node)
    return found


def test_without_options_a_node_has_the_usual_limits(
    capdex: Any, limits: list[ClientLimits]
) -> None:
    assert capdex(*READER).exit_code == 0
    assert limits == [ClientLimits()]
    assert {name: getattr(ClientLimits(), name) for name in LIMITS} == LIMITS


def test_options_and_variables_set_limits(
    capdex: Any, limits: list[ClientLimits], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPDEX_RATE", "7.5")
    monkeypatch.setenv("CAPDEX_TRUSTED_PROXY", "10.0.0.0/8 ::1")
    options = (
        "--max-connections", "100", "--max-connections-per-client", "3", "--client-timeout", "2",
        "--keep-alive", "9", "--limit-loopback", "--token-file", "tokens",
    )  # fmt: skip
    assert capdex(*READER, *options).exit_code == 0
    proxies = ("10.0.0.0/8", "::1")
    assert limits == [ClientLimits(100, 3, 2.0, 9.0, 7.5, True, proxies, "tokens")]
    assert msgspec.json.decode(msgspec.json.encode(limits[0]), type=ClientLimits) == limits[0]


@pytest.mark.parametrize(
    ("option", "value"), [("--rate", "-1"), ("--client-timeout", "0"), ("--max-connections", "0")]
)
def test_limits_that_make_no_sense_are_refused(
    capdex: Any, limits: list[ClientLimits], option: str, value: str
) -> None:
    assert capdex(*READER, option, value).exit_code == 2
    assert limits == []


def test_a_wrong_token_file_stops_a_node(capdex: Any, folder: Path) -> None:
    from capdex_indexer.store import Deployment, Store

    db = f"sqlite:///{folder / 'index.db'}"
    Store.open(db, Deployment(1, "0x" + "00" * 20, 0, bytes(32))).close()
    result = capdex("node", "--role", "reader", "--db", db, "--port", "0", "--token-file", "absent")
    assert result.exit_code == 2
    assert "absent" in result.stderr
