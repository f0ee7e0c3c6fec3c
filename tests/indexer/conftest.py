"""Fixtures of the indexer's tests; the simulators beside this file are loaded by their path."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from capdex.net import rpc
from indexer import sync


def load(name: str) -> ModuleType:
    """A module of this folder: tests are not packages, so they cannot import one another."""
    full = f"indexer_tests_{name}"
    if full not in sys.modules:
        path = Path(__file__).parent / f"{name}.py"
        spec = importlib.util.spec_from_file_location(full, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[full] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[full])
    return sys.modules[full]


@pytest.fixture
def following(tmp_path: Path) -> Any:
    """Make a `Following`: a reader and the walk over it, into this test's database."""
    return partial(load("following").Following, path=tmp_path / "index.db")


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses after faults of a few milliseconds."""
    monkeypatch.setattr(sync, "PAUSE_BASE_S", 0.01)
    monkeypatch.setattr(sync, "PAUSE_CAP_S", 0.05)
    monkeypatch.setattr(rpc, "BACKOFF_BASE_S", 0.01)
    monkeypatch.setattr(rpc, "BACKOFF_CAP_S", 0.05)


@pytest.fixture
async def simulate() -> AsyncIterator[Callable[..., Awaitable[Any]]]:
    """Make a `SimulatedChain` and serve it; its address is `sim.url`."""
    servers: list[TestServer] = []

    async def start(**settings: Any) -> Any:
        sim = load("simulator").SimulatedChain(**settings)
        server = TestServer(sim.app())
        await server.start_server()
        servers.append(server)
        sim.url = str(server.make_url("/"))
        return sim

    yield start
    for server in servers:
        await server.close()


@pytest.fixture
def garbage() -> Callable[..., Callable[[], web.Response]]:
    """Bodies no JSON-RPC endpoint should send."""

    def make(body: bytes, status: int = 200, **headers: str) -> Callable[[], web.Response]:
        return lambda: web.Response(body=body, status=status, headers=headers)

    return make
