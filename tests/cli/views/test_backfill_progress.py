"""The line that a backfill shows on a terminal."""

from __future__ import annotations

import asyncio
import io
from contextlib import suppress

import pytest

from capdex.errors import Code, Unavailable
from cli.terminal.output import Stream
from cli.views.backfill_progress import ERASE, Line, Pace, duration, show_backfill
from indexer.monitoring.health import Health
from indexer.projection.block_range import BlockRef
from indexer.sync.loop import Progress


@pytest.fixture
def terminal() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def line(terminal: io.StringIO) -> Line:
    return Line(Stream(terminal, tty=True, color=False, unicode=True))


def test_the_line_says_where_it_is_how_fast_and_how_long_it_will_take() -> None:
    now = [0.0]
    pace = Pace(lambda: now[0])
    assert "… left" in pace.describe(1_000, 101_000, 0)
    now[0] = 10.0
    said = pace.describe(21_000, 101_000, 1234)
    assert said.startswith("reading the past: 20%, 40 s left, block 21 000 of 101 000")
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


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.4, "0 s"), (59.4, "59 s"), (60, "1 min"), (3599, "59 min"),
        (7500, "2 h 5 min"), (100_000, "1 d 3 h"),
    ],
)  # fmt: skip
def test_a_duration_is_told_as_people_tell_it(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_a_log_line_goes_above_the_line_that_changes(line: Line, terminal: io.StringIO) -> None:
    line.show("half way")
    line.write("event=one\n")
    assert terminal.getvalue() == f"{ERASE}  · half way{ERASE}event=one\n{ERASE}  · half way"
    terminal.truncate(terminal.seek(0))
    line.show("")
    line.write("event=two\n")
    assert terminal.getvalue() == f"{ERASE}event=two\n"


def test_a_line_is_cut_to_the_width_of_the_terminal(
    line: Line, terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    line.show("x" * 100)
    assert len(terminal.getvalue().removeprefix(ERASE)) < 30


async def test_it_is_shown_while_the_writer_reads_the_past_and_then_taken_away(
    line: Line, terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cli.views.backfill_progress.EVERY_S", 0.001)
    health = Health(writes=True)
    task = asyncio.create_task(show_backfill(health, line))

    async def shown(text: str) -> None:
        async with asyncio.timeout(30):
            while True:
                if text in terminal.getvalue():
                    return
                await asyncio.sleep(0)

    block = BlockRef(5, bytes(32), bytes(32), 0)
    health.report(Progress(block, head=50))
    await shown("block 5 of 50")
    health.report(Progress(block, head=50, trouble=Unavailable("down", Code.STALLED)))
    await shown(f"events{ERASE}")
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert terminal.getvalue().endswith(ERASE)
