"""Addresses that may be reached, and replies that are read within bounds."""

from __future__ import annotations

import asyncio
import gzip
import socket
from contextlib import suppress
from ipaddress import IPv4Address
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from capdex.errors import CapdexError, Code, ExecutionFailed, Refused, Unavailable
from capdex_router.bindings.egress import MAX_MEMBERS, Egress, address_fault, unwrap
from tests.capdex.forward_proxy import forwarding

PRIVATE = [
    *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"),
    *("0.0.0.0", "224.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1"),  # noqa: S104
    *("::1", "::", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1"),
    *("::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe"),
    *("2002:7f00:1::", "2002:a9fe:a9fe::", "64:ff9b:1::1", "::127.0.0.1", "2001::1", "no address"),
]


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_inside_a_network_is_refused_in_every_wrapping(address: str) -> None:
    assert address_fault(address)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "2606:4700::1", "::ffff:1.1.1.1", "64:ff9b::101:101", "2002:101:101::"]
)
def test_a_public_address_is_allowed_in_every_wrapping(address: str) -> None:
    assert address_fault(address) is None


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.255.255.255", "10.0.0.0", "10.255.255.255", "172.16.0.0"),
        *("172.31.255.255", "192.168.0.0", "192.168.255.255", "100.64.0.0", "100.127.255.255"),
        *("::1", "fc00::", "fdff:ffff::1", "::ffff:10.0.0.1"),
    ],
)
def test_an_allowance_reaches_private_addresses(address: str) -> None:
    assert address_fault(address, inside=True) is None


@pytest.mark.parametrize(
    "address",
    [
        *("169.254.169.254", "fe80::1", "fd00:ec2::254", "100.100.100.200", "0.0.0.0"),  # noqa: S104
        *("224.0.0.1", "64:ff9b::a9fe:a9fe", "::ffff:169.254.169.254"),
    ],
)
def test_no_allowance_reaches_metadata_services_or_link_local_addresses(address: str) -> None:
    assert address_fault(address, inside=True)


@given(st.ip_addresses(v=4))
def test_a_wrapped_address_is_judged_as_the_address_in_it(address: IPv4Address) -> None:
    packed = int(address)
    high, low = packed >> 16, packed & 0xFFFF
    for form in (f"::ffff:{address}", f"64:ff9b::{address}", f"2002:{high:x}:{low:x}::"):
        assert unwrap(form) == address
        assert bool(address_fault(form)) == bool(address_fault(str(address)))


@given(st.text(max_size=40))
def test_any_text_is_judged(text: str) -> None:
    assert address_fault(text) is None or len(str(address_fault(text))) > 0


class Nothing:
    """A listener on loopback that must not be reached."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.setblocking(False)
        self.port = self._socket.getsockname()[1]

    def was_reached(self) -> bool:
        with suppress(BlockingIOError):
            self._socket.accept()[0].close()
            return True
        return False

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def nothing() -> Any:
    listener = Nothing()
    yield listener
    listener.close()


async def denied(egress: Egress, url: str) -> Refused:
    with pytest.raises(Refused) as refused:
        await egress.fetch("GET", URL(url), timeout_s=5)
    await egress.close()
    assert refused.value.code is Code.PERMISSION_DENIED
    return refused.value


@pytest.mark.parametrize("host", ["127.0.0.1", "[::ffff:127.0.0.1]", "localhost", "2130706433"])
async def test_loopback_is_not_contacted(host: str, nothing: Nothing) -> None:
    try:
        url = f"https://{host}:{nothing.port}/"
        URL(url)
    except ValueError:
        pytest.skip("no URL at all")
    await denied(Egress(), url)
    assert not nothing.was_reached()


def answering(monkeypatch: pytest.MonkeyPatch, *answers: str) -> list[str]:
    """Give names these addresses, one more answer each time; other lookups are real."""
    asked: list[str] = []
    real = socket.getaddrinfo

    def look_up(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        if host != "api.example.com":
            return real(host, port, *args, **kwargs)
        asked.append(host)
        address = answers[min(len(asked), len(answers)) - 1]
        return real(address, port, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return asked


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"],
)
async def test_a_public_name_with_a_private_address_is_not_contacted(
    address: str, nothing: Nothing, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = answering(monkeypatch, address)
    error = await denied(Egress(), f"https://api.example.com:{nothing.port}/")
    assert asked
    assert address.split("%")[0] in error.why
    assert error.fix.endswith(" --at https://HOST=URL")  # which is what allows it
    assert not nothing.was_reached()


async def test_an_answer_that_changes_between_two_lookups_does_not_help(
    nothing: Nothing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check before the connection sees the first answer, and the connection has the second."""
    answering(monkeypatch, "1.1.1.1", "127.0.0.1")
    socket.getaddrinfo("api.example.com", 443)  # the answer that a separate check gets
    await denied(Egress(), f"https://api.example.com:{nothing.port}/")
    assert not nothing.was_reached()


