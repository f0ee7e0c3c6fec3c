"""How a long-lived command ends: exit codes by signal, in order, and at once when asked twice."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import pytest

from capdex_indexer.node.signals import run_until_stopped

ROOT = Path(__file__).parents[3]
FAIL_AFTER_S = 60

PRELUDE = """
import asyncio, sys
from capdex_indexer.node.signals import run_until_stopped
def say(word): print(word, flush=True)
"""
WAITING = """
async def work():
    try:
        say("running")
        await asyncio.Event().wait()
    finally:
        say("cleaned")
"""
STUBBORN = """
async def work():
    say("running")
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            say("no")
"""
RUN = 'sys.exit(run_until_stopped(work(), on_stop=lambda: say("stopping")))\n'


@contextmanager
def started(work: str) -> Iterator[subprocess.Popen[str]]:
    """A process that runs `work`, once it says so."""
    with subprocess.Popen(
        [sys.executable, "-c", PRELUDE + dedent(work) + RUN],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "running\n"
            yield process
        finally:
            process.kill()


def test_work_that_ends_by_itself_is_a_success() -> None:
    done = []

    async def work() -> None:
        done.append(True)

    assert run_until_stopped(work()) == 0
    assert done


def test_what_the_work_raises_is_raised() -> None:
    async def work() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_until_stopped(work())


ENDS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


@pytest.mark.parametrize(("number", "code"), ENDS)
def test_a_signal_ends_the_work_in_order(number: signal.Signals, code: int) -> None:
    # The tests themselves may run under `nohup`.
    with started(
        "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_DFL)\n" + WAITING
    ) as process:
        process.send_signal(number)
        out, err = process.communicate(timeout=FAIL_AFTER_S)
    assert (out, err, process.returncode) == ("stopping\ncleaned\n", "", code)


def test_a_hangup_that_nohup_ignores_ends_nothing() -> None:
    with started(
        "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + WAITING
    ) as process:
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        _, _ = process.communicate(timeout=FAIL_AFTER_S)
    assert process.returncode == 143


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_the_process_at_once(second: signal.Signals) -> None:
    with started(STUBBORN) as process:
        assert process.stdout is not None
        process.send_signal(signal.SIGINT)
        assert [process.stdout.readline() for _ in range(2)] == ["stopping\n", "no\n"]
        assert process.poll() is None  # it will not go
        process.send_signal(second)
        _, err = process.communicate(timeout=FAIL_AFTER_S)
    assert (err, process.returncode) == ("", 130)  # the code is the first signal's


def test_a_failure_while_stopping_is_not_hidden() -> None:
    failing = """
    async def work():
        try:
            say("running")
            await asyncio.Event().wait()
        finally:
            raise ZeroDivisionError("while closing")
    """
    with started(failing) as process:
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=FAIL_AFTER_S)
    assert "while closing" in err
    assert process.returncode not in (0, 143)
