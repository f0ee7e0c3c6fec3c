"""Validation of files that visitors send, each in a process of its own with bounds.

`python -m cli.node.validate_file` reads a file from stdin and prints the result as JSON. The kernel
bounds its time and memory, so that a hostile file ends this process alone.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Any, Final

import orjson

from capdex.errors import Code, InvalidInput, Unavailable
from capdex.net.turns import Turns
from indexer.workers.main import CPU_S, bound_memory

COMMAND: Final = (sys.executable, "-P", "-m", "cli.node.validate_file")
WAIT_S: Final = 8.0  # wall clock, with the wait for a turn and the start of the process
MAX_AT_ONCE: Final = 1
MAX_WAITING: Final = 8  # files; those of one client fill half of it at most


class FileValidation:
    """Validates files in processes of their own: one at a time, in fair turns of the clients."""

    def __init__(self) -> None:
        self._turns = Turns(MAX_AT_ONCE, MAX_WAITING)

    async def __call__(self, data: bytes, client: str) -> dict[str, Any]:
        """Return the `verdict` and `problems` that `capdex validate` finds in a client's file.

        Raises Unavailable RATE_LIMITED if too many files of the client wait, or SERVICE_UNAVAILABLE
        if the node is too busy, and InvalidInput TOO_LARGE for a file over the bounds.
        """
        try:
            async with asyncio.timeout(WAIT_S), self._turns.turn(client):
                answer = await _run(data)
        except TimeoutError:
            raise Unavailable(
                "the node is too busy to check a file",
                Code.SERVICE_UNAVAILABLE,
                fix="try again in a minute, or run capdex validate on your machine",
            ) from None
        found: dict[str, Any] = orjson.loads(answer)
        return found


async def _run(data: bytes) -> bytes:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*COMMAND, stdin=pipe, stdout=pipe)
    try:
        answer, _ = await process.communicate(data)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0 or not answer:
        raise InvalidInput(
            f"the file cannot be checked within {CPU_S:g} s and the memory of a node's worker",
            Code.TOO_LARGE,
            fix="shorten its schema and its patterns, or run capdex validate on your machine",
        )
    return answer


def main() -> None:
    """Validate the file on stdin and print the result."""
    from publisher.authoring.validate import PackageFile, validate  # before the memory is bounded

    bound_memory()
    signal.setitimer(signal.ITIMER_PROF, CPU_S)  # SIGPROF ends the process
    found = validate(PackageFile("file", sys.stdin.buffer.read()))
    problems = [problem.to_json() for problem in found.problems]
    sys.stdout.buffer.write(orjson.dumps({"verdict": found.verdict, "problems": problems}))


if __name__ == "__main__":
    main()
