"""What a node does by its role: a reader never writes, a standby waits and takes over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from msgspec.structs import replace
from sqlalchemy import make_url
from structlog.testing import capture_logs

from capdex.encoding.abi import checksum_address
from capdex.errors import CapdexError, Code, Unavailable
from capdex.problems import Verdict
from capdex_indexer.db import engine as database
from capdex_indexer.node import node
from capdex_indexer.node import writer as seat
from capdex_indexer.node.node import Node
from capdex_indexer.options import NodeOptions, Role
from tests.indexer.found import search_page

pytestmark = pytest.mark.real

FAIL_AFTER_S = 60.0  # a hang's end; no test waits for it


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hearts beat and standbys look many times a second."""
    for module in (node, seat):
        monkeypatch.setattr(module, "BEAT_S", 0.05)
    monkeypatch.setattr(node, "STANDBY_S", 0.05)


@pytest.fixture
def options(registry: Any, database_url: str, tmp_path: Path) -> NodeOptions:
    """A node that writes and serves, on SQLite and on PostgreSQL."""
    return NodeOptions(
        rpc_urls=(registry.url,),
        chain_id=31337,
        registry=checksum_address(registry.address),
        db=database_url,
        blocks=tmp_path / "blocks",
        ipfs=(),
        serve=frozenset({Verdict.VERIFIED}),
        poll_interval_s=0.05,
    )


@asynccontextmanager
async def running(options: NodeOptions) -> AsyncIterator[Any]:
    """A node at work; `await it.until(condition)` fails when the node does."""
    async with Node.open(options) as opened:
        task = asyncio.create_task(opened.run())

        async def until(reached: Callable[[], bool]) -> None:
            async with asyncio.timeout(FAIL_AFTER_S):
                while not await asyncio.to_thread(reached):
                    if task.done():
                        task.result()
                    await asyncio.sleep(0.01)  # the node needs the processor

        opened_any: Any = opened
        try:
            yield opened_any, until
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def codes(opened: Node) -> list[str]:
    return [fault["code"] for fault in opened.surface.health.faults()]


async def test_a_reader_is_ready_while_it_hears_the_writer_and_follows_it(
    options: NodeOptions, registry: Any, hurried: None
) -> None:
    reads = replace(options, role=Role.READER, rpc_urls=(), registry="", chain_id=0)
    async with running(options) as (writer, until):
        await until(lambda: not codes(writer))
        async with running(reads) as (reader, until_read):
            assert not reader.surface.health.writes
            await until_read(lambda: not codes(reader))
            await registry.mine(3)
            head = await registry.call("eth_blockNumber")
            await until_read(lambda: reader.surface.index.status().block_number == int(head, 16))
            assert reader.surface.health.lag_s() == 0


async def test_the_first_heartbeat_of_a_writer_at_the_head_says_so_and_readers_stay_ready(
    options: NodeOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seat, "BEAT_S", 2 * FAIL_AFTER_S)  # there is no second one
    async with running(options) as (writer, until):
        index = writer.surface.index
        await until(lambda: index.heartbeat()[1] is not None)
        assert index.heartbeat()[1].following


async def test_a_reader_of_nothing_does_not_start(options: NodeOptions) -> None:
    with pytest.raises(CapdexError):
        async with Node.open(replace(options, role=Role.READER)):
            pass


@pytest.fixture
def selecting(postgres_server: str) -> Iterator[Callable[[str], str]]:
    """The URL of the same database for an account that may only read."""
    name = f"reader_{uuid4().hex[:8]}"
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN")  # type: ignore[arg-type]
        admin.execute(f"GRANT pg_read_all_data TO {name}")  # type: ignore[arg-type]
        yield lambda url: url.replace("postgres:@", f"{name}:@")
        admin.execute(f"DROP ROLE {name}")  # type: ignore[arg-type]


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_an_account_that_may_only_select_is_enough_for_a_reader(
    options: NodeOptions, selecting: Callable[[str], str], hurried: None
) -> None:
    async with running(options) as (writer, until):
        await until(lambda: not codes(writer))
        reads = replace(options, role=Role.READER, db=selecting(options.db))
        async with running(reads) as (reader, until_read):
            await until_read(lambda: not codes(reader))
            assert search_page(reader.surface.index, "").hits == []


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_an_account_without_rights_is_no_fault_of_ours(
    options: NodeOptions, selecting: Callable[[str], str], hidden: bool
) -> None:
    if hidden:  # it does not even see where tables would be
        with psycopg.connect(options.db, autocommit=True) as admin:
            admin.execute("REVOKE ALL ON SCHEMA public FROM public")
    with pytest.raises(Unavailable) as refused:
        async with Node.open(replace(options, db=selecting(options.db))):
            pass
    assert refused.value.code is Code.DATABASE_UNAVAILABLE
    assert "may not do this" in refused.value.message


