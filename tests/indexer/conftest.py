"""Fixtures of the indexer's tests; the simulators beside this file are loaded by their path."""

from __future__ import annotations

import asyncio
import importlib.util
import shutil
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from capdex.net.rpc import client as rpc
from capdex.net.rpc.errors import RpcError
from capdex_indexer.db import engine
from capdex_indexer.db.revision import create_tables
from capdex_indexer.query.index import Index
from capdex_indexer.store import Store
from capdex_indexer.sync import recovery
from tests.indexer.tables import with_tables

REPOSITORY = Path(__file__).resolve().parents[2]


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


@pytest.fixture(scope="session")
def serving() -> Any:
    """`serve(surface)`: a node's own face behind a real HTTP server."""
    return load("serving")


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses after faults of a few milliseconds."""
    monkeypatch.setattr(recovery, "PAUSE_BASE_S", 0.01)
    monkeypatch.setattr(recovery, "PAUSE_CAP_S", 0.05)
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
def unhurried() -> Callable[..., Any]:
    """Make an `Unhurried` endpoint of a `SimulatedChain`, in virtual time and without HTTP."""

    def make(**settings: Any) -> Any:
        return load("virtual_time").Unhurried(load("simulator").SimulatedChain(**settings))

    return make


@pytest.fixture
def garbage() -> Callable[..., Callable[[], web.Response]]:
    """Bodies no JSON-RPC endpoint should send."""

    def make(body: bytes, status: int = 200, **headers: str) -> Callable[[], web.Response]:
        return lambda: web.Response(body=body, status=status, headers=headers)

    return make


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[Any]:
    """A registry on an Anvil of its own, with `publish`, `mine`, `logs` and any `call`."""
    places = sorted(REPOSITORY.glob("node_modules/@foundry-rs/anvil-*/bin/anvil*"))
    anvil = next(map(str, places), None) or shutil.which("anvil")
    if anvil is None:
        pytest.fail("Anvil is missing: run `npm ci`")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    process = await asyncio.create_subprocess_exec(
        anvil, "--host", "127.0.0.1", "--port", port, "--silent", "--no-cors", cwd=tmp_path
    )
    chain = load("anvil").Registry(f"http://127.0.0.1:{port}")
    try:
        while True:
            assert process.returncode is None
            try:
                await chain.deploy()
                break
            except RpcError:
                continue
        yield chain
    finally:
        await chain.close()
        process.terminate()
        await process.wait()


@pytest.fixture(scope="session")
def making() -> Any:
    """Builders of chains, events and signed packages."""
    return load("making")


@pytest.fixture(scope="session")
def postgres_server(postgres_server: Any) -> str:
    """The URI of the PostgreSQL of this session."""
    return str(postgres_server.get_uri())


@pytest.fixture(scope="session")
def tables_made(postgres_server: str) -> str:
    """The name of a database in PostgreSQL that has the tables and no row."""
    url = create_database(postgres_server, name := "tables_made")
    writer, _ = engine.open_writer(url)
    with engine.transaction(writer) as connection:
        create_tables(connection)
    writer.dispose()
    return name


def create_database(server: str, name: str, template: str = "template1") -> str:
    """Create a database as a copy of another, and return its URL."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    return server.replace("/postgres?", f"/{name}?")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.real)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database: a SQLite file, then a real PostgreSQL.

    It is empty; only where `store` is about to make the tables, it has them already, as a copy of
    those that were made once.
    """
    path = tmp_path / "store.db"
    if request.param == "sqlite":
        yield with_tables(path) if "store" in request.fixturenames else f"sqlite:///{path}"
        return
    server: str = request.getfixturevalue("postgres_server")
    made = (
        request.getfixturevalue("tables_made") if "store" in request.fixturenames else "template1"
    )
    name = f"test_{uuid4().hex}"
    yield create_database(server, name, made)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def store(database_url: str, making: Any) -> Iterator[Store]:
    """A store on an empty database.

    No heartbeat runs beside it, so PostgreSQL would end its session on a machine that is so busy
    that a test needs `SILENCE_S` between two writes.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "SILENCE_S", 600)
        opened = Store.open(database_url, making.DEPLOYMENT)
    yield opened
    opened.close()


@pytest.fixture
def search_index(store: Store, database_url: str) -> Iterator[Index]:
    """A reader of what `store` writes."""
    index = Index(database_url)
    yield index
    index.close()


@pytest.fixture
def chain(making: Any) -> Any:
    """An empty chain to publish on."""
    return making.Chain()
