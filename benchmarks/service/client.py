"""A client that costs little: raw requests on kept connections, in a process of its own.

Each connection has one request under way. Answers are read by their length or their last chunk,
and must be of status 200 and no error of a tool.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from multiprocessing.connection import Connection
from pathlib import Path
from typing import cast

import uvloop

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
RETRY_S = 0.1
FAILED = b'"isError":true'


@dataclass(frozen=True)
class Load:
    """Requests in turn to a port, over `connections`, for `seconds` or `count` of them.

    With `rate` they are sent at that many a second, however long the answers take: a time is then
    taken from the moment at which the request was due. `counted`: groups of processes whose
    processor time is read before and after.
    """

    port: int
    requests: list[bytes]
    connections: int
    seconds: float
    counted: tuple[tuple[int, ...], ...] = ()
    count: int = 0
    first: int = 0
    rate: float = 0.0


@dataclass(frozen=True)
class Found:
    """The milliseconds of each answer, the seconds of all, and processor seconds by group."""

    times_ms: list[float]
    seconds: float
    processor_s: tuple[float, ...]
    errors: int = 0
    example: bytes = b""
    answer_bytes: int = 0  # of the last answer, with its head


class Asker(asyncio.Protocol):
    """One connection, which asks again as soon as it is answered."""

    def __init__(self, run: Run) -> None:
        self._run, self._part, self._due = run, b"", 0.0
        self.transport: asyncio.Transport | None = None
        self.asking = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def ask(self, request: bytes, due: float) -> None:
        self.asking, self._due = True, due
        assert self.transport is not None
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        if self._part:
            data = self._part + data
        end = data.find(b"\r\n\r\n")
        if end < 0 or not _whole(data, end):
            self._part = data
            return
        self._part, self.asking = b"", False
        self._run.answered(self, time.perf_counter() - self._due, data)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if not self._run.done.done():
            self._run.lost(self)


def _whole(data: bytes, end: int) -> bool:
    head = data[:end].lower()
    at = head.find(b"content-length:")
    if at < 0:
        return data.endswith(b"0\r\n\r\n")
    stop = head.find(b"\r\n", at)
    length = int(head[at + 15 : stop if stop > 0 else end])
    return len(data) >= end + 4 + length


class Run:
    """One load, from its first request to its last answer."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._next = cycle(load.requests[load.first :] + load.requests[: load.first])
        self.times: list[float] = []
        self.errors, self.example = 0, b""
        self._left = load.count or 1 << 60
        self._idle: list[Asker] = []
        self._waiting: deque[float] = deque()
        self._until, self._bytes = 0.0, 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> Found:
        load = self._load
        askers = [await self._open() for _ in range(load.connections)]
        before = [processor_s(group) for group in load.counted]
        started = time.perf_counter()
        self._until = started + load.seconds
        if load.rate:
            self._idle = askers
            await self._open_loop(started)
        else:
            for asker in askers:
                self._again(asker)
        await self.done
        seconds = time.perf_counter() - started
        after = [processor_s(group) for group in load.counted]
        for asker in {*askers, *self._idle}:
            assert asker.transport is not None
            asker.transport.abort()
        spent = tuple(b - a for a, b in zip(before, after, strict=True))
        return Found(
            [x * 1000 for x in self.times], seconds, spent, self.errors, self.example, self._bytes
        )

    async def _open_loop(self, started: float) -> None:
        number, step = 0, 1 / self._load.rate
        while (due := started + number * step) < self._until:
            if (wait := due - time.perf_counter()) > 0:
                await asyncio.sleep(wait)
            number += 1
            if self._idle:
                self._idle.pop().ask(next(self._next), due)
            else:
                self._waiting.append(due)
        self._left = 0  # no more is sent
        if len(self._idle) == self._load.connections and not self.done.done():
            self.done.set_result(None)

    def answered(self, asker: Asker, seconds: float, data: bytes) -> None:
        if data[9:12] != b"200" or FAILED in data:
            self.errors += 1
            self.example = data[:2000]
            if not self._load.rate and not self.done.done():
                self.done.set_exception(AssertionError(data[:2000]))
        self.times.append(seconds)
        self._bytes = len(data)
        self._again(asker)

    def lost(self, asker: Asker) -> None:
        if not self._load.rate:
            words = f"the server closed a connection after {len(self.times)} answers"
            self.done.set_exception(ConnectionError(words))
            return
        self.errors += asker.asking  # an idle connection may be closed
        if asker in self._idle:
            self._idle.remove(asker)
        self._start_reopening()

    def _start_reopening(self) -> None:
        task = asyncio.ensure_future(self._reopen())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reopen(self) -> None:
        try:
            self._again(await self._open())
        except OSError:
            self.errors += 1
            await asyncio.sleep(RETRY_S)
            self._start_reopening()

    async def _open(self) -> Asker:
        loop, port = asyncio.get_running_loop(), self._load.port
        _, asker = await loop.create_connection(lambda: Asker(self), "127.0.0.1", port)
        return asker

    def _again(self, asker: Asker) -> None:
        if self._load.rate:
            if self._waiting:
                asker.ask(next(self._next), self._waiting.popleft())
                return
            self._idle.append(asker)
            if not self._left and len(self._idle) == self._load.connections:
                self.done.set_result(None)
            return
        now = time.perf_counter()
        if now < self._until and self._left:
            self._left -= 1
            asker.ask(next(self._next), now)
            return
        self._idle.append(asker)
        if len(self._idle) == self._load.connections and not self.done.done():
            self.done.set_result(None)


def processor_s(processes: tuple[int, ...]) -> float:
    """Return the processor seconds that these processes have used: all threads, user and system."""
    total = 0
    for process in processes:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total * TICK_S


def _serve(pipe: Connection) -> None:
    gc.disable()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        while (load := pipe.recv()) is not None:
            try:
                pipe.send(runner.run(_run(load)))
            except (AssertionError, OSError) as error:
                pipe.send(error)
            gc.collect()


async def _run(load: Load) -> Found:
    return await Run(load).run()


class Client:
    """The process of the client."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def put(self, load: Load) -> Found:
        """Put a load on a server; raises what went wrong."""
        self._pipe.send(load)
        found = self._pipe.recv()
        if isinstance(found, Exception):
            raise found
        assert isinstance(found, Found)
        return found


@contextmanager
def client() -> Iterator[Client]:
    """Start the client's process."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_serve, args=(there,), daemon=True
    )
    process.start()
    yield Client(here)
    here.send(None)
    process.join()
