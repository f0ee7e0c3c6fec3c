"""A worker process: `python -m capdex_cli.node.worker`, started by `capdex_cli.node.workers`."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
from collections import deque
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Final

import msgspec
import structlog
from starlette.responses import Response

from capdex.errors import CapdexError, Code, Unavailable
from capdex.net.tasks import run_to_completion
from capdex_cli.node.serve import STOP_WITHIN_S, serve
from capdex_cli.node.workers import MAX_LINE_BYTES, NodePageRequest, PageAnswer, WorkerOptions
from capdex_cli.terminal import logs
from capdex_indexer.db.heartbeat import BEAT_S
from capdex_indexer.http.status import Surface
from capdex_indexer.node.node import Node
from capdex_indexer.node.signals import run_until_stopped

MAX_LAG_CHARS: Final = 100  # more than `/status` reads
LOOK_S: Final = 0.2  # between two looks for the writer's heartbeat at the start

log = structlog.get_logger(part="node")


class NodeLink:
    """A worker's side of the sockets: it asks the node for pages, and notices the node's end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._asked: deque[asyncio.Future[Response]] = deque()
        self._ended = False

    @classmethod
    async def open(cls, stream: socket.socket) -> tuple[NodeLink, WorkerOptions]:
        """Return the link and the options that the node sends first; raises EOFError."""
        reader, writer = await asyncio.open_unix_connection(sock=stream, limit=MAX_LINE_BYTES)
        line = await reader.readuntil()
        options = msgspec.json.decode(line, type=WorkerOptions, dec_hook=lambda _, path: Path(path))
        return cls(reader, writer), options

    async def ask(self, path: str, max_lag: str | None) -> Response:
        """Return the node's answer about itself; raises Unavailable if the node has ended."""
        if self._ended:
            raise _ended()
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._asked.append(answer)
        asked: NodePageRequest = path, max_lag and max_lag[:MAX_LAG_CHARS]
        self._writer.write(msgspec.json.encode(asked) + b"\n")
        return await answer

    async def read(self) -> None:
        """Hand the node's answers to those who asked, until the node closes the link."""
        try:
            with suppress(OSError):
                while line := await self._reader.readline():
                    status, headers, body = msgspec.json.decode(line, type=PageAnswer)
                    answer = self._asked.popleft()
                    if not answer.done():  # its client may be gone
                        answer.set_result(Response(body, status, headers))
        finally:
            self._ended = True
            for answer in self._asked:
                if not answer.done():
                    answer.set_exception(_ended())
            self._writer.close()


def main() -> int:
    """Serve until the node ends its socket; return the exit code."""
    try:
        return run_until_stopped(_run(), within_s=STOP_WITHIN_S)
    except CapdexError as error:
        log.error("worker failed", code=str(error.code), why=error.line)
        return 1


async def _run() -> None:
    try:
        link, options = await NodeLink.open(socket.socket(fileno=0))
    except (EOFError, OSError):
        return  # the node ended meanwhile
    logs.set_up(options.log_format)
    reading = asyncio.create_task(link.read())
    # The end of the node stops this process in order, and within a bound, as a signal does.
    reading.add_done_callback(lambda _: signal.raise_signal(signal.SIGTERM))
    async with AsyncExitStack() as parts:
        listener = parts.enter_context(socket.socket(fileno=options.descriptor))
        node = await parts.enter_async_context(Node.open(options.node))
        await _hear(node.surface)
        serving = serve(node, listener, options.serving, link.ask)
        running = await parts.enter_async_context(serving)
        log.info("worker serves", worker=options.number, pid=os.getpid())
        await running


async def _hear(surface: Surface) -> None:
    """Wait for a second heartbeat, if one comes: a first alone does not show a living writer.

    Answers of this process then have the same warnings as those of the node.
    """
    until = time.monotonic() + 2 * BEAT_S + 1
    health = surface.health
    while time.monotonic() < until:
        health.observe(*await run_to_completion(surface.index.heartbeat))
        if all(fault["code"] != "NO_WRITER" for fault in health.faults()):
            return
        await asyncio.sleep(LOOK_S)


def _ended() -> Unavailable:
    return Unavailable("this node is ending", Code.TIMEOUT, fix="ask again")


if __name__ == "__main__":
    sys.exit(main())
