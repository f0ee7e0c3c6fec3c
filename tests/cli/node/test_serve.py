"""One process of a node: where it listens, how it begins and how it ends."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
import uvloop

from capdex.errors import Code, UsageError
from capdex.problems import Verdict
from capdex_cli.node.serve import serve
from capdex_cli.node.server import listen, url_of
from capdex_cli.node.workers import Serving
from capdex_indexer.http.status import Surface
from capdex_indexer.options import Role
from capdex_service.limits.hosts import LOOPBACK


def options(role: Role = Role.BOTH) -> SimpleNamespace:
    """The options of a node that serving it reads."""
    return SimpleNamespace(role=role, rpc_urls=(), serve=frozenset({Verdict.VERIFIED}))


@asynccontextmanager
async def served(
    surface: Surface, run: Callable[[], Awaitable[None]]
) -> AsyncIterator[tuple[str, asyncio.Task[None]]]:
    """A node whose loops are `run`, served; its address and the task of its loops."""
    node: Any = SimpleNamespace(surface=surface, run=run, options=options())
    with listen("127.0.0.1", 0) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with serve(node, listener, Serving(LOOPBACK)) as loops:
            yield url, loops


async def health(url: str) -> int:
    async with aiohttp.ClientSession() as http, http.get(f"{url}/health") as answer:
        return answer.status


async def test_a_node_answers_from_the_start_and_its_loops_end_with_it(surface: Surface) -> None:
    ended: list[str] = []

    async def run() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("loops")

    async with served(surface, run) as (url, loops):
        assert await health(url) == 200
        assert not loops.done()
    assert ended == ["loops"]
    with pytest.raises(aiohttp.ClientConnectionError):
        await health(url)


async def test_a_writer_alone_answers_its_operator_and_nobody_else(surface: Surface) -> None:
    run = asyncio.Event().wait
    node: Any = SimpleNamespace(surface=surface, run=run, options=options(Role.WRITER))
    found = {}
    with listen("127.0.0.1", 0) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with (
            serve(node, listener, Serving(LOOPBACK)),
            aiohttp.ClientSession() as http,
        ):
            for path in ("/health", "/status", "/metrics", "/mcp", "/c/note.json", "/ipfs/x"):
                async with http.get(url + path) as answer:
                    found[path] = answer.status
    assert found == {
        **dict.fromkeys(("/health", "/status", "/metrics"), 200),
        **dict.fromkeys(("/mcp", "/c/note.json", "/ipfs/x"), 404),
    }


async def test_a_fault_in_the_loops_is_seen_while_answers_go_on(surface: Surface) -> None:
    async def run() -> None:
        raise RuntimeError("a fault of ours")

    async with served(surface, run) as (url, loops):
        with pytest.raises(RuntimeError, match="a fault of ours"):
            await loops
        assert await health(url) == 200
    with pytest.raises(aiohttp.ClientConnectionError):
        await health(url)


async def test_whoever_fails_beside_a_node_ends_it(surface: Surface) -> None:
    with pytest.raises(KeyError):
        async with served(surface, asyncio.Event().wait) as (url, _):  # type: ignore[arg-type]
            raise KeyError("beside")
    with pytest.raises(aiohttp.ClientConnectionError):
        await health(url)


async def test_a_client_that_is_cut_off_when_a_node_ends_leaves_no_trace_in_the_log(
    surface: Surface, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("capdex_cli.node.server.STOP_S", 0.1)
    async with served(surface, asyncio.Event().wait) as (url, _):  # type: ignore[arg-type]
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(url).port)
        head = "POST /mcp HTTP/1.1", "Host: localhost", "Content-Type: application/json"
        writer.write(
            "\r\n".join((*head, "Content-Length: 9", "Expect: 100-continue\r\n\r\n")).encode()
        )
        assert b"100" in await reader.readline()  # its body is waited for
    writer.close()
    told = [x for x in caplog.records if x.name == "uvicorn.error" and x.levelname == "ERROR"]
    assert [x.getMessage().partition(",")[0] for x in told] == ["Cancel 1 running task(s)"]


def test_a_port_in_use_is_said_before_anything_starts() -> None:
    with listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(UsageError) as taken:
            listen("127.0.0.1", port)
    assert taken.value.code is Code.CONFIG
    assert str(port) in taken.value.message
    assert "--port" in taken.value.fix


@pytest.mark.parametrize("host", ["256.1.1.1", "::g", "no such host"])
def test_what_is_no_address_of_this_machine_is_refused(host: str) -> None:
    with pytest.raises(UsageError) as refused:
        listen(host, 0)
    assert refused.value.code is Code.CONFIG
    assert "--host" in refused.value.fix


def test_an_ipv6_address_is_listened_on() -> None:
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    with listen("::1", 0) as listener:
        assert listener.getsockname()[0] == "::1"
        assert urlsplit(url_of(listener)).hostname == "::1"
        assert urlsplit(url_of(listener)).port == listener.getsockname()[1]


@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_answers_are_sent_without_waiting_for_an_acknowledgement(make_loop: Any) -> None:
    async def accepted() -> int:
        got: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def on_connection(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            raw = writer.get_extra_info("socket")
            got.set_result(raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        with listen("127.0.0.1", 0) as listener:
            server = await asyncio.start_server(on_connection, sock=listener)
            _, writer = await asyncio.open_connection(*listener.getsockname()[:2])
            delay = await got
            writer.close()
            await writer.wait_closed()
            server.close()
            await server.wait_closed()
            return delay

    with asyncio.Runner(loop_factory=make_loop) as runner:
        assert runner.run(accepted()) != 0


async def test_no_answer_may_be_read_as_another_type_than_it_has(surface: Surface) -> None:
    paths = ("/health", "/c/note.json", "/v1/search?q=x", "/ipfs/x", "/index/config.json", "/x")
    run = asyncio.Event().wait
    async with served(surface, run) as (url, _), aiohttp.ClientSession() as http:  # type: ignore[arg-type]
        for path in paths:
            async with http.get(url + path) as answer:
                assert answer.headers.getall("X-Content-Type-Options") == ["nosniff"], path
                assert answer.content_type != "text/html", path
        async with http.get(url, headers={"Accept": "text/html"}) as answer:
            assert answer.headers.getall("X-Content-Type-Options") == ["nosniff"]
        async with http.post(f"{url}/mcp", json={}) as answer:
            assert answer.headers.getall("X-Content-Type-Options") == ["nosniff"]


# Products as an encoder makes them, but so large that a start always meets one.
MULTIPLY_AND_START = """
import asyncio, contextlib, sys, threading, uvloop
from capdex_cli.main import main

sys.argv = ["capdex", "--version"]
with contextlib.suppress(SystemExit):
    main()

from capdex.search.encoder import np

square = np.ones((700, 700), np.float32)

def multiply():
    while True:
        square @ square

async def start_processes():
    for _ in range(20):
        process = await asyncio.create_subprocess_exec("true")
        await process.wait()

for _ in range(4):
    threading.Thread(target=multiply, daemon=True).start()
uvloop.run(start_processes())
print("all ended")
"""


def test_processes_start_while_texts_are_encoded() -> None:
    """A fork in the middle of a product by several threads never returned."""
    done = subprocess.run(
        [sys.executable, "-c", MULTIPLY_AND_START],
        capture_output=True,
        check=False,
        text=True,
        timeout=300,
    )
    assert done.stdout.endswith("all ended\n"), done.stderr
