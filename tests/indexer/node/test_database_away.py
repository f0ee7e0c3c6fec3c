"""A node whose database is locked by another session for a while: it waits, and goes on."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
import structlog
from msgspec.structs import replace
from sqlalchemy import Engine, event
from sqlalchemy.exc import OperationalError

from capdex.encoding.abi import checksum_address
from capdex.problems import Verdict
from capdex_indexer.db import engine
from capdex_indexer.fetch import fetcher
from capdex_indexer.node import writer
from capdex_indexer.node.node import Node
from capdex_indexer.options import NodeOptions
from tests.indexer.node.test_node import running

VOTES = "0x" + "22" * 20

pytestmark = pytest.mark.usefixtures("hasty")


class Clock:
    """Seconds that pass when told so."""

    now = 2e9

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def options(simulate: Any, tmp_path: Path) -> NodeOptions:
    sim = await simulate()
    sim.mine(2)
    return NodeOptions(
        rpc_urls=(sim.url,),
        chain_id=1,
        registry=checksum_address(sim.registry),
        db=f"sqlite:///{tmp_path / 'index.db'}",
        blocks=tmp_path / "blocks",
        ipfs=(f"dir:{tmp_path / 'shared'}",),
        serve=frozenset({Verdict.VERIFIED}),
        poll_interval_s=0.05,
    )


async def test_a_database_that_is_locked_while_the_clock_is_set_does_not_end_the_node(
    options: NodeOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "BUSY_TIMEOUT_S", 0.05)
    monkeypatch.setattr(writer, "BEAT_S", 0.05)
    clock = Clock()
    async with Node.open(replace(options, clock=clock)) as node, running(node) as until:
        health = node.surface.health
        await until(lambda: health.following)
        other = sqlite3.connect(options.db.removeprefix("sqlite:///"), isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        await until(lambda: health.refused is not None)
        with structlog.testing.capture_logs() as lines:
            clock.now += 1000
            await until(lambda: any(line["event"] == "the clock was set" for line in lines))
            before = health.refused
            await until(lambda: health.refused is not before)
            other.rollback()
            await until(lambda: health.refused is None)
        other.close()


async def test_a_queue_that_cannot_be_read_is_one_line_of_the_log_a_minute(
    options: NodeOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetcher, "POLL_S", 0.01)
    refused: list[str] = []

    def lock(connection: Any, cursor: Any, statement: str, given: Any, *more: Any) -> None:
        if "min(release" in statement:
            refused.append(statement)
            raise OperationalError(statement, None, sqlite3.OperationalError("database is locked"))

    event.listen(Engine, "before_cursor_execute", lock)
    try:
        with structlog.testing.capture_logs() as lines:
            async with Node.open(options) as node, running(node) as until:
                await until(lambda: len(refused) > 4)
    finally:
        event.remove(Engine, "before_cursor_execute", lock)
    said = [line["why"] for line in lines if line["event"] == "queue unreadable"]
    assert len(said) == 1
    assert "database is locked" in said[0]


async def test_a_database_that_is_locked_as_the_node_begins_to_read_does_not_end_it(
    options: NodeOptions,
) -> None:
    refused: list[str] = []

    def lock(connection: Any, cursor: Any, statement: str, given: Any, *more: Any) -> None:
        """Refuse the first look at the stored blocks, and the first word of the votes."""
        what = "votes" if VOTES in str(given) else "blocks" if "FROM block" in statement else ""
        if what and what not in refused:
            refused.append(what)
            raise OperationalError(statement, None, sqlite3.OperationalError("database is locked"))

    event.listen(Engine, "before_cursor_execute", lock)
    try:
        async with Node.open(replace(options, votes=VOTES)) as node, running(node) as until:
            await until(lambda: node.surface.health.following)
            await until(lambda: sorted(refused) == ["blocks", "votes"])
            await until(lambda: node.surface.health.refused is None)
    finally:
        event.remove(Engine, "before_cursor_execute", lock)
