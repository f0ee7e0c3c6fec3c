"""Time commands from start to end on a warm local network, and print the medians.

Start `capdex up` in a directory, then run this there: `python benchmarks/startup.py [RUNS]`. It
publishes a package of its own for every run, yanks it and offers its name to another account.
The CPU time is the better measure on a busy machine.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

CAPDEX = (sys.executable, "-m", "capdex")
RUNS = 15
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


OWNER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"  # accounts of a development chain
RECIPIENT = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"


def run(*command: str) -> bytes:
    """Run a command that must succeed, and return its output."""
    done = subprocess.run([*CAPDEX, *command], capture_output=True, check=True, env=ENVIRONMENT)
    return done.stdout


def measure(commands: Sequence[Sequence[str]]) -> tuple[float, float]:
    """Return the median seconds of commands: elapsed, and of CPU. The first one is not counted."""
    elapsed, cpu = [], []
    for command in commands:
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        run(*command)
        elapsed.append(time.perf_counter() - began)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(elapsed[1:]), statistics.median(cpu[1:])


def main(runs: str = str(RUNS)) -> None:
    """Print a table of all commands."""
    count = int(runs) + 1
    print(f"{os.cpu_count()} CPUs, median of {runs} runs")
    print(f"{'command':20}{'seconds':>9}{'CPU':>9}")
    with tempfile.TemporaryDirectory() as directory:
        stamp = f"startup-{int(time.time())}"
        names = [f"{stamp}-{index}" for index in range(count)]
        files = [str(Path(directory) / f"{name}.acp.yaml") for name in names]
        for name, file in zip(names, files, strict=True):
            run("init", name, "--kind", "prompt", "--out", file)
        timed: dict[str, Callable[[str, str], Sequence[str]]] = {
            "--version": lambda name, file: ("--version",),
            "publish": lambda name, file: ("publish", file, "--yes"),
            "search": lambda name, file: ("search", name),
            "resolve": lambda name, file: ("resolve", name),
            "show": lambda name, file: ("show", name),
            "list": lambda name, file: ("list", "--owner", OWNER),
            "yank": lambda name, file: ("yank", f"{name}@0.1.0", "--yes"),
            "transfer offer": lambda name, file: ("transfer", "offer", name, RECIPIENT, "--yes"),
        }
        for title, command in timed.items():
            elapsed, cpu = measure([command(*pair) for pair in zip(names, files, strict=True)])
            print(f"{title:20}{elapsed:9.3f}{cpu:9.3f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
