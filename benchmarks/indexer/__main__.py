"""python benchmarks/indexer [PART …]: how fast, how lean and how fresh an index is.

Parts: backfill, memory, restart, freshness, packages (all of them by default). Whatever is
compared takes turns within one run, each in a process of its own. ROUNDS (5), DENSE and SPARSE
(events of the two chains), RELEASES (of memory and restart) and PONDER (a folder to install it in,
kept; `no` leaves it out) are read from the environment.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

import ponder
from chain import Chain, filled
from databases import Fresh, databases

HERE = Path(__file__).resolve().parent
ROUNDS = int(os.environ.get("ROUNDS", "5"))
DENSE = int(os.environ.get("DENSE", "100000"))
SPARSE = int(os.environ.get("SPARSE", "20000"))
RELEASES = int(os.environ.get("RELEASES", "100000"))
RANGES = {100: (10, 50, 200, 1000), 5: (100, 500, 2000, 4000)}  # blocks, by events in one


def run(script: str, *arguments: object) -> dict[str, Any]:
    """What a script beside this one measured, in a process of its own."""
    command = [sys.executable, str(HERE / script), *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def table(title: str, rows: list[tuple[str, ...]]) -> None:
    print(f"\n### {title}\n")
    head, *rest = rows
    for row in (head, ("---", *("---:" for _ in head[1:])), *rest):
        print("| " + " | ".join(row) + " |")
    sys.stdout.flush()


def backfill(events: int, per_block: int, fresh: Fresh, engine: Path | None) -> None:
    """Bare loops, us on both databases, and Ponder, in turn on one chain."""
    rates: dict[str, list[float]] = defaultdict(list)
    with filled(events, per_block) as chain:
        for number in range(ROUNDS):
            for name, rate in one_round(chain, fresh, engine):
                rates[name].append(rate)
                print(f"round {number + 1}: {name:28s} {rate:10,.0f} events/s", file=sys.stderr)
    medians = {name: median(found) for name, found in rates.items()}
    best = max(rate for name, rate in medians.items() if name.startswith("bare"))
    theirs = medians.get("Ponder")
    rows: list[tuple[str, ...]] = [("", "events/s", "spread", "of the best bare loop", "× Ponder")]
    for name, rate in medians.items():
        spread = f"{min(rates[name]):,.0f}–{max(rates[name]):,.0f}"
        times = f"{rate / theirs:.1f}" if theirs else ""
        rows.append((name, f"{rate:,.0f}", spread, f"{rate / best:.3f}", times))
    table(f"{events} events, {per_block} a block, medians of {ROUNDS}", rows)


def one_round(chain: Chain, fresh: Fresh, engine: Path | None) -> list[tuple[str, float]]:
    """Events a second of each contestant, once."""
    place = (chain.url, chain.registry, chain.first)
    found = []
    for blocks in RANGES[chain.per_block]:
        took = run("bare.py", *place, chain.last, blocks)
        assert took["events"] == chain.events, took
        found.append((f"bare, {blocks} blocks", chain.events / took["seconds"]))
    for kind, name in (("sqlite", "capdex, SQLite"), ("postgres", "capdex, PostgreSQL")):
        took = run("ours.py", *place, chain.events, fresh(kind))
        found.append((name, chain.events / took["seconds"]))
    if engine is not None:
        seconds = ponder.backfill(engine, chain, fresh("postgres"))
        found.append(("Ponder", chain.events / seconds))
    return found


def main(parts: list[str]) -> None:
    load = os.getloadavg()[0]
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}, load {load:.1f} before"
    )
    with databases() as fresh, tempfile.TemporaryDirectory(prefix="ponder-") as scratch:
        if "backfill" in parts:
            where = os.environ.get("PONDER", scratch)
            engine = None if where == "no" else ponder.install(Path(where))
            backfill(DENSE, 100, fresh, engine)
            backfill(SPARSE, 5, fresh, engine)


if __name__ == "__main__":
    main(sys.argv[1:] or ["backfill", "memory", "restart", "freshness", "packages"])
