"""Validation of files that visitors send, in a warm process with bounds.

`python -m capdex_cli.node.validate_file` is a worker as those of `capdex_indexer.workers`, whose
answers are JSON. The kernel bounds its time and memory, so that a hostile file ends this process
alone. Files that a package names are not read: visitors would learn what this machine has.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Any, Final

import orjson

from capdex.errors import Code, InvalidInput, Unavailable
from capdex.net.turns import Turns
from capdex_indexer.workers.frames import Work, WorkStatus, make_request
from capdex_indexer.workers.main import CPU_S, serve
from capdex_indexer.workers.process import WorkerProcess

COMMAND: Final = (sys.executable, "-P", "-m", "capdex_cli.node.validate_file")
WAIT_S: Final = 8.0  # wall clock, with the wait for a turn and the start of the process
IDLE_S: Final = 300.0  # that the process is kept after a file: it holds 66 MB
MAX_AT_ONCE: Final = 1
MAX_WAITING: Final = 8  # files; those of one client fill half of it at most


class FileValidation:
    """Validates files one at a time, in fair turns of the clients.

    The process starts with the first file, since most nodes never get one, and then stays warm: a
    start takes 0.4 s of processor time, a file of usual size 1 ms.
    """

    def __init__(self) -> None:
        self._turns = Turns(MAX_AT_ONCE, MAX_WAITING)
        self._worker: asyncio.Task[WorkerProcess] | None = None
        self._idle: asyncio.TimerHandle | None = None

    async def __call__(self, data: bytes, client: str) -> dict[str, Any]:
        """Return the `verdict` and `problems` that `capdex validate` finds in a client's file.

        Raises Unavailable RATE_LIMITED if too many files of the client wait, or SERVICE_UNAVAILABLE
        if the node is too busy, and InvalidInput TOO_LARGE for a file over the bounds.
        """
        try:
            async with asyncio.timeout(WAIT_S), self._turns.turn(client):
                answer = await self._check(data)
        except (TimeoutError, EOFError, OSError):
            raise Unavailable(
                "the node is too busy to check a file",
                Code.SERVICE_UNAVAILABLE,
                fix="try again in a minute, or run capdex validate on your machine",
            ) from None
        judgement: dict[str, Any] = orjson.loads(answer)
        return judgement

    async def close(self) -> None:
        """End the process."""
        if self._idle is not None:
            self._idle.cancel()
        starting, self._worker = self._worker, None
        if starting is not None:
            starting.cancel()
            (worker,) = await asyncio.gather(starting, return_exceptions=True)
            if isinstance(worker, WorkerProcess):
                worker.kill()
                await worker.end()

    async def _check(self, data: bytes) -> bytes:
        """Return the result for a file; raise EOFError or OSError if somebody ended the process."""
        if self._idle is not None:
            self._idle.cancel()
        if self._worker is None or (self._worker.done() and self._worker.exception() is not None):
            self._worker = asyncio.create_task(WorkerProcess.start(COMMAND))
        # A start that takes longer than this file may wait goes on for the next one.
        worker = await asyncio.shield(self._worker)
        status = None
        try:
            worker.send([make_request(Work.VALIDATE, None, data)])
            status, answer = await worker.answer()
        except (EOFError, OSError):
            if await worker.end() in (-signal.SIGKILL, -signal.SIGTERM):
                raise  # the machine, for example, but not the file
        finally:
            if status is WorkStatus.DONE:
                loop = asyncio.get_running_loop()
                self._idle = loop.call_later(IDLE_S, self._end, worker)
            else:
                self._end(worker)
        if status is not WorkStatus.DONE:
            raise InvalidInput(
                f"the file cannot be checked within {CPU_S:g} s and the memory of a node's worker",
                Code.TOO_LARGE,
                fix="shorten its schema and its patterns, or run capdex validate on your machine",
            )
        return answer

    def _end(self, worker: WorkerProcess) -> None:
        worker.kill()
        self._worker = None


def main() -> None:
    """Validate the files that arrive until stdin closes."""
    from capdex_publisher.authoring.validate import PackageFile, validate

    def answer(_work: Work, _header: Any, data: bytes) -> tuple[WorkStatus, bytes]:
        validation = validate(PackageFile("file", data), with_files=False)
        problems = [problem.to_json() for problem in validation.problems]
        return WorkStatus.DONE, orjson.dumps({"verdict": validation.verdict, "problems": problems})

    validate(PackageFile("file", b""))  # imports the rest before the memory is bounded
    serve(answer)


if __name__ == "__main__":
    main()
