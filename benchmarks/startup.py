"""Time commands from start to end on a warm local network, and print the medians.

`python benchmarks/startup.py [RUNS]` starts `capdex up` in a folder of its own. It publishes a
package for every run, yanks it and offers its name to another account. The CPU time is the better
measure on a busy machine.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

CAPDEX = (sys.executable, "-m", "capdex")
RUNS = 11
START_S = 120.0
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
RECIPIENT = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"  # an account of a development chain


def run(folder: Path, command: Sequence[str]) -> None:
    """Run a command that must succeed; what it says is shown if it does not."""
    done = subprocess.run(
        [*CAPDEX, *command], capture_output=True, check=False, cwd=folder, env=ENVIRONMENT
    )
    if done.returncode:
        sys.exit(
            f"capdex {' '.join(command)} ended with {done.returncode}:\n{done.stderr.decode()}"
        )


@contextmanager
def network(folder: Path) -> Iterator[str]:
    """Run `capdex up` in a folder; yields its account."""
    up = [*CAPDEX, "up", "--port", "0", "--rpc-port", "0"]
    process = subprocess.Popen(up, cwd=folder, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    try:
        ready, deadline = folder / ".capdex" / "up.json", time.monotonic() + START_S
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit("capdex up was never ready")
            time.sleep(0.1)
        yield json.loads(ready.read_text("utf-8"))["account"]
    finally:
        process.terminate()
        process.wait()


def measure(folder: Path, commands: Sequence[Sequence[str]]) -> tuple[float, float]:
    """Return the median seconds of commands: elapsed, and of CPU. The first one is not counted."""
    elapsed, cpu = [], []
    for command in commands:
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        run(folder, command)
        elapsed.append(time.perf_counter() - began)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(elapsed[1:]), statistics.median(cpu[1:])


def main(runs: str = str(RUNS)) -> None:
    """Print a table of all commands."""
    count = int(runs) + 1
    print(f"{os.cpu_count()} CPUs, median of {runs} runs")
    print(f"{'command':20}{'seconds':>9}{'CPU':>9}")
    with tempfile.TemporaryDirectory() as directory, network(Path(directory)) as account:
        folder = Path(directory)
        names = [f"startup-{index}" for index in range(count)]
        files = [f"{name}.acp.yaml" for name in names]
        for name in names:
            run(folder, ("init", name, "--kind", "prompt", "--description", f"Says {name}."))
        timed: dict[str, Callable[[str, str], Sequence[str]]] = {
            "--version": lambda name, file: ("--version",),
            "publish": lambda name, file: ("publish", file, "--yes"),
            "search": lambda name, file: ("search", name),
            "resolve": lambda name, file: ("resolve", name),
            "show": lambda name, file: ("show", name),
            "list": lambda name, file: ("list", "--owner", account),
            "yank": lambda name, file: ("yank", f"{name}@0.1.0", "--yes"),
            "transfer offer": lambda name, file: ("transfer", "offer", name, RECIPIENT, "--yes"),
        }
        for title, command in timed.items():
            elapsed, cpu = measure(
                folder, [command(*pair) for pair in zip(names, files, strict=True)]
            )
            print(f"{title:20}{elapsed:9.3f}{cpu:9.3f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
