"""The scripts of benchmarks/ in small: each runs, and what it prints is about what it should be."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


def run(script: str, *arguments: object) -> str:
    """What a script prints; it must succeed."""
    command = [sys.executable, str(BENCHMARKS / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ("router/bindings.py", [5]),
        ("router/call.py", [5]),
        ("router/install.py", [6, 5, 0]),
        ("router/intents.py", []),
        ("router/route.py", [80]),
        ("router/start.py", [1]),
        ("router/state.py", [20]),
        ("search/latency.py", ["--packages", 30]),
    ],
)
def test_a_script_ends_well_by_small_figures(script: str, arguments: list[object]) -> None:
    assert re.search(r"\d", run(script, *arguments))


def test_what_an_event_costs_has_the_way_that_workers_take() -> None:
    rows = [
        line.split("µs")[0].rsplit(None, 1) for line in run("decode.py", 20, 1).splitlines()[2:]
    ]
    cost = {stage: float(us) for stage, us in rows}
    assert [*cost][-4:] == ["a worker, with its answer", "the answer read", "log head", "all of it"]
    assert cost["all of it"] == pytest.approx(sum([*cost.values()][-4:-1]), abs=0.02)


def test_commands_are_timed_on_a_network_of_the_script() -> None:
    rows = [line.split("  ")[0] for line in run("startup.py", 1).splitlines()[2:]]
    assert rows == [
        *("--version", "publish", "search", "resolve", "show", "list", "yank", "transfer offer"),
    ]