async def test_a_standby_answers_meanwhile_and_takes_the_seat_when_it_is_free(
    options: NodeOptions, registry: Any, hurried: None
) -> None:
    waits = replace(options, standby=True)
    async with AsyncExitStack() as first_process:
        first, until = await first_process.enter_async_context(running(waits))
        assert first.surface.health.writes  # nobody else did
        async with running(waits) as (second, until_second):
            await until_second(lambda: not codes(second))
            assert not second.surface.health.writes
            assert search_page(second.surface.index, "").hits == []
            await until(lambda: not codes(first))
            await first_process.aclose()
            await until_second(lambda: second.surface.health.writes)
            await registry.mine(2)
            head = int(await registry.call("eth_blockNumber"), 16)
            await until_second(lambda: second.surface.index.status().block_number == head)


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_a_writer_whose_session_is_cut_sits_down_again(
    options: NodeOptions, registry: Any, postgres_server: str, hurried: None
) -> None:
    cut = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
    async with running(options) as (only, until):
        await until(lambda: not codes(only))
        store = only.store
        with psycopg.connect(options.db, autocommit=True) as admin:
            admin.execute(cut)
        await until(lambda: only.surface.health.writes and only.store is not store)
        await registry.mine(2)
        head = int(await registry.call("eth_blockNumber"), 16)
        await until(lambda: only.surface.index.status().block_number == head and not codes(only))


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_a_node_that_cannot_become_the_writer_again_says_why(
    options: NodeOptions, hurried: None
) -> None:
    name = make_url(options.db).database
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    cut += " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with psycopg.connect(options.db, autocommit=True) as admin, capture_logs() as logs:
        async with running(options) as (only, until):
            await until(lambda: not codes(only))
            admin.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")  # type: ignore[arg-type]
            admin.execute(cut)
            await until(lambda: not only.surface.health.writes)
            await until(lambda: codes(only) == ["DATABASE_UNAVAILABLE"])
            await until(lambda: any("read-only" in str(line.get("why")) for line in logs))
            admin.execute("SET default_transaction_read_only = off")
            admin.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")  # type: ignore[arg-type]
            admin.execute(cut)
            await until(lambda: only.surface.health.writes and not codes(only))


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_a_node_that_gets_no_connection_to_read_is_not_ready_while_it_writes(
    options: NodeOptions, hurried: None
) -> None:
    role = f"few_{uuid4().hex[:8]}"
    with psycopg.connect(options.db, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {role} LOGIN")  # type: ignore[arg-type]
        admin.execute(f"GRANT ALL ON SCHEMA public TO {role}")  # type: ignore[arg-type]
        few = replace(options, db=options.db.replace("postgres:@", f"{role}:@"))
        async with running(few) as (only, until):
            await until(lambda: not codes(only))
            admin.execute(f"ALTER ROLE {role} CONNECTION LIMIT 1")  # type: ignore[arg-type]
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s AND pid"
                " NOT IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')",
                (role,),
            )
            await until(lambda: codes(only) == ["DATABASE_UNAVAILABLE"])
            assert only.surface.health.writes
            admin.execute(f"ALTER ROLE {role} CONNECTION LIMIT -1")  # type: ignore[arg-type]
            await until(lambda: not codes(only))
        admin.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")  # type: ignore[arg-type]


def test_a_heartbeat_is_due_well_before_the_server_gives_the_seat_away() -> None:
    assert 2 * seat.BEAT_S < database.SILENCE_S
    assert database.SILENCE_S + node.STANDBY_S + 2 < 10
