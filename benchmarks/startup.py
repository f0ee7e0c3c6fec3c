"""Time commands from start to end on a warm local network, and print the medians.

Start `capdex up` in a directory, then run this there: `python benchmarks/startup.py [NAME] [RUNS]`.
NAME is a published name (default: the first that `capdex search` lists). The CPU time is the
better measure on a busy machine.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time

CAPDEX = (sys.executable, "-m", "capdex")
RUNS = 15
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


def measure(*command: str, runs: int) -> tuple[float, float]:
    """Return the median seconds of a command: elapsed, and of CPU."""
    elapsed, cpu = [], []
    subprocess.run([*CAPDEX, *command], capture_output=True, check=True, env=ENVIRONMENT)  # warm up
    for _ in range(runs):
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([*CAPDEX, *command], capture_output=True, check=True, env=ENVIRONMENT)
        elapsed.append(time.perf_counter() - began)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(elapsed), statistics.median(cpu)


def first_name() -> str:
    """Return the first name that the node lists."""
    done = subprocess.run([*CAPDEX, "search", "--json"], capture_output=True, check=True)
    uri: str = json.loads(done.stdout)["results"][0]["cap_uri"]
    return uri.removeprefix("did:nuwa:cap:").partition("@")[0]


def main(name: str | None = None, runs: str = str(RUNS)) -> None:
    """Print a table of all commands."""
    name = name or first_name()
    owner = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"  # the account of a development chain
    print(f"{os.cpu_count()} CPUs, median of {runs} runs")
    print(f"{'command':32}{'seconds':>9}{'CPU':>9}")
    for command in (
        ("--version",),
        ("search", name),
        ("resolve", name),
        ("show", name),
        ("list", "--owner", owner),
    ):
        elapsed, cpu = measure(*command, runs=int(runs))
        print(f"{' '.join(command)[:31]:32}{elapsed:9.3f}{cpu:9.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
