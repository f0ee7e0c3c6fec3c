"""Judging in worker processes: a package that kills or hangs its worker costs only itself."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Self

from capdex.errors import Unavailable
from capdex.events import Announcement
from capdex.package import RejectedPackage, VerifiedPackage
from capdex.problems import Reason
from indexer.worker import LENGTH

JUDGE_S: Final = 10.0  # wall clock; the worker's own bound is 1 s of CPU
# -P: never a module of the directory that the node was started in
COMMAND: Final = (sys.executable, "-P", "-m", "indexer.worker")
TRIES: Final = 2
START_S: Final = 60.0  # about 0.5 s on an idle machine
MAX_FRAME_BYTES: Final = 16 * 1024 * 1024  # a judged package is its bytes a few times over


@dataclass(frozen=True, slots=True)
class Parked:
    """Nobody could judge the package within its bounds: no verdict, an operator may try again."""

    reason: Reason
    message: str


Judged = VerifiedPackage | RejectedPackage | Parked


class Verifier:
    """A few worker processes around `capdex.package.judge`, each on one package at a time."""

    def __init__(
        self,
        workers: int | None = None,
        *,
        judge_s: float = JUDGE_S,
        command: Sequence[str] = COMMAND,
    ) -> None:
        self._count = workers or max(1, min(4, os.cpu_count() or 1))
        self._command = command
        self._judge_s = judge_s
        self._idle: asyncio.Queue[_Worker] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        for worker in await asyncio.gather(
            *(_Worker.start(self._command) for _ in range(self._count))
        ):
            self._idle.put_nowait(worker)
        return self

    async def __aexit__(self, *exc: object) -> None:
        while not self._idle.empty():
            await self._idle.get_nowait().end()

    async def judge(self, announcement: Announcement, data: bytes) -> Judged:
        """Judge one package; waits for an idle worker, and replaces one that did not survive.

        A worker may end for want of the machine's memory, too: the package has a second try.
        """
        for _ in range(TRIES):
            try:
                answer = await self._ask(announcement, data)
            except TimeoutError:
                answer = f"judging it took more than {self._judge_s:g} s"
            except (EOFError, OSError):
                continue
            if isinstance(answer, VerifiedPackage | RejectedPackage):
                return answer
            return Parked(Reason.WORKER_LIMIT, str(answer))
        why = "judging it took more time or memory than it may; the worker ended"
        return Parked(Reason.WORKER_LIMIT, why)

    async def _ask(self, announcement: Announcement, data: bytes) -> object:
        """What a worker answers: a judgement, or a text that says which bound was met."""
        worker = await self._idle.get()
        try:
            if not worker.alive:
                await worker.end()
                worker = await _Worker.start(self._command)
            async with asyncio.timeout(self._judge_s):
                answer = await worker.ask((announcement, data))
            if isinstance(answer, str):
                worker.kill()  # what is left of its memory is not the next package's affair
            return answer
        except (EOFError, OSError):
            worker.alive = False
            if await worker.end() == -signal.SIGXCPU:  # it would meet that bound again
                return "judging it took more processor time than it may"
            raise
        except BaseException:
            worker.kill()  # also in the middle of a frame: its answer would be the next one's
            raise
        finally:
            self._idle.put_nowait(worker)  # dead or alive: the place in the pool is kept


class _Worker:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.alive = True

    @classmethod
    async def start(cls, command: Sequence[str]) -> _Worker:
        """A worker that has imported everything; raises Unavailable when none starts."""
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for the node, which ends its workers in order
            )
            worker = cls(process)
            try:
                async with asyncio.timeout(START_S):
                    await worker._receive()
            except BaseException:
                worker.kill()
                await worker.end()
                raise
        except (TimeoutError, EOFError, OSError) as error:
            raise Unavailable(
                "no process to judge packages in could be started",
                why=str(error) or type(error).__name__,
                fix="check the machine's memory and its limit of processes",
            ) from None
        return worker

    async def ask(self, question: object) -> Any:
        body = pickle.dumps(question)
        pipe = self._process.stdin
        if pipe is None:
            raise EOFError
        pipe.write(LENGTH.pack(len(body)) + body)
        await pipe.drain()
        return await self._receive()

    async def _receive(self) -> Any:
        pipe = self._process.stdout
        if pipe is None:
            raise EOFError
        (length,) = LENGTH.unpack(await pipe.readexactly(LENGTH.size))
        if length > MAX_FRAME_BYTES:
            raise EOFError
        return pickle.loads(await pipe.readexactly(length))  # noqa: S301 - our own worker

    def kill(self) -> None:
        self.alive = False
        with suppress(ProcessLookupError):
            self._process.kill()

    async def end(self) -> int:
        """Close its stdin, so that it ends by itself, and wait for that; its exit status."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(2):
                return await self._process.wait()
        except TimeoutError:
            self.kill()
            return await self._process.wait()
