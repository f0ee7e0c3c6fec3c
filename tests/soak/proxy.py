"""An endpoint in front of a chain: it refuses long ranges, takes its time, or takes no batches."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson
from aiohttp import web

TOO_MANY = -32005, "query returned more than 10000 results"


@dataclass
class Proxy:
    """What it does may be changed while it runs; made by `open`."""

    target: str
    max_blocks: int = 1 << 30  # of one eth_getLogs
    delay_s: float = 0.0  # before each answer
    batches: bool = True
    url: str = ""
    session: Any = field(default=None, repr=False)

    @classmethod
    @contextmanager
    def open(cls, target: str, **options: Any) -> Iterator[Proxy]:
        """A proxy that serves from a thread of its own until the block ends."""
        self = cls(target, **options)
        with serving(self._start) as self.url:
            yield self

    async def _start(self) -> web.Application:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/", self._answer)
        app.cleanup_ctx.append(self._connect)
        return app

    async def _connect(self, app: web.Application) -> Any:
        async with aiohttp.ClientSession(read_bufsize=1 << 20) as self.session:
            yield

    async def _answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        asked = orjson.loads(body)
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        if isinstance(asked, list) and not self.batches:
            return web.json_response(_refusal(None, -32600, "batches are not supported"))
        if isinstance(asked, dict) and self._is_too_long(asked):
            return web.json_response(_refusal(asked["id"], *TOO_MANY))
        headers = {"Content-Type": "application/json"}
        try:
            async with self.session.post(self.target, data=body, headers=headers) as reply:
                data = await reply.read()
        except aiohttp.ClientError:
            return web.Response(status=502)
        return web.Response(body=data, content_type="application/json")

    def _is_too_long(self, call: dict[str, Any]) -> bool:
        if call.get("method") != "eth_getLogs" or "fromBlock" not in call["params"][0]:
            return False
        query = call["params"][0]
        return int(query["toBlock"], 16) - int(query["fromBlock"], 16) >= self.max_blocks


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


def _refusal(id_: Any, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": message}}
