"""Proxies of the environment: which requests go through one, and what is said if it refuses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from capdex.errors import CapdexError
from capdex.ipld.cid import Cid
from capdex.net.connection import proxy_of
from capdex.net.http import HttpClient, HttpError
from capdex.net.ipfs.gateway import Gateway
from capdex.net.ipfs.kubo import Kubo
from capdex.net.rpc.aiohttp_transport import AiohttpTransport
from capdex.net.rpc.errors import RpcError
from capdex_publisher.authoring.imports.mcp import import_mcp
from capdex_publisher.authoring.imports.source import read_source
from capdex_publisher.keys.external_signer import ExternalSigner
from tests.capdex.forward_proxy import forwarding

FAR = "https://far.example/path"
OTHER = "http://other:1"


@pytest.mark.parametrize(
    ("environment", "url", "proxy"),
    [
        ({}, FAR, None),
        ({"https_proxy": "http://p.example:3128"}, FAR, "http://p.example:3128"),
        ({"HTTPS_PROXY": "http://p.example:3128/"}, FAR, "http://p.example:3128"),
        ({"https_proxy": "p.example:3128"}, FAR, "http://p.example:3128"),
        ({"https_proxy": "http://p.example"}, FAR, "http://p.example:80"),
        ({"https_proxy": "http://me:p%40ss@p.example:1"}, FAR, "http://me:p%40ss@p.example:1"),
        ({"https_proxy": "http://p.example:1", "HTTPS_PROXY": OTHER}, FAR, "http://p.example:1"),
        ({"https_proxy": "", "HTTPS_PROXY": OTHER}, FAR, None),
        ({"http_proxy": "http://p.example:1"}, FAR, None),
        ({"http_proxy": "http://p.example:1"}, "http://far.example/", "http://p.example:1"),
        ({"all_proxy": "http://p.example:1"}, FAR, "http://p.example:1"),
        ({"https_proxy": "http://p.example:1"}, "wss://far.example/", "http://p.example:1"),
        ({"https_proxy": "https://p.example:1"}, FAR, None),
        ({"all_proxy": "socks5://p.example:1"}, FAR, None),
        ({"https_proxy": "http://p.example:"}, FAR, "http://p.example:80"),
        ({"https_proxy": "http://[::1]"}, FAR, "http://[::1]:80"),
        ({"https_proxy": "http://p.example:0"}, FAR, None),
        ({"https_proxy": "http://p.example:none"}, FAR, None),
        ({"https_proxy": "http://"}, FAR, None),
        ({"all_proxy": "http://p.example:1"}, "http://127.0.0.1:8545", None),
        ({"all_proxy": "http://p.example:1"}, "http://[::1]:8545", None),
        ({"all_proxy": "http://p.example:1"}, "http://localhost:8545", None),
        ({"all_proxy": "http://p.example:1"}, "http://a.localhost:8545", None),
        ({"all_proxy": "http://p.example:1"}, "http://kubo:5001", None),
        ({"all_proxy": "http://p.example:1", "no_proxy": "*"}, FAR, None),
        ({"all_proxy": "http://p.example:1", "no_proxy": "far.example"}, FAR, None),
        ({"all_proxy": "http://p.example:1", "no_proxy": "x, .example"}, FAR, None),
        ({"all_proxy": "http://p.example:1", "NO_PROXY": "FAR.example:443"}, FAR, None),
        ({"all_proxy": "http://p.example:1", "NO_PROXY": "far.example:80"}, FAR, OTHER),
        ({"all_proxy": "http://p.example:1", "no_proxy": "x,*"}, FAR, None),
        ({"all_proxy": "http://p.example:1", "no_proxy": "*.example"}, FAR, None),
        ({"all_proxy": "http://p.example:1", "no_proxy": "x far.example"}, FAR, None),
        ({"all_proxy": "http://p.example:1", "no_proxy": ","}, FAR, OTHER),
        ({"all_proxy": "http://p.example:1", "no_proxy": "r.example"}, FAR, OTHER),
        ({"all_proxy": "http://p.example:1", "no_proxy": "10.0.0.0/8"}, "http://10.2.3.4:1", None),
        ({"all_proxy": "http://p.example:1", "no_proxy": "10.0.0.0/8"}, "http://11.0.0.1", OTHER),
        ({"all_proxy": "http://p.example:1", "no_proxy": "fd00::1"}, "http://[fd00::1]:1", None),
        ({"all_proxy": "http://p.example:1", "no_proxy": "[fd00::1]"}, "https://[fd00::1]/", None),
        (
            {"all_proxy": "http://p.example:1", "no_proxy": "[fd00::1]:8"},
            "http://[fd00::1]:8",
            None,
        ),
        (
            {"all_proxy": "http://p.example:1", "no_proxy": "[fd00::1]:8"},
            "http://[fd00::1]:9",
            OTHER,
        ),
        ({"all_proxy": "http://p.example:1"}, "http://[half/", None),
    ],
)
def test_the_proxy_on_the_way_to_a_url_is_that_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], url: str, proxy: str | None
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_of(url) == (environment["all_proxy"] if proxy is OTHER else proxy)


async def _gateway(url: str) -> object:
    async with Gateway(url) as gateway:
        return await gateway.get(Cid.of(b"a block"))


async def _kubo(url: str) -> object:
    async with Kubo(url) as kubo:
        return await kubo.put(b"a file")


async def _rpc(url: str) -> object:
    transport = AiohttpTransport()
    try:
        return await transport.post(url, "the endpoint", b"{}")
    finally:
        await transport.close()


async def _command(url: str) -> object:
    async with HttpClient() as http:
        return await http.request("GET", url, max_bytes=9)


async def _signer(url: str) -> object:
    return await ExternalSigner(url, "0x" + "11" * 20).sign_message(b"x")


async def refusal(ask: Callable[[str], Awaitable[Any]], url: str = "https://far.example") -> str:
    """What a client says of a request that fails."""
    with pytest.raises((CapdexError, HttpError, RpcError)) as told:
        await ask(url)
    return f"{told.value} {getattr(told.value, 'why', '')}"


CLIENTS = {
    "commands": _command,
    "chain of a node": _rpc,
    "blocks": _gateway,
    "uploads": _kubo,
    "signer": _signer,
    "document": read_source,
    "MCP server": import_mcp,
}


@pytest.mark.parametrize("ask", CLIENTS.values(), ids=CLIENTS)
async def test_each_client_goes_through_the_proxy_and_says_that_it_refuses(
    monkeypatch: pytest.MonkeyPatch, ask: Callable[[str], Awaitable[Any]]
) -> None:
    async with forwarding(status=407) as proxy:
        monkeypatch.setenv("https_proxy", f"http://me:secret@{proxy.address}")
        words = await refusal(ask)
    assert proxy.heads[0].startswith("CONNECT far.example:443 HTTP/1.")
    assert "Proxy-Authorization: Basic bWU6c2VjcmV0" in proxy.heads[0]
    assert "407" in words
    assert "secret" not in words


@pytest.mark.parametrize("ask", CLIENTS.values(), ids=CLIENTS)
async def test_a_proxy_is_asked_for_a_host_in_another_script_in_punycode(
    monkeypatch: pytest.MonkeyPatch, ask: Callable[[str], Awaitable[Any]]
) -> None:
    async with forwarding(status=407) as proxy:
        monkeypatch.setenv("https_proxy", f"http://{proxy.address}")
        await refusal(ask, "https://bücher.example")
    assert proxy.heads[0].startswith("CONNECT xn--bcher-kva.example:443 HTTP/1.")


@pytest.mark.parametrize("ask", [_command, _rpc, _gateway, _signer, read_source])
async def test_a_proxy_that_nobody_knows_is_named_and_not_the_server(
    monkeypatch: pytest.MonkeyPatch, ask: Callable[[str], Awaitable[Any]]
) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.invalid:3128")
    words = await refusal(ask)
    assert "through the proxy proxy.invalid:3128: name or service not known" in words


@pytest.mark.parametrize("ask", [_command, _rpc, _gateway, _signer, read_source])
async def test_a_proxy_that_is_down_is_named_and_not_the_server(
    monkeypatch: pytest.MonkeyPatch,
    unused_tcp_port: int,
    ask: Callable[[str], Awaitable[Any]],
) -> None:
    monkeypatch.setenv("https_proxy", f"http://me:secret@127.0.0.1:{unused_tcp_port}")
    words = await refusal(ask)
    assert f"through the proxy 127.0.0.1:{unused_tcp_port}: connection refused" in words
    assert "secret" not in words


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    for _ in range(2):
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(head), head))
    writer.close()


async def test_a_command_reads_through_a_tunnel_with_the_certificate_of_the_server(
    certified: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, file = certified("far.example")
    async with (
        await asyncio.start_server(_answer, "127.0.0.1", 0, ssl=context) as server,
        forwarding(server.sockets[0].getsockname()[1]) as proxy,
        HttpClient() as http,
    ):
        monkeypatch.setenv("https_proxy", f"http://me:secret@{proxy.address}")
        with pytest.raises(HttpError, match=f"through the proxy {proxy.address}: TLS failed"):
            await http.request("GET", FAR, max_bytes=999)
        monkeypatch.setenv("SSL_CERT_FILE", file)
        first = await http.request("GET", FAR, max_bytes=999)
        again = await http.request("GET", FAR, max_bytes=999)
    assert first.body == again.body
    assert first.body.startswith(b"GET /path HTTP/1.1\r\nHost: far.example\r\n")
    assert b"Proxy-" not in first.body  # the server learns nothing of the proxy's password
    assert len(proxy.heads) == 2  # the second request to the server took the same tunnel


@pytest.mark.parametrize("ask", CLIENTS.values(), ids=CLIENTS)
async def test_a_proxy_with_a_certificate_that_is_not_trusted_is_told(
    certified: Any, monkeypatch: pytest.MonkeyPatch, ask: Callable[[str], Awaitable[Any]]
) -> None:
    context, _ = certified("far.example")
    async with (
        await asyncio.start_server(_answer, "127.0.0.1", 0, ssl=context) as server,
        forwarding(server.sockets[0].getsockname()[1]) as proxy,
    ):
        monkeypatch.setenv("https_proxy", f"http://{proxy.address}")
        with pytest.raises((CapdexError, HttpError, RpcError)) as told:
            await ask(FAR)
    words = f"{told.value} {getattr(told.value, 'why', '')}".lower()
    assert "certificate" in words
    assert "verify" in words


async def test_a_request_without_tls_is_given_to_the_proxy_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with (
        await asyncio.start_server(_answer, "127.0.0.1", 0) as server,
        forwarding(server.sockets[0].getsockname()[1]) as proxy,
        HttpClient() as http,
    ):
        monkeypatch.setenv("http_proxy", f"http://me:secret@{proxy.address}")
        await http.request("GET", "http://far.example:8080/a?b=c", max_bytes=999)
    assert proxy.heads == [
        "GET http://far.example:8080/a?b=c HTTP/1.1\r\nHost: far.example:8080\r\n"
        "Proxy-Authorization: Basic bWU6c2VjcmV0\r\nContent-Length: 0\r\n"
        "Accept-Encoding: identity\r\n\r\n"
    ]
