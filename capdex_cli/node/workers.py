"""Worker processes of a node: readers that answer on its listening socket.

The node and each worker share a pair of connected sockets, the worker's stdin. The node sends the
worker's options by it and answers the pages about the node that clients ask the worker for, so
`/status` and `/metrics` say the same from every process. A worker ends when its socket does.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import msgspec
import structlog

from capdex.errors import CapdexError
from capdex.net.tasks import end
from capdex_indexer.http.status import Surface, answer_page
from capdex_indexer.options import NodeOptions
from capdex_service.http.problem import problem
from capdex_service.limits.options import ClientLimits

# -P: never a module of the directory that the node was started in
COMMAND: Final = (sys.executable, "-P", "-m", "capdex_cli.node.worker")
PAUSES_S: Final = (0.5, 30.0)  # before a worker is started again: at first, and at most
STEADY_S: Final = 60.0  # a worker that ran this long is started again after the first pause
END_S: Final = 4.0  # a worker has three seconds for open requests
MAX_LINE_BYTES: Final = 1024 * 1024  # a page about the node has some ten thousand

log = structlog.get_logger(part="node")


class Serving(msgspec.Struct, frozen=True):
    """How each process of a node answers its clients.

    `allowed` are the Host headers it answers, `sessions` the directory of MCP sessions that the
    processes share. With `explorer` they serve pages for people, too.
    """

    allowed: tuple[str, ...]
    profile: str = "default"
    sessions: str | None = None
    limits: ClientLimits = ClientLimits()
    explorer: bool = True


class WorkerOptions(msgspec.Struct, frozen=True):
    """The options of a worker, whose `node` only reads."""

    number: int
    descriptor: int
    log_format: str
    serving: Serving
    node: NodeOptions


# A page about the node that a client asked a worker for: its path and max_lag.
NodePageRequest = tuple[str, str | None]
PageAnswer = tuple[int, dict[str, str], bytes]  # the node's: status, headers, body


class Workers:
    """The workers of a node, each started again when it ends."""

    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._links: set[asyncio.StreamWriter] = set()
        self._ending = asyncio.Event()
        self.kill_at = 0.0

    def end(self) -> None:
        """Let all workers finish their requests and end; after END_S they are killed."""
        if not self._ending.is_set():
            self._ending.set()
            self.kill_at = time.monotonic() + END_S
            for link in self._links:
                link.close()

    async def keep(self, options: WorkerOptions) -> None:
        """Run one worker, and start it again when it ends."""
        first_s, longest_s = PAUSES_S
        pause_s = first_s
        while not self._ending.is_set():
            started = time.monotonic()
            code = await self._run(options)
            if self._ending.is_set():
                return
            if time.monotonic() - started > STEADY_S:
                pause_s = first_s
            log.warning("worker ended", worker=options.number, code=code, again_in_s=pause_s)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._ending.wait()
            pause_s = min(2 * pause_s, longest_s)

    async def _run(self, options: WorkerOptions) -> int | str:
        """Run one worker to its end; return its exit status, or why it could not start."""
        ours, theirs = socket.socketpair()
        reader, link = await asyncio.open_unix_connection(sock=ours, limit=MAX_LINE_BYTES)
        self._links.add(link)
        answering = asyncio.create_task(self._answer(reader, link, options))
        try:
            with theirs:
                process = await asyncio.create_subprocess_exec(
                    *COMMAND,
                    stdin=theirs.fileno(),
                    pass_fds=[options.descriptor],
                    start_new_session=True,  # Ctrl-C is for the node, which ends its workers
                )
            try:
                return await process.wait()
            except asyncio.CancelledError:
                process.kill()
                await process.wait()
                raise
        except OSError as error:
            return str(error)
        finally:
            self._links.discard(link)
            link.close()
            await end([answering])

    async def _answer(
        self, reader: asyncio.StreamReader, link: asyncio.StreamWriter, options: WorkerOptions
    ) -> None:
        """Send a worker its options, then answer what it asks, in order."""
        with suppress(OSError, ValueError):
            link.write(msgspec.json.encode(options, enc_hook=str) + b"\n")
            while line := await reader.readline():
                asked = msgspec.json.decode(line, type=NodePageRequest)
                try:
                    page = await answer_page(self._surface, *asked)
                except CapdexError as error:  # the worker's client is told
                    page = problem(error)
                answer: PageAnswer = page.status_code, dict(page.headers), bytes(page.body)
                link.write(msgspec.json.encode(answer) + b"\n")


@asynccontextmanager
async def run_workers(each: Sequence[WorkerOptions], surface: Surface) -> AsyncIterator[Workers]:
    """Keep a worker running for each options; end them on exit."""
    workers = Workers(surface)
    tasks = [asyncio.create_task(workers.keep(options)) for options in each]
    try:
        yield workers
    finally:
        workers.end()
        if tasks:
            await asyncio.wait(tasks, timeout=max(0.0, workers.kill_at - time.monotonic()))
        await end(tasks)
