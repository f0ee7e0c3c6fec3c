"""load.py [SECONDS] [--names N] [--rate N] [--searches N] [--hostile N] [--releases N]: its load.

A node with 1 024 descriptors and an index of N packages is asked for RATE resolutions and SEARCHES
searches a second, however long its answers take, each over 32 kept connections, while as many
hostile connections as `--hostile` says hold it, and come again when they are cut. Printed: p50 and
p99 of the answers, each from the moment at which it was due, errors, and the node's memory before
and after.
"""

# ruff: noqa: T201, S311 - a script prints; random numbers here are not secret
from __future__ import annotations

import argparse
import asyncio
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

from hostile import Hostile

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parents[1] / "benchmarks" / name) for name in ("service", "search")]
import filled  # noqa: E402
import texts  # noqa: E402
from client import Client, Found, Load, client  # noqa: E402
from questions import MODERN, RESOLVE_MODERN, V1, call  # noqa: E402
from servers import Server, beating, node, scratch, tree  # noqa: E402

CONNECTIONS = 32
DESCRIPTORS = 1024
# Loopback has no limits of its own; the hostile connections say that a proxy brings them.
BEHIND_A_PROXY = ("--trusted-proxy", "127.0.0.1")
P99_MS = {"resolutions": 30.0, "searches": 50.0}
BUILT_S = 600.0  # within which the first search is answered
GROWTH = 1.1  # of memory, from the warm start to the end
PAUSE_S = 5.0
ALONE_LOOKS = 5  # of a second each, in which the node has no process beside it


def memory_mib(process: int) -> float:
    """Return the resident memory of a process and all that it started."""
    pages = 0
    for one in tree(process):
        with suppress(OSError):  # it may have ended since
            pages += int(Path(f"/proc/{one}/statm").read_text().split()[1])
    return pages * 4096 / (1 << 20)


def search_requests(server: Server) -> list[bytes]:
    """Return searches of one word to whole questions, in random order."""
    asked = [each for kind in texts.questions(server.names).values() for each in kind]
    random.Random(2).shuffle(asked)
    tool = "search_capabilities"
    return [call(server, MODERN, tool, {"query_string": each, "limit": 10}) for each in asked]


def warm(asker: Client, load: Load) -> None:
    """Put a load on a node whose search may still be built."""
    until = time.monotonic() + BUILT_S
    while True:
        try:
            asker.put(load)
        except AssertionError:
            if time.monotonic() > until:
                raise
            time.sleep(1)
        else:
            return


def report(what: str, found: Found) -> list[bool]:
    """Print the times and the errors of a load; return which bounds it missed."""
    times = sorted(found.times_ms)
    p50, p99 = times[len(times) // 2], times[len(times) * 99 // 100]
    print(f"{len(times)} {what} in {found.seconds:.1f} s")
    print(f"p50 {p50:.2f} ms, p99 {p99:.2f} ms, the longest {times[-1]:.2f} ms")
    print(f"{found.errors} errors {found.example[:300]!r}")
    return [p99 >= P99_MS[what], found.errors > 0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float, nargs="?", default=300.0)
    parser.add_argument("--names", type=int, default=100_000)
    parser.add_argument("--rate", type=float, default=1000.0)
    parser.add_argument("--searches", type=float, default=0.0)
    parser.add_argument("--hostile", type=int, default=5000)
    parser.add_argument("--releases", type=int, default=0)
    given = parser.parse_args()
    with ExitStack() as parts:
        folder = scratch()
        url, blocks = f"sqlite:///{folder}/index.db", folder / "blocks"
        describe = texts.describe if given.searches else filled.describe
        more = int(given.releases * (given.seconds + 60))
        made = asyncio.run(filled.make(given.names + more, describe))
        filled.fill([url], made[: given.names], blocks)
        beat = parts.enter_context(ExitStack())
        beat.enter_context(beating([url]))
        server = parts.enter_context(
            node("capdex", url, blocks, folder, *BEHIND_A_PROXY, descriptors=DESCRIPTORS)
        )
        server.names = given.names
        asker = parts.enter_context(client())
        luck = random.Random(1)
        requests = RESOLVE_MODERN.requests(server, luck) + V1.requests(server, luck)
        luck.shuffle(requests)
        # Asked once, so that what the node keeps of answers is there before its memory is measured.
        asker.put(Load(server.port, requests, CONNECTIONS, 3600.0, count=len(requests)))
        loads = dict[str, Load]()
        askers = {"resolutions": asker}
        if given.searches:
            searches = search_requests(server)
            askers["searches"] = parts.enter_context(client())
            warm(askers["searches"], Load(server.port, searches, 2, 3600.0, count=len(searches)))
            loads["searches"] = Load(
                server.port, searches, CONNECTIONS, given.seconds, rate=given.searches
            )
        alone = 0
        while alone < ALONE_LOOKS:  # those that build end before those that encode begin
            time.sleep(1)
            alone = alone + 1 if len(tree(server.process)) == 1 else 0
        counted = server.counted()  # not before: those beside it have ended by now
        loads["resolutions"] = Load(
            server.port, requests, CONNECTIONS, given.seconds, counted, rate=given.rate
        )
        blocks_took: list[float] = []
        if given.releases:
            beat.close()
            blocks_took = parts.enter_context(
                filled.releasing(url, made[given.names :], given.releases)
            )
        before, most, over = memory_mib(server.process), [0.0], threading.Event()

        def look() -> None:
            while not over.wait(PAUSE_S):
                most[0] = max(most[0], memory_mib(server.process))

        hostile = Hostile(server.port, given.hostile) if given.hostile else None
        looking = threading.Thread(target=look)
        looking.start()
        if hostile is not None:
            parts.enter_context(hostile)
            hostile.pressing()
        with ThreadPoolExecutor() as threads:
            put = {what: threads.submit(askers[what].put, load) for what, load in loads.items()}
        outcomes = {what: each.result() for what, each in put.items()}
        opened = hostile.end() if hostile is not None else 0
        over.set()
        looking.join()
        after = memory_mib(server.process)
    if blocks_took:
        took = sorted(blocks_took)
        print(f"{len(took)} blocks of {given.releases} releases: the median was judged and listed")
        print(f"{took[len(took) // 2]:.2f} s after its announcement, the slowest {took[-1]:.2f} s")
    spent = outcomes["resolutions"].processor_s[0] / outcomes["resolutions"].seconds
    print(f"{given.names} packages, {opened} hostile connections, {given.hostile} at a time")
    failed = [missed for what, each in outcomes.items() for missed in report(what, each)]
    print(
        f"processor {spent:.0%} of one; memory {before:.0f} MiB, {after:.0f} at the end,"
        f" {max(most[0], after):.0f} at most"
    )
    failed.append(not given.releases and after > before * GROWTH)
    print(f"{len(failed) - sum(failed)} passed, {sum(failed)} failed")
    return 1 if any(failed) else 0


if __name__ == "__main__":
    sys.exit(main())
