"""Overhead of bindings over the direct call, on loopback, in turns within one run.

`python benchmarks/router/bindings.py [CALLS]`: an aiohttp session beside `HttpTool`, and an MCP
client of the SDK beside `McpTool`, each against one server in a process of its own.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
import mcp
import uvicorn
from aiohttp import web
from mcp.server.mcpserver import MCPServer

from capdex_router.bindings.egress import Egress
from capdex_router.bindings.http import HttpTool
from capdex_router.bindings.mcp import McpServices, McpTool
from capdex_router.policy.secrets import SecretFile, Secrets

WARM_UP = 50
DID = "did:nuwa:mcp:echo"
SECRET = "benchmark-secret"  # noqa: S105 - of no service


def serve_http(listener: socket.socket) -> None:
    async def echo(request: web.Request) -> web.Response:
        return web.json_response({"path": request.path, "temperature": 12.5})

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", echo)
    web.run_app(app, sock=listener, print=None, access_log=None)


def serve_mcp(listener: socket.socket) -> None:
    server = MCPServer("echo", log_level="ERROR")

    @server.tool()
    def echo(city: str) -> dict[str, Any]:
        """Answer with the city."""
        return {"city": city, "temperature": 12.5}

    app = server.streamable_http_app(json_response=True)
    config = uvicorn.Config(app, log_config=None, ws="none")
    uvicorn.Server(config).run(sockets=[listener])


def start(serve: Callable[[socket.socket], None]) -> tuple[Any, str]:
    listener = socket.create_server(("127.0.0.1", 0))
    process = multiprocessing.get_context("fork").Process(
        target=serve, args=(listener,), daemon=True
    )
    process.start()
    return process, f"http://127.0.0.1:{listener.getsockname()[1]}"


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


def report(what: str, direct: list[float], ours: list[float]) -> None:
    one, two = median(direct), median(ours)
    p99 = sorted(ours)[int(len(ours) * 0.99)]
    print(
        f"{what}: direct {one:.2f} ms, tool {two:.2f} ms (p99 {p99:.2f}), "
        f"{two - one:+.2f} ms, {two / one:.2f} times"
    )


async def http(url: str, count: int, folder: Path) -> None:
    secrets = Secrets(SecretFile(folder / "secrets.json"))
    secrets.set("bench", "127.0.0.1", "KEY", SECRET)
    egress = Egress(inside=["127.0.0.1"])
    auth = {"type": "bearer", "secret": "KEY"}
    get = {"type": "http_get", "url": url + "/v1/{city}", "auth": auth}
    post = {"type": "http_post", "url": url + "/v1", "auth": auth}
    arguments = {"city": "Oslo", "unit": "celsius"}
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {SECRET}"}) as session:

        async def direct_get() -> None:
            async with session.get(f"{url}/v1/Oslo", params={"unit": "celsius"}) as reply:
                await reply.json()

        async def direct_post() -> None:
            async with session.post(f"{url}/v1", json=arguments) as reply:
                await reply.json()

        for what, binding, direct in (("GET", get, direct_get), ("POST", post, direct_post)):
            tool = HttpTool(binding, capability="bench", egress=egress, secrets=secrets)

            async def run(tool: HttpTool = tool) -> None:
                tool.requests(arguments)
                await tool.run(arguments, timeout_s=30)

            report(what, *await in_turns(count, direct, run))
    await egress.close()


async def services(url: str, count: int) -> None:
    egress = Egress(addresses={DID: f"{url}/mcp"})
    pool = McpServices(egress)
    binding = {"type": "mcp_service", "service_uri": DID, "mcp_action": "echo"}
    tool = McpTool(binding, capability="bench", services=pool)
    async with mcp.Client(f"{url}/mcp") as client:
        report(
            "MCP",
            *await in_turns(
                count,
                lambda: client.call_tool("echo", {"city": "Oslo"}),
                lambda: tool.run({"city": "Oslo"}, timeout_s=30),
            ),
        )
    await pool.close()
    await egress.close()


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    with TemporaryDirectory() as folder:
        process, url = start(serve_http)
        asyncio.run(http(url, count, Path(folder)))
        process.terminate()
        process.join()
    process, url = start(serve_mcp)
    asyncio.run(services(url, count))
    process.terminate()
    process.join()


if __name__ == "__main__":
    main()
