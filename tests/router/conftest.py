"""Nodes, a person, a home to install to, and a small runtime."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from capdex.package import VerifiedPackage
from capdex_router.catalog.catalog import Catalog, Fixed
from capdex_router.home.audit_log import AuditLog
from capdex_router.home.config import Config
from capdex_router.home.directory import Home
from capdex_router.install.installer import Installer
from capdex_router.invoke.invoke import CallLimits, Invoker
from capdex_router.model.capability import Capability
from capdex_router.policy.grant_file import GrantFile
from tests.indexer import making
from tests.router.simulated import Machine, Person, SimulatedNode
from tests.router.small_runtime import LIMITS, Runtime, check


@pytest.fixture
async def start_node() -> AsyncIterator[Callable[[], Awaitable[SimulatedNode]]]:
    """Start a node on a free port of loopback."""
    runners: list[web.AppRunner] = []

    async def start() -> SimulatedNode:
        node = SimulatedNode()
        app = web.Application()
        app.router.add_post("/mcp", node.mcp)
        app.router.add_get("/ipfs/{cid}", node.block)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        runners.append(runner)
        listener = socket.create_server(("127.0.0.1", 0))
        node.port = listener.getsockname()[1]
        await web.SockSite(runner, listener).start()
        return node

    yield start
    for runner in runners:
        await runner.cleanup()


@pytest.fixture
async def node(start_node: Callable[[], Awaitable[SimulatedNode]]) -> SimulatedNode:
    """One node."""
    return await start_node()


@pytest.fixture
def person() -> Person:
    """A person who agrees."""
    return Person()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An empty home."""
    return Home.open(tmp_path / "router")


@pytest.fixture
def machine(home: Home) -> Callable[..., Machine]:
    """`machine(*nodes, **settings)` opens the installer of the home, as a new process does."""

    def opened(*nodes: SimulatedNode, at: Home = home, **settings: Any) -> Machine:
        rights = GrantFile(at.grants)
        seen: list[VerifiedPackage] = []
        config = Config(
            nodes=tuple(node.address for node in nodes),
            **{"chain_id": making.CHAIN_ID, "registry": making.REGISTRY, **settings},
        )
        installer = Installer(at, config, rights=rights, audit=AuditLog(at.audit), seen=seen.append)
        return Machine(at, rights, installer, seen)

    return opened


@pytest.fixture
def runtime(tmp_path: Path) -> Callable[..., Runtime]:
    """Make a runtime of some capabilities."""

    def make(*capabilities: Capability, limits: CallLimits = LIMITS, **options: Any) -> Runtime:
        source = Fixed(capabilities)
        catalog, rights = Catalog([source]), GrantFile(tmp_path / "grants.json")
        path = tmp_path / "audit.jsonl"
        invoker = Invoker(
            catalog, rights=rights, audit=AuditLog(path),
            check=check, limits=limits, **options,
        )  # fmt: skip
        return Runtime(source, catalog, rights, path, invoker)

    return make