async def test_an_allowed_name_still_does_not_reach_a_metadata_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answering(monkeypatch, "169.254.169.254")
    await denied(Egress(inside=["api.example.com"]), "http://api.example.com/")


async def test_plain_http_is_for_allowed_hosts_alone() -> None:
    assert "https is required" in (await denied(Egress(), "http://api.example.com/")).why


@pytest.mark.parametrize("before", ["api.example.com", ":api.example.com", "a:b"])
async def test_what_stands_before_the_host_of_a_url_is_refused(before: str) -> None:
    error = await denied(Egress(inside=["127.0.0.1"]), f"http://{before}@127.0.0.1/")
    assert "a user name" in error.why


async def test_an_allowance_may_name_a_port(serve: Any, stack: Any) -> None:
    url = URL(await serve(ok))
    egress = Egress(inside=[f"127.0.0.1:{url.port}"])
    stack.push_async_callback(egress.close)
    assert (await egress.fetch("GET", url / "x", timeout_s=5)).body == b"/x"
    await denied(Egress(inside=["127.0.0.1:1"]), str(url))


@pytest.mark.parametrize("allowed", ["::1", "[::1]", "[::1]:8080"])
def test_an_allowance_may_be_of_ipv6(allowed: str) -> None:
    assert Egress(inside=[allowed]).allows_inside(URL("http://[::1]:8080/"))


async def test_an_origin_is_found_at_the_address_that_the_user_gives(
    serve: Any, stack: Any
) -> None:
    url = await serve(ok)
    egress = Egress(addresses={"https://api.example.com": url, "did:nuwa:mcp:web": f"{url}/mcp"})
    stack.push_async_callback(egress.close)
    for host in ("api.example.com", "API.Example.com"):
        there = URL(f"https://{host}/a%2Fb%7E?q=%7E", encoded=True)
        assert (await egress.fetch("GET", there, timeout_s=5)).body == b"/a%2Fb%7E?q=%7E"
    assert str(egress.located("did:nuwa:mcp:web")) == f"{url}/mcp"
    with pytest.raises(Refused, match="has no way to"):
        egress.located("did:nuwa:mcp:other")


