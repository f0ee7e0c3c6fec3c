"""The HTTP client runs on both event loops that the product uses."""

from __future__ import annotations

import asyncio

import pytest
import uvloop

from capdex.net.http import HttpClient


async def answer(reader, writer):
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    await writer.drain()
    writer.close()


async def ask():
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server, HttpClient() as http:
        host, port = server.sockets[0].getsockname()
        return (await http.request("GET", f"http://{host}:{port}/", max_bytes=10)).body


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_response_is_read_on_the_loop_of_asyncio_and_on_uvloop(factory):
    with asyncio.Runner(loop_factory=factory) as runner:
        assert runner.run(ask()) == b"ok"
