"""Overhead of the pipeline over the direct HTTP request, on loopback, in turns within one run.

`python benchmarks/router/call.py [CALLS]`: an aiohttp session beside `Invoker.invoke` of an
`http_get` tool, and beside the tool `call` of a router in a process of its own, over stdio.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
from aiohttp import web
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from capdex_router.bindings.egress import Egress
from capdex_router.bindings.http import HttpTool
from capdex_router.catalog.catalog import Fixed
from capdex_router.faces.actions import Actions
from capdex_router.faces.server import serve_stdio
from capdex_router.invoke.invoke import Caller
from capdex_router.model.capability import Capability, Owner, ToolHints
from capdex_router.model.refs import CapabilityRef
from capdex_router.policy.grants import Grant
from capdex_router.policy.secrets import SecretFile, Secrets
from capdex_router.runtime import Runtime, open_runtime

WARM_UP = 50
NAME, DIGEST = "did:nuwa:cap:bench", "ab" * 32
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
OSLO = {"city": "Oslo"}
WANTED = {"uri": f"{NAME}#get", "input": OSLO}


def serve(listener: socket.socket) -> None:
    async def echo(request: web.Request) -> web.Response:
        return web.json_response({"path": request.path, "temperature": 12.5})

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", echo)
    web.run_app(app, sock=listener, print=None, access_log=None)


@asynccontextmanager
async def runtime(port: int, folder: Path) -> AsyncIterator[Runtime]:
    folder.mkdir(exist_ok=True)  # noqa: ASYNC240 - before anything runs
    secrets = Secrets(SecretFile(folder / "secrets.json"))
    egress = Egress(inside=["127.0.0.1"])
    binding = {"type": "http_get", "url": f"http://127.0.0.1:{port}/v1/{{city}}"}
    tool = Capability(
        CapabilityRef(f"{NAME}#get", "1.0.0"), "tool", "get", "gets", CITY,
        Owner("package", NAME, DIGEST), annotations=ToolHints(read_only=True, destructive=False),
        executor=HttpTool(binding, capability="bench", egress=egress, secrets=secrets),
    )  # fmt: skip
    async with open_runtime(folder, [Fixed([tool])], hidden=secrets) as found:
        found.grants.grant([Grant(NAME, DIGEST, "get", f"host:127.0.0.1:{port}")])
        yield found
    await egress.close()


async def router(port: int, folder: Path) -> None:
    async with runtime(port, folder) as found:
        await serve_stdio(Actions(found.catalog, found.search, found.invoker, found.results))


async def in_turns(count: int, *calls: Callable[[], Awaitable[Any]]) -> list[list[float]]:
    """Milliseconds of each call, taken in turns."""
    took: list[list[float]] = [[] for _ in calls]
    for i in range(WARM_UP + count):
        for call, times in zip(calls, took, strict=True):
            since = time.perf_counter()
            await call()
            if i >= WARM_UP:
                times.append((time.perf_counter() - since) * 1000)
    return took


async def measure(port: int, count: int, folder: Path) -> None:
    url = f"http://127.0.0.1:{port}/v1/Oslo"
    server = StdioServerParameters(
        command=sys.executable, args=[__file__, "--serve", str(port), str(folder / "process")]
    )
    async with (
        aiohttp.ClientSession() as session,
        runtime(port, folder / "here") as opened,
        Client(server) as client,
    ):

        async def direct() -> None:
            async with session.get(url) as reply:
                await reply.json()

        async def inside() -> None:
            result = await opened.invoker.invoke(f"{NAME}#get", "1.0.0", OSLO, Caller())
            assert result.ok, result

        async def outside() -> None:
            result = await client.call_tool("call", WANTED)
            assert not result.is_error, result

        times = await in_turns(count, direct, inside, outside)
    low = median(times[0])
    print(f"direct request: p50 {low:.2f} ms")
    for what, took in zip(("call in process", "call over stdio"), times[1:], strict=True):
        p50, p99 = median(took), sorted(took)[int(len(took) * 0.99)]
        print(f"{what}: p50 {p50:.2f} ms ({p50 - low:+.2f}), p99 {p99:.2f} ms")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    listener = socket.create_server(("127.0.0.1", 0))
    process = multiprocessing.get_context("fork").Process(
        target=serve, args=(listener,), daemon=True
    )
    process.start()
    try:
        with TemporaryDirectory() as folder:
            asyncio.run(measure(listener.getsockname()[1], count, Path(folder)))
    finally:
        process.terminate()
        process.join()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        asyncio.run(router(int(sys.argv[2]), Path(sys.argv[3])))
    else:
        main()
