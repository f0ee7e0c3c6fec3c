"""Endpoints in front of a chain; `Proxy` refuses long ranges, takes its time, or no batches."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import aiohttp
import orjson
from aiohttp import web

TOO_MANY = -32005, "query returned more than 10000 results"
JSON = {"Content-Type": "application/json"}

Call = dict[str, Any]


@dataclass
class Relay(ABC):
    """An endpoint that asks another, `target`; each kind of it answers in its own way."""

    target: str
    url: str = field(default="", init=False)
    session: Any = field(default=None, init=False, repr=False)

    @classmethod
    @contextmanager
    def open(cls, *arguments: Any, **options: Any) -> Iterator[Self]:
        """Make one that serves from a thread of its own until the block ends."""
        self = cls(*arguments, **options)
        with serving(self._start) as self.url:
            yield self

    async def _start(self) -> web.Application:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/", self.answer)
        app.cleanup_ctx.append(self._connect)
        return app

    async def _connect(self, app: web.Application) -> Any:
        async with aiohttp.ClientSession(read_bufsize=1 << 20) as self.session:
            yield

    async def ask(self, body: bytes) -> bytes:
        """What the other one says."""
        async with self.session.post(self.target, data=body, headers=JSON) as reply:
            return bytes(await reply.read())

    @abstractmethod
    async def answer(self, request: web.Request) -> web.StreamResponse:
        """What this one says."""


@dataclass
class Proxy(Relay):
    """What it does may be changed while it runs."""

    max_blocks: int = 1 << 30  # of one eth_getLogs
    delay_s: float = 0.0  # before each answer
    batches: bool = True

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        asked = orjson.loads(body)
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        if isinstance(asked, list) and not self.batches:
            return web.json_response(refusal({}, -32600, "batches are not supported"))
        if isinstance(asked, dict) and self._is_too_long(asked):
            return web.json_response(refusal(asked, *TOO_MANY))
        try:
            return web.Response(body=await self.ask(body), headers=JSON)
        except aiohttp.ClientError:
            return web.Response(status=502)

    def _is_too_long(self, call: Call) -> bool:
        blocks = range_of(call)
        return blocks is not None and blocks[1] - blocks[0] >= self.max_blocks


def range_of(call: Call) -> tuple[int, int] | None:
    """The first and the last block whose logs are asked for; None for any other call."""
    if call.get("method") != "eth_getLogs" or "fromBlock" not in call["params"][0]:
        return None
    query = call["params"][0]
    return int(query["fromBlock"], 16), int(query["toBlock"], 16)


def refusal(call: Call, code: int, message: str) -> Call:
    """The reply that a call ends in an error."""
    return {"jsonrpc": "2.0", "id": call.get("id"), "error": {"code": code, "message": message}}


@contextmanager
def serving(make_app: Any) -> Iterator[str]:
    """The URL of an aiohttp application that runs in a thread of its own."""
    loop, ports, stop = asyncio.new_event_loop(), [], asyncio.Event()
    ready = threading.Event()

    async def run() -> None:
        runner = web.AppRunner(await make_app(), access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, shutdown_timeout=0.1).start()
        ports.append(runner.addresses[0][1])
        ready.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),), daemon=True)
    thread.start()
    ready.wait()
    try:
        yield f"http://127.0.0.1:{ports[0]}"
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
