"""python benchmarks/indexer/rest.py [MINUTES …]: what a node takes that nobody asks.

Two nodes, one that searches by words alone and one by meaning, too, read the examples from one
chain. After so many minutes without work (1 by default), the memory of all processes of each and
the share of a core over the last minute are printed. Pages of files that its processes share count
once for a node, whatever else maps them: what the kernel calls PSS if nothing else runs.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from chain import ROOT, anvil
from node import Node

TICKS = os.sysconf("SC_CLK_TCK")
LAST_S = 60.0
PATIENCE_S = 300.0


def tree(process: int) -> list[int]:
    """Return a process and all that it started."""
    found = [process]
    for one in found:
        for children in Path(f"/proc/{one}/task").glob("*/children"):
            found += map(int, children.read_text().split())
    return found


def memory_mb(processes: list[int]) -> float:
    """Return what processes hold: pages of their own, and those of files once."""
    own_kb, files_kb, rss_kb = 0, dict[tuple[str, ...], int](), 0
    file: tuple[str, ...] = ()
    for process in processes:
        for line in Path(f"/proc/{process}/smaps").read_text().splitlines():
            key, *values = line.split()
            if not key.endswith(":"):  # the head of a mapping: offset, device, inode
                file = tuple(values[1:4])
            elif key == "Rss:":
                rss_kb = int(values[0])
            elif key == "Anonymous:":
                own_kb += int(values[0])
                files_kb[file] = max(files_kb.get(file, 0), rss_kb - int(values[0]))
    return (own_kb + sum(files_kb.values())) * 1024 / 1e6


def processor_s(processes: list[int]) -> float:
    """Return what processes have used, with those of their own that have ended."""
    stats = [Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split() for one in processes]
    return sum(sum(map(int, fields[11:15])) for fields in stats) / TICKS


def judged(database: Path) -> int:
    """Return how many releases have a verdict; 0 while one has none."""
    with closing(sqlite3.connect(database)) as connection:
        query = "SELECT count(*), count(verdict) FROM release"
        (known, done) = connection.execute(query).fetchone()
    return int(done) if known == done else 0


def until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def publish(home: Path) -> dict[str, Any]:
    """Publish the examples to a chain of `capdex up`, which keeps it; return where they are."""
    command = [sys.executable, "-m", "capdex", "up", "--port", "0", "--rpc-port", "0"]
    command += ["--dir", str(home), "--examples", str(ROOT / "examples")]
    network = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        until((home / "up.json").exists)
        found: dict[str, Any] = json.loads((home / "up.json").read_text())
    finally:
        network.terminate()
        network.wait()
    return found


def main(minutes: list[float]) -> None:
    with tempfile.TemporaryDirectory(prefix="rest-") as scratch, ExitStack() as parts:
        place = publish(Path(scratch) / "up")
        url = parts.enter_context(anvil("--load-state", str(Path(scratch, "up", "anvil.json"))))
        nodes = {}
        for name, option in {"words": "--no-semantic", "meaning": "--semantic"}.items():
            folder = Path(scratch, name)
            folder.mkdir()
            start = (url, place["registry"], place["start_block"], f"sqlite:///{folder}/index.db")
            run = Node.run(*start, folder, "--ipfs", place["ipfs"], option)
            nodes[name] = parts.enter_context(run)
            until(lambda node=nodes[name]: node.said("following"))  # type: ignore[misc]
            until(lambda database=folder / "index.db": judged(database))  # type: ignore[misc]
        began = time.monotonic()
        print("| searches by | after, minutes | processes | memory, MB | of a core |")
        print("| --- | ---: | ---: | ---: | ---: |", flush=True)
        for after in sorted(minutes):
            time.sleep(max(0.0, began + after * 60 - LAST_S - time.monotonic()))
            first = {name: processor_s(tree(node.process.pid)) for name, node in nodes.items()}
            since = time.monotonic()
            time.sleep(LAST_S)
            for name, node in nodes.items():
                own = tree(node.process.pid)
                share = (processor_s(own) - first[name]) / (time.monotonic() - since)
                cells = (name, f"{after:g}", str(len(own)), f"{memory_mb(own):.0f}", f"{share:.1%}")
                print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(list(map(float, sys.argv[1:])) or [1.0])
