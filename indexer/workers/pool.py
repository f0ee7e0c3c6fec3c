"""Judging in worker processes: a package that kills or hangs its worker costs only itself.

Workers that have nothing to judge do other work aside, such as reading long replies.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self, TypeVar, cast

from capdex.package import RejectedPackage, VerifiedPackage, judge
from capdex.problems import Reason
from capdex.registry.events import Announcement
from indexer.projection.package_rows import Report, report
from indexer.workers.main import Frame, attempt, frame
from indexer.workers.process import Child

JUDGE_S: Final = 10.0  # wall clock; the worker's own bound is 1 s of CPU
# -P: never a module of the directory that the node was started in
COMMAND: Final = (sys.executable, "-P", "-m", "indexer.workers.main")
TRIES: Final = 2
MAX_BATCH: Final = 8  # packages handed over at once
FEW: Final = 4  # packages before a worker, and it is handed more: neither side waits for the other
MAX_BATCH_BYTES: Final = 256 * 1024
MAX_ASIDE_BYTES: Final = 8 * 1024 * 1024  # what is made of it is smaller

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Parked:
    """Nobody could judge the package within its bounds: no verdict, an operator may try again."""

    reason: Reason
    message: str


Judged = VerifiedPackage | RejectedPackage | Parked


@dataclass(eq=False, slots=True)
class _Question:
    """A call to be made; `worker` is the one that makes it now."""

    frame: Frame
    answer: asyncio.Future[object]
    worker: Child | None = None

    def settle(self, answer: object) -> None:
        """Give the answer, an exception or not, to whoever still waits for it."""
        self.worker = None
        if self.answer.done():
            return
        if isinstance(answer, BaseException):
            self.answer.set_exception(answer)
        else:
            self.answer.set_result(answer)


class Verifier:
    """A few worker processes around `capdex.package.judge`, each on one package at a time.

    Where many packages wait, a worker is handed several at once, and more before it has done those;
    it answers each by itself, so that what ends it is known, and the rest is handed out again.
    """

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
        self._waiting: deque[_Question] = deque()
        self._some = asyncio.Event()  # set while there may be questions waiting
        self._serving: list[asyncio.Task[None]] = []
        self._idle = 0  # workers
        # a processor is left to whoever uses what is read aside
        self._asides = asyncio.Semaphore(max(1, self._count - 1))

    async def __aenter__(self) -> Self:
        workers = await asyncio.gather(*(Child.start(self._command) for _ in range(self._count)))
        self._serving = [asyncio.create_task(self._serve(worker)) for worker in workers]
        return self

    async def __aexit__(self, *exc: object) -> None:
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        for question in self._waiting:
            question.answer.cancel()

    async def judge(self, announcement: Announcement, data: bytes) -> Judged:
        """Judge one package; waits for an idle worker, and replaces one that did not survive.

        A worker may end for want of the machine's memory, or stand still with the machine: the
        package has a second try.
        """
        answer = await self._bounded(partial(judge, announcement, data))
        return cast(Judged, answer)

    async def report(self, announcement: Announcement, data: bytes) -> Report | Parked:
        """As `judge`, for whoever stores it."""
        answer = await self._bounded(partial(report, announcement, data))
        return cast(Report | Parked, answer)

    async def _bounded(self, work: Callable[[], object]) -> object:
        """What a call about a package gives, or that it met its bounds."""
        asked = frame(work)
        for _ in range(TRIES):
            try:
                answer = await self._ask(asked)
            except (EOFError, OSError):
                continue
            if not isinstance(answer, str):
                return answer
            return Parked(Reason.WORKER_LIMIT, f"it could not be judged: {answer}")
        why = "judging it took more time or memory than it may; the worker ended"
        return Parked(Reason.WORKER_LIMIT, why)

    async def aside(self, work: Callable[[], T]) -> T:
        """What the work gives, or raises: done by a worker that is idle now, or else in a thread.

        Packages hardly wait for it, nor it for them. What fails in a worker is done again in a
        thread, where it raises what it raises.
        """
        async with self._asides:
            if len(self._waiting) < self._idle:
                asked = frame(partial(attempt, work))
                if _size(asked) <= MAX_ASIDE_BYTES:
                    with suppress(EOFError, OSError):
                        found: Any = await self._ask(asked, abandon=False)
                        if isinstance(found, list) and found:
                            return cast(T, found[0])
            return await asyncio.to_thread(work)

    async def _ask(self, asked: Frame, *, abandon: bool = True) -> object:
        """What a worker answers: a judgement, or a text that says which bound was met."""
        question = _Question(asked, asyncio.get_running_loop().create_future())
        self._waiting.append(question)
        self._some.set()
        try:
            return await question.answer
        except asyncio.CancelledError:
            if abandon and question.worker is not None:  # nobody waits for what it does
                question.worker.kill()
            raise

    async def _serve(self, worker: Child) -> None:
        """Hand out what waits to one worker after another, until it is cancelled."""
        asked: deque[_Question] = deque()  # what the worker has before it
        try:
            while True:
                self._idle += 1
                try:
                    await self._some.wait()
                finally:
                    self._idle -= 1
                asked += self._take()
                try:
                    if not worker.alive:
                        await worker.end()
                        worker = await Child.start(self._command)
                    await self._work(worker, asked)
                except Exception as error:  # noqa: BLE001 - whoever asked is told, and may ask again
                    worker.kill()
                    while asked:
                        asked.popleft().settle(error)
                finally:
                    self._waiting.extendleft(reversed(asked))
                    asked.clear()
                    if self._waiting:
                        self._some.set()
        except BaseException:
            worker.kill()
            raise
        finally:
            await worker.end()

    def _take(self) -> list[_Question]:
        """A fair share of what waits."""
        share = min(MAX_BATCH, -(-len(self._waiting) // self._count))
        taken: list[_Question] = []
        size = 0
        while self._waiting and len(taken) < share and size < MAX_BATCH_BYTES:
            question = self._waiting.popleft()
            if not question.answer.done():  # nobody waits for it any longer
                taken.append(question)
                size += _size(question.frame)
        if not self._waiting:
            self._some.clear()
        return taken

    async def _work(self, worker: Child, asked: deque[_Question]) -> None:
        """Have one worker answer in turn, as far as it gets: what it did not come to is left."""
        worker.ask(question.frame for question in asked)
        while asked and worker.alive:
            if len(asked) <= FEW and not self._idle and (more := self._take()):
                asked += more
                worker.ask(question.frame for question in more)
            asked[0].worker = worker
            try:
                async with asyncio.timeout(self._judge_s):
                    answer = await worker.answer()
            except TimeoutError as error:  # the machine stood still, as like as not
                worker.kill()
                answer = error
            except (EOFError, OSError) as error:
                worker.alive, answer = False, error
                if await worker.end() == -signal.SIGPROF:  # it would meet that bound again
                    answer = "it took more processor time than it may"
            if isinstance(answer, str):
                worker.kill()  # what is left of its memory is not the next package's affair
            asked.popleft().settle(answer)


def _size(frame: Frame) -> int:
    return sum(map(len, frame))
