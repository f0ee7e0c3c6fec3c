"""Pool of worker processes: a package that kills or hangs its worker costs only itself.

Workers judge packages (`capdex.package.judge`). An idle worker also reads long JSON-RPC replies, so
that the node's own process has that time for writing rows.
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
from typing import Any, ClassVar, Final, Self, TypeVar, cast

import msgspec

from capdex.net.rpc.replies import RpcReply
from capdex.net.rpc.transport import read_in_thread
from capdex.problems import Reason
from capdex.registry.events import Announcement
from capdex_indexer.projection.block_range import LogReader
from capdex_indexer.projection.package_rows import Judgement
from capdex_indexer.workers.frames import (
    MAX_REPLY_BYTES,
    Frame,
    WorkStatus,
    judge_request,
    read_columns,
    read_request,
)
from capdex_indexer.workers.process import KILLED, WorkerLost, WorkerProcess, killed

JUDGE_S: Final = 10.0  # wall clock; the worker's own bound is 1 s of CPU
# -P: never a module of the directory that the node was started in
COMMAND: Final = (sys.executable, "-P", "-m", "capdex_indexer.workers.main")
TRIES: Final = 2
REST_S: Final = 60.0  # without work, then a worker ends: it holds 35 MB and starts in 0.5 s
MAX_BATCH: Final = 8  # packages sent at once
REFILL_AT: Final = 4  # packages left at a worker, and it is sent more: neither side waits
MAX_BATCH_BYTES: Final = 256 * 1024

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Parked:
    """A package that could not be judged within the bounds: no verdict, to be re-armed by hand."""

    reason: Reason
    message: str
    verdict: ClassVar[None] = None


class LimitExceeded(Exception):
    """The work met a bound of its worker; another try would meet it again."""


@dataclass(eq=False, slots=True)
class _Request:
    """A request that waits for its answer; `worker` is the process that works on it now.

    `read` makes a value of the answer's bytes and raises ValueError unless they are well formed.
    """

    frame: Frame
    read: Callable[[bytes], Any]
    answer: asyncio.Future[Any]
    worker: WorkerProcess | None = None

    def settle(self, answer: object) -> None:
        """Resolve the future with a value or an exception, unless it was cancelled."""
        self.worker = None
        if self.answer.done():
            return
        if isinstance(answer, BaseException):
            self.answer.set_exception(answer)
        else:
            self.answer.set_result(answer)


class Verifier:
    """A few worker processes around `capdex.package.judge`, each on one package at a time.

    When many packages wait, a worker is sent several at once, and more before it has done those. It
    answers one by one, so the package that ends a worker is known and the others are sent again.

    One process starts at once, which shows that they start; the others start when packages wait.
    Each ends after REST_S without work.
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
        self._waiting: deque[_Request] = deque()
        self._arrived = asyncio.Event()  # set while there may be waiting requests
        self._serving: list[asyncio.Task[None]] = []
        self._idle = 0  # workers
        self.trouble: WorkerLost | None = None
        # one processor is left to the process that uses the replies
        self._replies = asyncio.Semaphore(max(1, self._count - 1))

    async def __aenter__(self) -> Self:
        workers = [WorkerProcess() for _ in range(self._count - 1)]
        workers.append(await WorkerProcess.start(self._command))
        self._serving = [asyncio.create_task(self._serve(worker)) for worker in workers]
        return self

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.sleep(0)  # a task must have begun, or its clean-up does not run
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        for request in self._waiting:
            request.answer.cancel()

    async def judge(self, announcement: Announcement, data: bytes) -> Judgement | Parked:
        """Judge one package on a worker; Parked if it met a bound of time or memory.

        A worker may also be late because the machine stood still: the package has a second try on
        another worker. Raises WorkerLost, the state of `trouble` until the next judgement, if one
        was killed and the other try brought no judgement, either.
        """
        frame, read = judge_request(announcement, data), partial(Judgement.read, announcement, data)
        lost: WorkerLost | None = None
        for _ in range(TRIES):
            try:
                judgement = cast(Judgement, await self._send(frame, read))
            except LimitExceeded as limit:
                return Parked(Reason.WORKER_LIMIT, f"it could not be judged: {limit}")
            except WorkerLost as error:
                lost = error
            except (EOFError, OSError):
                continue
            else:
                self.trouble = None
                return judgement
        if lost is not None:
            self.trouble = lost
            raise lost
        why = "judging it took more time or memory than it may; the worker ended"
        return Parked(Reason.WORKER_LIMIT, why)

    async def read_reply(
        self, label: str, answer: RpcReply, id_: int, read: Callable[[Any], T]
    ) -> T:
        """Read a long JSON-RPC reply on an idle worker, or in a thread if none is idle.

        Workers read replies of `eth_getLogs` of up to MAX_REPLY_BYTES. A reply that fails on a
        worker is read again in a thread, which raises the error.
        """
        async with self._replies:
            workers_wait = len(self._waiting) < self._idle
            if workers_wait and isinstance(read, LogReader) and len(answer.data) <= MAX_REPLY_BYTES:
                frame = read_request(label, answer, id_, read)
                with suppress(EOFError, OSError, ValueError, LimitExceeded, WorkerLost):
                    columns = partial(read_columns, reader=read)
                    return cast(T, await self._send(frame, columns, abandon=False))
            return await read_in_thread(label, answer, id_, read)

    async def _send(
        self, frame: Frame, read: Callable[[bytes], Any], *, abandon: bool = True
    ) -> Any:
        """Return a worker's answer; raise LimitExceeded, or why there is none.

        On cancellation the worker is ended if it is at work on this and may `abandon` it.
        """
        request = _Request(frame, read, asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        self._arrived.set()
        try:
            return await request.answer
        except asyncio.CancelledError:
            if abandon and request.worker is not None:
                request.worker.kill()
            raise

    async def _serve(self, worker: WorkerProcess) -> None:
        """Send waiting requests to one worker after another, until cancelled."""
        sent: deque[_Request] = deque()  # requests before the worker
        try:
            while True:
                self._idle += 1
                try:
                    async with asyncio.timeout(None if worker.has_ended else REST_S):
                        await self._arrived.wait()
                except TimeoutError:
                    await worker.end()
                    continue
                finally:
                    self._idle -= 1
                if worker.has_ended:
                    await asyncio.sleep(0)  # workers that run take first
                sent += self._take()
                if not sent:
                    continue
                try:
                    if not worker.alive or worker.has_ended:
                        await worker.end()
                        worker = await WorkerProcess.start(self._command)
                    await self._work(worker, sent)
                except Exception as error:  # noqa: BLE001 - the callers get it, and may try again
                    worker.kill()
                    while sent:
                        sent.popleft().settle(error)
                finally:
                    self._waiting.extendleft(reversed(sent))
                    sent.clear()
                    if self._waiting:
                        self._arrived.set()
        except BaseException:
            worker.kill()
            raise
        finally:
            await worker.end()

    def _take(self) -> list[_Request]:
        """Take a fair share of the waiting requests."""
        share = min(MAX_BATCH, -(-len(self._waiting) // self._count))
        taken: list[_Request] = []
        size = 0
        while self._waiting and len(taken) < share and size < MAX_BATCH_BYTES:
            request = self._waiting.popleft()
            if not request.answer.done():  # else its caller was cancelled
                taken.append(request)
                size += sum(map(len, request.frame))
        if not self._waiting:
            self._arrived.clear()
        return taken

    async def _work(self, worker: WorkerProcess, sent: deque[_Request]) -> None:
        """Have one worker answer in turn until it ends; what it did not answer stays in `sent`."""
        worker.send(request.frame for request in sent)
        while sent and worker.alive:
            if len(sent) <= REFILL_AT and not self._idle and (more := self._take()):
                sent += more
                worker.send(request.frame for request in more)
            sent[0].worker = worker
            answer: Any
            try:
                async with asyncio.timeout(self._judge_s):
                    status, body = await worker.answer()
                answer = _read(sent[0], status, body)
            except TimeoutError as error:  # most likely the machine stood still
                answer = error
            except (EOFError, OSError) as error:
                worker.alive, answer = False, error
                code = await worker.end()
                if code == -signal.SIGPROF:  # it would meet that bound again
                    answer = LimitExceeded("it took more processor time than it may")
                elif code in KILLED:
                    answer = killed()
            if isinstance(answer, Exception) and not isinstance(answer, _Failed):
                worker.kill()  # what is left of its memory might not do for the next package
            sent.popleft().settle(answer)


class _Failed(ValueError):
    """The work raised an error on the worker, which goes on."""


def _read(request: _Request, status: WorkStatus, body: bytes) -> Any:
    """Return the value of an answer, or the exception that stands for it."""
    if status is WorkStatus.OUT_OF_MEMORY:
        return LimitExceeded("it took more memory than it may")
    if status is WorkStatus.FAILED:
        return _Failed("the work failed on the worker")
    try:
        return request.read(body)
    except (ValueError, msgspec.DecodeError) as error:
        return EOFError(f"the worker's answer is malformed: {error}")
