"""One worker process (`workers.main`) as the node holds it: requests, answers, its end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Final

from capdex.errors import Unavailable
from capdex_indexer.workers.frames import ANSWER, Frame, WorkStatus

START_S: Final = 60.0  # about 0.5 s on an idle machine
END_S: Final = 2.0
MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024  # a judged package is its bytes a few times over
PIPE_BYTES: Final = 1024 * 1024


KILLED: Final = {-signal.SIGKILL, -signal.SIGTERM, -signal.SIGHUP, -signal.SIGINT}


@dataclass(eq=False)
class WorkerLost(Unavailable):
    """A worker was killed from outside, or none starts: no fault of a package."""


class WorkerProcess:
    """A worker, which has ended if no process is given; `alive` until the node gives up on it."""

    def __init__(self, process: asyncio.subprocess.Process | None = None) -> None:
        self._process = process
        self.alive = True

    @property
    def has_ended(self) -> bool:
        """True if the process has ended; its answers may still be read."""
        return self._process is None or self._process.returncode is not None

    @classmethod
    async def start(cls, command: Sequence[str]) -> WorkerProcess:
        """Start a worker and wait until it is ready; raise WorkerLost when it does not start."""
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for the node, which ends its workers in order
                limit=PIPE_BYTES,
            )
            worker = cls(process)
            try:
                async with asyncio.timeout(START_S):
                    await worker.answer()
            except BaseException:
                worker.kill()
                await worker.end()
                raise
        except (TimeoutError, EOFError, OSError) as error:
            raise WorkerLost(
                "no process to judge packages in could be started",
                why=str(error) or type(error).__name__,
                fix="check the machine's memory and its limit of processes",
            ) from None
        return worker

    def send(self, frames: Iterable[Frame]) -> None:
        """Send requests, without waiting until they are read; raise WorkerLost if it has ended."""
        pipe = self._process.stdin if self._process else None
        try:
            if pipe is not None:
                pipe.writelines(chain.from_iterable(frames))  # in one call of the system, if it can
        except (OSError, RuntimeError):  # the latter of uvloop, for a closed pipe
            raise killed() from None

    async def answer(self) -> tuple[WorkStatus, bytes]:
        """Return the next answer, unchecked; raise EOFError or OSError if the worker has ended."""
        pipe = self._process.stdout if self._process else None
        if pipe is None:
            raise EOFError
        status, length = ANSWER.unpack(await pipe.readexactly(ANSWER.size))
        if length > MAX_ANSWER_BYTES or status not in set(WorkStatus):
            raise EOFError
        return WorkStatus(status), await pipe.readexactly(length)

    def kill(self) -> None:
        """End the process now."""
        self.alive = False
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def end(self) -> int:
        """Close its stdin, wait until it has ended by that, and return its exit status."""
        if self._process is None:
            return 0
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(END_S):
                return await self._process.wait()
        except TimeoutError:
            self.kill()
            return await self._process.wait()


def killed() -> WorkerLost:
    """Return the error for a worker that somebody else has ended."""
    return WorkerLost(
        "the process that judges packages was killed",
        fix="see who kills it, most often the kernel for want of memory",
    )
