"""python benchmarks/indexer [PART …]: how fast, how lean and how fresh an index is.

Parts: backfill, node (memory and restart), freshness, rest, packages; all of them by default.
Whatever is compared takes turns within one run, each in a process of its own. ROUNDS (5), DENSE and
SPARSE (events of the two chains), RELEASES (of memory and restart), MINUTES (of rest: 1), PACKAGES
and PONDER (a folder to install it in, which is kept; `no` leaves it out) are read from the
environment.
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

import node
import ponder
from chain import Chain, filled
from databases import Fresh, databases

HERE = Path(__file__).resolve().parent
ROUNDS = int(os.environ.get("ROUNDS", "5"))
DENSE = int(os.environ.get("DENSE", "100000"))
SPARSE = int(os.environ.get("SPARSE", "20000"))
RELEASES = int(os.environ.get("RELEASES", "100000"))
PACKAGES = int(os.environ.get("PACKAGES", "6_000"))
MINUTES = os.environ.get("MINUTES", "1").split()
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


def watch_node(events: int, fresh: Fresh, folder: Path) -> None:
    """Memory of a backfill, and how soon a node that is started again follows the chain."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with filled(events, 100) as chain:
        place = (chain.url, chain.registry, chain.first, chain.events)
        for number in range(ROUNDS):
            for kind in ("sqlite", "postgres"):
                inside = folder / f"{kind}-{number}"
                inside.mkdir()
                found[kind].append(node.backfill_and_restart(*place, fresh(kind), inside))
                peak_mib, seconds = found[kind][-1]
                said = f"{kind}: {peak_mib:.0f} MiB, following after {seconds:.2f} s"
                print(f"round {number + 1}: {said}", file=sys.stderr)
    rows: list[tuple[str, ...]] = [("", "peak memory, MiB", "from start to following, s")]
    for kind, pairs in found.items():
        memory, restart = zip(*pairs, strict=True)
        rows.append((kind, f"{median(memory):.0f}", f"{median(restart):.2f}"))
    table(f"A node with {events} releases, medians of {ROUNDS}", rows)


def measure_freshness(fresh: Fresh, folder: Path) -> None:
    """A publication sent and mined → its row visible to another process, by websocket heads."""
    rows: list[tuple[str, ...]] = [("", "p50, ms", "p95, ms", "worst, ms")]
    for number in range(ROUNDS):
        inside = folder / f"fresh-{number}"
        inside.mkdir()
        took = sorted(node.freshness(fresh, inside))
        at = [took[len(took) // 2], took[len(took) * 95 // 100], took[-1]]
        rows.append((f"round {number + 1}", *(f"{ms:.1f}" for ms in at)))
    table(f"{node.PUBLICATIONS} publications, SQLite", rows)


def main(parts: list[str]) -> None:
    load = os.getloadavg()[0]
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}, load {load:.1f} before"
    )
    with databases() as fresh, tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        folder = Path(scratch)
        if "backfill" in parts:
            where = os.environ.get("PONDER") or str(folder / "ponder")
            engine = None if where == "no" else ponder.install(Path(where))
            backfill(DENSE, 100, fresh, engine)
            backfill(SPARSE, 5, fresh, engine)
        if "node" in parts:
            watch_node(RELEASES, fresh, folder)
        if "freshness" in parts:
            measure_freshness(fresh, folder)
    if "rest" in parts:
        print("\n### A node at rest, with the examples\n", flush=True)
        subprocess.run([sys.executable, str(HERE / "rest.py"), *MINUTES], check=True)
    if "packages" in parts:
        print("\n### Fetched and verified\n", flush=True)
        command = [sys.executable, str(HERE.parent / "packages.py"), str(PACKAGES), str(ROUNDS)]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    parts = ["backfill", "node", "freshness", "rest", "packages"]
    if unknown := set(sys.argv[1:]) - set(parts):
        sys.exit(
            f"no part of this benchmark: {', '.join(sorted(unknown))}; there are {', '.join(parts)}"
        )
    main(sys.argv[1:] or parts)
