"""The small HTTP client: both event loops, every framing of a body, and hostile servers."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack, suppress

import pytest
import uvloop

from capdex.net import connection
from capdex.net import http as module
from capdex.net.http import HttpClient, HttpError, ResponseTooLarge

OK = b"HTTP/1.1 200 OK\r\n"


async def request(reply, *, times=1, max_bytes=1000, timeout_s=5.0):
    """Send requests to a server that answers each with the bytes `reply`; count connections."""
    connections = []

    async def serve(reader, writer):
        task = asyncio.current_task()
        assert task is not None
        connections.append(task)
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(reply)
                await writer.drain()
                if b"content-length" not in reply.lower() and b"chunked" not in reply:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server, HttpClient() as http:
        host, port = server.sockets[0].getsockname()
        url = f"http://{host}:{port}/a b?c=d"
        try:
            for _ in range(times):
                response = await http.request("GET", url, max_bytes=max_bytes, timeout_s=timeout_s)
        finally:
            http.close()
            await asyncio.gather(*connections)
    return response, len(connections)


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_response_is_read_on_the_loop_of_asyncio_and_on_uvloop(factory):
    with asyncio.Runner(loop_factory=factory) as runner:
        response, _ = runner.run(request(OK + b"Content-Length: 2\r\n\r\nok"))
    assert (response.status, response.body) == (200, b"ok")


@pytest.mark.parametrize(
    "reply",
    [
        OK + b"Content-Length: 2\r\n\r\nok",
        OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n",
        OK + b"\r\nok",
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 3 + OK + b"Content-Length: 2\r\n\r\nok",
    ],
)
async def test_a_body_is_read_by_its_length_by_chunks_and_to_the_end(reply):
    response, _ = await request(reply)
    assert (response.status, response.body) == (200, b"ok")


async def test_a_connection_is_used_again_unless_the_server_closes_it():
    keep = OK + b"Content-Length: 2\r\n\r\nok"
    assert (await request(keep, times=3))[1] == 1
    close = OK + b"Connection: close\r\nContent-Length: 2\r\n\r\nok"
    assert (await request(close, times=3))[1] == 3


@pytest.mark.parametrize(
    "reply",
    [
        OK + b"Content-Length: 1001\r\n\r\n",
        OK + b"Content-Length: 99999999999999999999\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n3e9\r\n" + b"x" * 1001 + b"\r\n0\r\n\r\n",
        OK + b"\r\n" + b"x" * 1001,
    ],
)
async def test_a_body_over_the_limit_is_refused(reply):
    with pytest.raises((ResponseTooLarge, HttpError)):
        await request(reply)


@pytest.mark.parametrize(
    "reply",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        OK + b"X: " + b"y" * 100_000,
        OK + b"Content-Length: 3\r\n\r\nok" + OK,
        OK + b"Content-Length: 2\r\n\r\nok" + OK + b"Content-Length: 4\r\n\r\nevil",
        b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100,
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    ],
)
async def test_a_hostile_response_is_an_error_or_only_its_first_body(reply):
    try:
        response, _ = await request(reply, timeout_s=1.0)
    except (HttpError, TimeoutError):
        return
    assert response.body in (b"ok", b"okH")


@pytest.mark.parametrize("url", ["ftp://a.example/", "http://", "http://[/", "//a", "http://a:b/"])
async def test_an_address_that_is_not_http_is_refused_without_showing_it(url):
    async with HttpClient() as http:
        with pytest.raises(HttpError, match=r"^the address is not an http\(s\) URL$"):
            await http.request("GET", url, max_bytes=1)


async def test_a_server_that_never_answers_ends_with_the_time():
    async def silent(reader, writer):
        await reader.read()
        writer.close()
        ended.set()

    ended = asyncio.Event()
    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server, HttpClient() as http:
        host, port = server.sockets[0].getsockname()
        with pytest.raises(TimeoutError):
            await http.request("GET", f"http://{host}:{port}/", max_bytes=1, timeout_s=0.05)
        await ended.wait()


async def test_an_address_that_never_answers_leaves_time_for_the_next_one(monkeypatch):
    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + b"Content-Length: 2\r\n\r\nok")
        writer.close()

    look_up = socket.getaddrinfo  # the system's, which knows no host of two addresses here

    def two(host, port, **more):
        hosts = ("127.0.0.2", "127.0.0.1") if host == "two.example" else (host,)
        return [info for one in hosts for info in look_up(one, port, **more)]

    with ExitStack() as opened:
        silent = opened.enter_context(socket.create_server(("127.0.0.2", 0), backlog=0))
        for _ in range(4):  # what waits fills its queue
            waiting = opened.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(silent.getsockname())
        monkeypatch.setattr(socket, "getaddrinfo", two)
        for each in (connection, module):
            monkeypatch.setattr(each, "CONNECT_S", 0.5)
        port = silent.getsockname()[1]
        async with await asyncio.start_server(serve, "127.0.0.1", port), HttpClient() as http:
            response = await http.request("GET", f"http://two.example:{port}/", max_bytes=9)
    assert response.body == b"ok"


@pytest.mark.parametrize(
    ("name", "days", "trusted", "why"),
    [
        ("localhost", 1, False, "self-signed certificate"),
        ("localhost", -1, True, "certificate has expired"),
        ("other.example", 1, True, "Hostname mismatch, certificate is not valid for 'localhost'."),
    ],
)
async def test_a_refused_certificate_says_what_is_wrong_with_it(
    certified, monkeypatch, name, days, trusted, why
):
    context, file = certified(name, days=days)
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", file)

    def serve(reader, writer):
        writer.close()

    async with (
        await asyncio.start_server(serve, "localhost", 0, ssl=context) as server,
        HttpClient() as http,
    ):
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(HttpError) as refused:
            await http.request("GET", f"https://localhost:{port}/", max_bytes=9)
    assert str(refused.value) == f"TLS failed: CERTIFICATE_VERIFY_FAILED, {why}"


@pytest.mark.parametrize(
    ("variable", "proxy"),
    [("https_proxy", "https://proxy.example:3128"), ("ALL_PROXY", "socks5://proxy.example:1080")],
)
async def test_a_proxy_that_capdex_does_not_speak_to_is_told_as_not_used(
    monkeypatch, variable, proxy
):
    def nobody_knows(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nobody_knows)
    monkeypatch.setenv(variable, proxy)
    async with HttpClient() as http:
        with pytest.raises(HttpError, match="not known; the proxy of this environment is not used"):
            await http.request("GET", "https://far.example/", max_bytes=9)
