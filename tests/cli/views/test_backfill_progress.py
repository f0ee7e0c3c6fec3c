"""The line that a backfill shows on a terminal."""

from __future__ import annotations

import asyncio
import io
from contextlib import suppress

import pytest

from capdex.errors import Code, Unavailable
from capdex.registry.logs import BlockRef
from capdex_cli.terminal.output import Format, Output, Stream
from capdex_cli.terminal.status_line import ERASE, StatusLine
from capdex_cli.views.backfill_progress import Pace, show_backfill
from capdex_indexer.monitoring.health import Health
from capdex_indexer.sync.loop import SyncProgress


@pytest.fixture
def terminal() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def line(terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> StatusLine:
    monkeypatch.setenv("TERM", "xterm")
    stream = Stream(terminal, tty=True, color=False, unicode=True)
    return StatusLine(Output(stream, stream, Format.HUMAN))


def test_the_line_says_where_it_is_how_fast_and_how_long_it_will_take() -> None:
    now = [0.0]
    pace = Pace(lambda: now[0])
    assert "… left" in pace.describe(1_000, 101_000, 0)
    now[0] = 10.0
    said = pace.describe(21_000, 101_000, 1234)
    assert said.startswith("backfill: 20%, 40 s left, block 21 000 of 101 000")
    assert "2 000 blocks/s" in said
    assert "1 234 events" in said


def test_the_pace_is_the_recent_one() -> None:
    now = [0.0]
    pace = Pace(lambda: now[0])
    for second in range(100):
        now[0] = float(second)
        said = pace.describe(min(second, 50) * 1000, 10**6, 0)
    assert "0 blocks/s" in said
    assert "… left" in said


async def test_it_is_shown_while_the_writer_reads_the_past_and_then_taken_away(
    line: StatusLine, terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capdex_cli.views.backfill_progress.EVERY_S", 0.001)
    health = Health(writes=True)
    task = asyncio.create_task(show_backfill(health, line))

    async def shown(text: str) -> None:
        async with asyncio.timeout(30):
            while True:
                if text in terminal.getvalue():
                    return
                await asyncio.sleep(0)

    block = BlockRef(5, bytes(32), bytes(32), 0)
    health.report(SyncProgress(block, head=50))
    await shown("block 5 of 50")
    health.report(SyncProgress(block, head=50, trouble=Unavailable("down", Code.STALLED)))
    await shown(f"events{ERASE}")
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert terminal.getvalue().endswith(ERASE)
