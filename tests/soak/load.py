"""load.py [SECONDS] [--names N] [--rate N] [--hostile N]: resolves beside hostile connections.

A node with 1 024 descriptors and an index of N packages is asked for RATE resolutions a second,
however long its answers take, over 32 kept connections, while as many hostile connections as
`--hostile` says hold it, and come again when they are cut. Printed: p50 and p99 of the answers,
each from the moment at which it was due, errors, and the node's memory before and after.
"""

# ruff: noqa: T201, S311 - a script prints; chance is no secret
from __future__ import annotations

import argparse
import asyncio
import random
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

from hostile import Hostile

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1] / "benchmarks" / "service"))
import filled  # noqa: E402
from client import Load, client  # noqa: E402
from questions import RESOLVE_MODERN, V1  # noqa: E402
from servers import beating, node, scratch, tree  # noqa: E402

CONNECTIONS = 32
DESCRIPTORS = 1024
# Loopback has no limits of its own; the hostile connections say that a proxy brings them.
BEHIND_A_PROXY = ("--trusted-proxy", "127.0.0.1")
P99_MS = 30.0
GROWTH = 1.1  # of memory, from the warm start to the end
PAUSE_S = 5.0


def memory_mib(process: int) -> float:
    """Return the resident memory of a process and all that it started."""
    pages = sum(int(Path(f"/proc/{one}/statm").read_text().split()[1]) for one in tree(process))
    return pages * 4096 / (1 << 20)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float, nargs="?", default=300.0)
    parser.add_argument("--names", type=int, default=100_000)
    parser.add_argument("--rate", type=float, default=1000.0)
    parser.add_argument("--hostile", type=int, default=5000)
    given = parser.parse_args()
    with ExitStack() as parts:
        folder = scratch()
        url, blocks = f"sqlite:///{folder}/index.db", folder / "blocks"
        filled.fill([url], asyncio.run(filled.make(given.names)), blocks)
        parts.enter_context(beating([url]))
        one = parts.enter_context(
            node("capdex", url, blocks, folder, *BEHIND_A_PROXY, descriptors=DESCRIPTORS)
        )
        one.names = given.names
        asker = parts.enter_context(client())
        luck = random.Random(1)
        requests = RESOLVE_MODERN.requests(one, luck) + V1.requests(one, luck)
        luck.shuffle(requests)
        # Asked once, so that what the node keeps of answers is there before its memory is measured.
        asker.put(Load(one.port, requests, CONNECTIONS, 3600.0, count=len(requests)))
        before, most, over = memory_mib(one.process), [0.0], threading.Event()

        def look() -> None:
            while not over.wait(PAUSE_S):
                most[0] = max(most[0], memory_mib(one.process))

        hostile = Hostile(one.port, given.hostile) if given.hostile else None
        looking = threading.Thread(target=look)
        looking.start()
        if hostile is not None:
            parts.enter_context(hostile)
            hostile.pressing()
        found = asker.put(
            Load(one.port, requests, CONNECTIONS, given.seconds, one.counted(), rate=given.rate)
        )
        opened = hostile.end() if hostile is not None else 0
        over.set()
        looking.join()
        after = memory_mib(one.process)
    times = sorted(found.times_ms)
    p50, p99 = times[len(times) // 2], times[len(times) * 99 // 100]
    spent = found.processor_s[0] / found.seconds
    print(f"{len(times)} resolutions in {found.seconds:.1f} s of {given.names} packages")
    print(f"{opened} hostile connections were opened, {given.hostile} at a time")
    print(f"p50 {p50:.2f} ms, p99 {p99:.2f} ms, the longest {times[-1]:.2f} ms")
    print(
        f"processor {spent:.0%} of one; memory {before:.0f} MiB, {after:.0f} at the end,"
        f" {max(most[0], after):.0f} at most"
    )
    print(f"{found.errors} errors {found.example[:300]!r}")
    failed = [p99 >= P99_MS, found.errors > 0, after > before * GROWTH]
    print(f"{3 - sum(failed)} passed, {sum(failed)} failed")
    return 1 if any(failed) else 0


if __name__ == "__main__":
    sys.exit(main())