async def test_tools_go_past_the_proxy_of_the_environment_until_a_person_says_otherwise(
    serve: Any, stack: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    egress, port = Egress(inside=["far.example"]), URL(await serve(ok)).port or 0
    stack.push_async_callback(egress.close)
    proxy = await stack.enter_async_context(forwarding(port))
    monkeypatch.setenv("http_proxy", f"http://me:secret@{proxy.address}")
    with pytest.raises(Unavailable) as direct:
        await egress.fetch("GET", URL("http://far.example/a?b=c"), timeout_s=5)
    assert direct.value.fix.startswith("a person can set CAPDEX_PROXY_TOOLS=1")
    assert proxy.heads == []
    monkeypatch.setenv("CAPDEX_PROXY_TOOLS", "1")
    reply = await egress.fetch("GET", URL("http://far.example/a?b=c"), timeout_s=5)
    assert reply.body == b"http://far.example/a?b=c"
    assert proxy.heads[0].startswith("GET http://far.example/a?b=c HTTP/1.1\r\n")


@pytest.mark.parametrize(
    "url", ["https://10.1.2.3/", "https://printer.local/", "http://a.example/"]
)
async def test_what_the_router_does_not_contact_is_not_asked_of_a_proxy(
    stack: Any, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    egress = Egress()
    stack.push_async_callback(egress.close)
    proxy = await stack.enter_async_context(forwarding(1))
    for name in ("all_proxy", "http_proxy"):
        monkeypatch.setenv(name, f"http://{proxy.address}")
    monkeypatch.setenv("CAPDEX_PROXY_TOOLS", "1")
    with pytest.raises(Refused):
        await egress.fetch("GET", URL(url), timeout_s=5)
    assert proxy.heads == []


async def test_a_proxy_that_refuses_a_tool_is_told_and_nothing_was_sent(
    stack: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    egress = Egress()
    stack.push_async_callback(egress.close)
    proxy = await stack.enter_async_context(forwarding(status=403))
    monkeypatch.setenv("https_proxy", f"http://{proxy.address}")
    monkeypatch.setenv("CAPDEX_PROXY_TOOLS", "1")
    with pytest.raises(Unavailable) as told:
        await egress.fetch("POST", URL("https://far.example/"), timeout_s=5)
    assert told.value.why == "the proxy of this environment answers 403"
    assert not told.value.details


async def ok(request: web.Request) -> web.Response:
    return web.Response(text=request.raw_path)


@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308, 399])
async def test_a_redirect_to_another_host_is_refused(
    status: int, serve: Any, local: Egress, nothing: Nothing
) -> None:
    async def elsewhere(_: web.Request) -> web.Response:
        return web.Response(
            status=status, headers={"Location": f"http://127.0.0.1:{nothing.port}/"}
        )

    with pytest.raises(Refused, match="redirects elsewhere") as refused:
        await local.fetch("GET", URL(await serve(elsewhere)), timeout_s=5)
    assert refused.value.code is Code.PERMISSION_DENIED
    assert not nothing.was_reached()


@pytest.mark.parametrize(
    ("location", "named"),
    [
        ("https://127.0.0.1/", "'https://127.0.0.1'"),
        ("http://127.0.0.1:1/", "'http://127.0.0.1:1'"),
        ("//evil.example/x", "'http://evil.example'"),
        ("mailto:x@evil.example", "'no host'"),
    ],
)
async def test_a_redirect_names_what_differs_also_where_the_host_is_the_same(
    location: str, named: str, serve: Any, local: Egress
) -> None:
    async def elsewhere(_: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": location})

    with pytest.raises(Refused, match="redirects elsewhere") as refused:
        await local.fetch("GET", URL(await serve(elsewhere)), timeout_s=5)
    assert refused.value.why == f"it names {named}, which nobody agreed to"


@pytest.mark.parametrize("host", ["xn--99999999.example", "xn--bcher-kva.example"])
async def test_a_host_that_a_redirect_names_is_shown_as_it_is_written(
    host: str, serve: Any, local: Egress
) -> None:
    async def elsewhere(_: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": f"https://{host}/"})

    with pytest.raises(Refused, match="redirects elsewhere") as refused:
        await local.fetch("GET", URL(await serve(elsewhere)), timeout_s=5)
    assert host in refused.value.why


async def test_a_redirect_within_a_host_is_not_followed(serve: Any, local: Egress) -> None:
    async def there(_: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": "/there"})

    with pytest.raises(ExecutionFailed, match="another path") as refused:
        await local.fetch("GET", URL(await serve(there)), timeout_s=5)
    assert "it names '/there'" in refused.value.why


async def test_an_endless_body_is_read_up_to_its_limit(serve: Any, local: Egress) -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with suppress(ConnectionError):
            while True:
                await response.write(b"x" * 65536)
        return response

    with pytest.raises(ExecutionFailed, match="too large"):
        await local.fetch("GET", URL(await serve(endless)), timeout_s=60, max_bytes=100_000)


async def test_a_gzip_bomb_is_unpacked_up_to_its_limit(serve: Any, local: Egress) -> None:
    bomb = gzip.compress(bytes(50_000_000))

    async def bombing(_: web.Request) -> web.Response:
        return web.Response(body=bomb, headers={"Content-Encoding": "gzip"})

    with pytest.raises(ExecutionFailed, match="too large"):
        await local.fetch("GET", URL(await serve(bombing)), timeout_s=60)


async def test_what_comes_behind_gzip_data_is_read_up_to_the_limit(
    serve: Any, local: Egress
) -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Encoding": "gzip"})
        await response.prepare(request)
        await response.write(gzip.compress(b"{}"))
        while True:
            await response.write(bytes(65_536))

    with pytest.raises(ExecutionFailed, match="too large"):
        await local.fetch("GET", URL(await serve(endless)), timeout_s=60)


@pytest.mark.parametrize(
    ("sent", "body"),
    [
        (gzip.compress(b"hello" * 99), b"hello" * 99),
        (b"", b""),
        (gzip.compress(b"hello ") + gzip.compress(b"world") + b"\0", b"hello world"),
    ],
    ids=["full", "", "of two pieces"],
)
async def test_a_compressed_body_is_unpacked_and_none_is_empty(
    sent: bytes, body: bytes, serve: Any, local: Egress
) -> None:
    async def packed(_: web.Request) -> web.Response:
        return web.Response(body=sent, headers={"Content-Encoding": "gzip"})

    reply = await local.fetch("GET", URL(await serve(packed)), timeout_s=5)
    assert reply.body == body


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", b"no gzip"),
        ("gzip", gzip.compress(b"hello" * 99, mtime=0)[:-9]),
        ("gzip", gzip.compress(b"hello" * 99, mtime=0)[:10]),  # its head alone
        ("gzip", gzip.compress(b"hello", mtime=0) + gzip.compress(b"world", mtime=0)[:-9]),
        ("gzip", gzip.compress(b"", mtime=0) * (MAX_MEMBERS + 1)),
        ("br", b"x"),
    ],
)
async def test_a_body_that_cannot_be_unpacked_is_a_failure(
    encoding: str, body: bytes, serve: Any, local: Egress
) -> None:
    async def broken(_: web.Request) -> web.Response:
        return web.Response(body=body, headers={"Content-Encoding": encoding})

    with pytest.raises(ExecutionFailed):
        await local.fetch("GET", URL(await serve(broken)), timeout_s=5)


async def test_a_slow_body_meets_the_deadline(serve: Any, local: Egress) -> None:
    async def slow(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"x")
        await asyncio.Event().wait()
        return response

    with pytest.raises(Unavailable) as late:
        await local.fetch("GET", URL(await serve(slow)), timeout_s=0.1)
    assert late.value.code is Code.TIMEOUT


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: 1\r\n" % i for i in range(1000)) + b"\r\n",
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    ],
)
async def test_a_reply_that_is_no_plain_http_is_a_failure(
    reply: bytes, serve_bytes: Any, local: Egress
) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        await writer.drain()
        await reader.read()

    with pytest.raises(ExecutionFailed):
        await local.fetch("GET", URL(await serve_bytes(talk)), timeout_s=5)


