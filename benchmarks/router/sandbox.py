"""What the sandbox adds to a process: plain and sandboxed runs, in turns within one run.

`python benchmarks/router/sandbox.py [RUNS]` runs grep over a small file.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from capdex_router.commands.sandbox.bubblewrap import Sandbox, Surroundings

TARGET_MS = 8.0
ARGV = ("/usr/bin/grep", "-c", "alpha", "notes.txt")


async def measure(runs: int, work: Path) -> bool:
    times: dict[str, list[float]] = {"plain": [], "sandboxed": []}
    sandbox, pipe = Sandbox.find(), asyncio.subprocess.PIPE

    async def plain() -> None:
        process = await asyncio.create_subprocess_exec(*ARGV, cwd=work, stdout=pipe, stderr=pipe)
        await process.communicate()

    async def sandboxed() -> None:
        await sandbox.run(ARGV, Surroundings(work), timeout_s=20)

    for _ in range(runs):
        for run in (plain, sandboxed):
            start = time.perf_counter()
            await run()
            times[run.__name__].append((time.perf_counter() - start) * 1e3)
    for name, found in times.items():
        print(f"{name}: p50 {median(found):.1f} ms, least {min(found):.1f} ms")
    more = median(times["sandboxed"]) - median(times["plain"])
    print(f"the sandbox adds {more:.1f} ms (target {TARGET_MS:g} ms)")
    return more <= TARGET_MS


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        Path(folder, "notes.txt").write_text("alpha\nbeta\n")
        count = int(sys.argv[1]) if len(sys.argv) > 1 else 50
        sys.exit(not asyncio.run(measure(count, Path(folder))))