def saying(reply: bytes) -> Any:
    """Return a service that answers so, and closes the connection."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        await writer.drain()
        writer.close()

    return talk


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n",
    ],
)
async def test_a_connection_that_ends_early_is_told_as_such(
    reply: bytes, serve_bytes: Any, local: Egress
) -> None:
    with pytest.raises(Unavailable, match="closed the connection") as ended:
        await local.fetch("GET", URL(await serve_bytes(saying(reply))), timeout_s=5)
    assert ended.value.details == {"sent": True}


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n" + b"x" * 9, "over 8 bytes"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 1\r\n\r\nx", "'br'"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx", "gzip"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 9000 + b"\r\n\r\n", "8190 bytes"),
        (b"SSH-2.0-OpenSSH_9.9\r\n\r\n", "Bad status line"),
        (b"HTTP/1.1 303 See Other\r\nLocation: /done\r\n\r\n", "/done"),
        (b"HTTP/1.1 302 Found\r\nLocation: https://example.org/\r\n\r\n", "example.org"),
    ],
)
async def test_an_answer_that_cannot_be_used_says_that_the_request_was_sent(
    reply: bytes, words: str, serve_bytes: Any, local: Egress
) -> None:
    url = URL(await serve_bytes(saying(reply)))
    with pytest.raises(CapdexError) as failed:
        await local.fetch("POST", url, body=b"{}", timeout_s=5, max_bytes=8)
    assert words in failed.value.line
    assert (failed.value.details or {})["sent"] is True


async def test_a_closed_port_is_unavailable(local: Egress) -> None:
    free = socket.create_server(("127.0.0.1", 0))
    port = free.getsockname()[1]
    free.close()
    with pytest.raises(Unavailable) as down:
        await local.fetch("GET", URL(f"http://127.0.0.1:{port}/"), timeout_s=5)
    assert (down.value.code, down.value.details) == (Code.SERVICE_UNAVAILABLE, None)
    assert down.value.message == f"127.0.0.1:{port} cannot be reached"
    assert down.value.why == "connection refused"


async def test_a_host_without_an_address_is_told_in_words(local: Egress) -> None:
    with pytest.raises(Unavailable) as down:
        await local.fetch("GET", URL("https://nowhere.invalid/"), timeout_s=20)
    assert down.value.message == "nowhere.invalid cannot be reached"
    assert "name" in down.value.why.split(), "the words of the system's resolver"


async def test_cookies_are_not_kept(serve: Any, local: Egress) -> None:
    seen: list[str | None] = []

    async def cookies(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Cookie"))
        return web.Response(headers={"Set-Cookie": "a=b"})

    url = URL(await serve(cookies))
    for _ in range(2):
        await local.fetch("GET", url, timeout_s=5)
    assert seen == [None, None]


async def test_a_thousand_calls_at_once_use_a_bounded_number_of_connections(
    serve: Any, local: Egress
) -> None:
    peers: set[Any] = set()

    async def counted(request: web.Request) -> web.Response:
        assert request.transport is not None
        peers.add(request.transport.get_extra_info("peername"))
        return web.Response(text="ok")

    url = URL(await serve(counted))
    replies = await asyncio.gather(*(local.fetch("GET", url, timeout_s=60) for _ in range(1000)))
    assert {reply.status for reply in replies} == {200}
    assert len(peers) <= 16
