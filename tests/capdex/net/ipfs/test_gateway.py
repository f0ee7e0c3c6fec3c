"""Blocks from gateways and directories: whatever comes back has the hash that was asked for."""

from __future__ import annotations

import asyncio
import gzip
import os
import stat
import subprocess
import sys
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import Code, InvalidInput, Unavailable, UsageError
from capdex.ipld.cid import Cid
from capdex.ipld.unixfs import MAX_BLOCK_BYTES
from capdex.net.ipfs import source
from capdex.net.ipfs.block_store import MANY, BlockDirectory
from capdex.net.ipfs.gateway import MAX_UNDECLARED_BYTES, Gateway
from capdex.net.ipfs.kubo import Kubo, multiaddr_of, url_of
from capdex.net.ipfs.multi_source import MultiSource
from capdex.net.ipfs.open import open_ipfs, open_storage
from capdex.net.ipfs.source import FetchOutcome, SourceFault

PACKAGE = b"metadata:\n  id: did:nuwa:cap:note@1.0.0\n" * 50
CID = Cid.of(PACKAGE)
DAG_PB = Cid.parse("QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG")

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
Serve = Callable[[Answer], Awaitable[str]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Serve one answer to every request; returns the address."""
    servers: list[TestServer] = []

    async def start(answer: Answer) -> str:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", answer)
        server = TestServer(app)
        await server.start_server()
        servers.append(server)
        return str(server.make_url("")).rstrip("/")

    yield start
    for server in servers:
        await server.close()


def body(data: bytes, status: int = 200, **headers: str) -> Answer:
    async def answer(_: web.Request) -> web.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(body=data, status=status, headers=named)

    return answer


async def refused(url: str, cid: Cid = CID) -> Unavailable:
    """What `Gateway.get` says when it does not accept the answer."""
    async with Gateway(url) as gateway:
        with pytest.raises(Unavailable) as caught:
            await gateway.get(cid)
    assert caught.value.code is Code.IPFS_UNAVAILABLE
    assert url in caught.value.message
    assert caught.value.fix
    return caught.value


async def test_a_gateway_gives_the_block_that_was_asked_for(serve: Serve) -> None:
    seen: list[web.Request] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request)
        return web.Response(body=PACKAGE, content_type="application/vnd.ipld.raw")

    async with Gateway(await serve(answer)) as gateway:
        assert await gateway.get(CID) == PACKAGE
    (request,) = seen
    assert request.path_qs == f"/ipfs/{CID}?format=raw"
    assert request.headers["Accept"] == "application/vnd.ipld.raw"
    assert request.headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("written", ["/ipfs", "/ipfs/"])
async def test_a_gateway_may_be_written_with_the_path_of_its_files(
    serve: Serve, written: str
) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=PACKAGE, status=200 if request.path == f"/ipfs/{CID}" else 404)

    async with Gateway(await serve(answer) + written) as gateway:
        assert await gateway.get(CID) == PACKAGE


@pytest.mark.parametrize(
    "data",
    [b"", PACKAGE[:-1], PACKAGE + b"\n", b"<!doctype html><title>Not pinned</title>"],
    ids=["nothing", "too little", "too much", "a page"],
)
async def test_other_bytes_are_refused_whatever_the_status_says(serve: Serve, data: bytes) -> None:
    error = await refused(await serve(body(data)))
    assert "other bytes" in error.why


@pytest.mark.parametrize("status", [204, 206, 304, 404, 410, 429, 500, 504])
async def test_only_200_is_an_answer(serve: Serve, status: int) -> None:
    error = await refused(await serve(body(PACKAGE if status != 204 else b"", status)))
    assert str(status) in error.why


async def test_a_gateway_that_asks_for_patience_in_no_calendar_leaves_the_other_sources(
    serve: Serve, block_directory: BlockDirectory
) -> None:
    await block_directory.put(PACKAGE)
    for year in ("99999", "9" * 20):
        never = {"Retry-After": f"Wed, 21 Oct {year} 07:28:00 GMT"}
        async with Gateway(await serve(body(b"", 429, **never))) as gateway:
            assert await MultiSource([gateway, block_directory]).get(CID) == PACKAGE


async def test_a_redirect_is_not_followed_to_another_host(serve: Serve) -> None:
    asked: list[str] = []

    async def elsewhere(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(body=PACKAGE)

    other = await serve(elsewhere)
    for status in (301, 302, 303, 307, 308):
        url = await serve(body(b"", status, Location=f"{other}/ipfs/{CID}"))
        assert str(status) in (await refused(url)).why
    assert asked == []


async def test_a_gateway_with_a_host_for_each_cid_is_said_to_be_of_no_use(serve: Serve) -> None:
    """No address that it redirects to serves another block."""
    moved = body(b"", 301, Location=f"https://{CID}.ipfs.dweb.link/?format=raw")
    assert "or one that does not" in (await refused(await serve(moved))).why


@pytest.mark.parametrize(
    ("status", "data", "said"),
    [
        (301, b"", "it redirects; give the address that it redirects to"),
        (403, b"API key\x1b inactive", ': "API key inactive"'),
        (403, b"<html>Just a moment", "it sends a page for a browser"),
        (200, b" <html>Checking your browser", "it sends a page for a browser"),
    ],
)
async def test_a_reply_that_is_no_block_is_named_as_what_it_seems(
    serve: Serve, status: int, data: bytes, said: str
) -> None:
    assert said in (await refused(await serve(body(data, status)))).why


async def test_a_gateway_named_as_kubo_is_said_to_be_one(serve: Serve) -> None:
    async with Kubo(await serve(body(b"404 page not found", 404))) as kubo:
        with pytest.raises(SourceFault) as raised:
            await kubo.get(CID)
    assert "write gateway:URL" in raised.value.why


async def test_kubo_named_as_a_gateway_is_said_to_be_none(serve: Serve) -> None:
    url = await serve(body(b"404 page not found\n", 404))
    assert "write its URL alone" in (await refused(url)).why
    url = await serve(body(b"failed to resolve /ipfs/bafk: not found", 404))
    assert "write its URL" not in (await refused(url)).why


@pytest.mark.parametrize("coding", ["", "identity", "Identity"])
async def test_a_reply_that_names_no_coding_is_taken(serve: Serve, coding: str) -> None:
    async with Gateway(await serve(body(PACKAGE, Content_Encoding=coding))) as gateway:
        assert await gateway.get(CID) == PACKAGE


async def test_an_endless_body_is_cut_where_no_block_of_a_package_goes_on(serve: Serve) -> None:
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(bytes(65536))
            sent += 65536

    error = await refused(await serve(endless))
    assert str(MAX_UNDECLARED_BYTES) in error.why
    assert sent < 64 * MAX_UNDECLARED_BYTES  # what the socket buffers took, and no more


async def test_a_body_that_says_it_is_too_long_is_not_read(serve: Serve) -> None:
    async def huge(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": str(1 << 30)})
        await response.prepare(request)
        return response

    assert str(1 << 30) in (await refused(await serve(huge))).why


async def test_a_block_of_the_largest_size_is_read_when_its_length_is_declared(
    serve: Serve,
) -> None:
    block = bytes(MAX_BLOCK_BYTES)
    async with Gateway(await serve(body(block))) as gateway:
        assert await gateway.get(Cid.of(block)) == block
    more = bytes(MAX_BLOCK_BYTES + 1)
    assert "would answer" in (await refused(await serve(body(more)), Cid.of(more))).why


async def test_a_dripping_body_is_dropped_by_the_rate_floor(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capdex.net.ipfs.gateway.LEAST_BYTES_S", 1 << 20)
    monkeypatch.setattr("capdex.net.ipfs.gateway.GRACE_S", 0.0)

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x")
            await asyncio.sleep(0.001)

    error = await refused(await serve(drip))
    assert "bytes/s" in error.why


@pytest.mark.parametrize("limit", ["sock_read", "total"])
async def test_a_silent_gateway_is_given_up_after_its_time(
    serve: Serve, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capdex.net.ipfs.gateway.TIMEOUT", aiohttp.ClientTimeout(**{limit: 0.05}))
    released = asyncio.Event()

    async def silent(_: web.Request) -> web.Response:
        await released.wait()
        return web.Response()

    error = await refused(await serve(silent))
    assert error.why
    released.set()


@pytest.mark.parametrize(
    ("encoding", "encode"), [("gzip", gzip.compress), ("deflate", zlib.compress)]
)
async def test_a_decompression_bomb_is_never_unpacked(
    serve: Serve, encoding: str, encode: Callable[[bytes], bytes]
) -> None:
    bomb = encode(bytes(64 * 1024 * 1024))
    error = await refused(await serve(body(bomb, Content_Encoding=encoding)))
    assert "encoding" in error.why


async def test_a_gateway_that_is_down_is_named_with_what_to_do(unused_tcp_port: int) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}"
    error = await refused(url)
    assert str(unused_tcp_port) in error.message
    assert error.why == "connection refused"


async def test_a_gateway_that_talks_nonsense_is_unavailable() -> None:
    async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(nonsense, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert (await refused(f"http://127.0.0.1:{port}")).why


@pytest.mark.parametrize(("hints", "outcome"), [(3, None), (10_000, FetchOutcome.FAILED)])
async def test_a_gateway_is_not_heard_out_that_only_says_that_an_answer_will_come(
    hints: int, outcome: FetchOutcome | None
) -> None:
    async def soon(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(PACKAGE)}\r\n\r\n".encode()
        writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n" * hints + head + PACKAGE)
        with suppress(ConnectionError):
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(soon, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        if outcome is None:
            async with Gateway(url) as gateway:
                assert await gateway.get(CID) == PACKAGE
        else:
            fault = await refused(url)
            assert isinstance(fault, SourceFault)
            assert fault.outcome is outcome


async def test_a_cut_connection_is_no_answer(serve: Serve) -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": str(len(PACKAGE))})
        await response.prepare(request)
        await response.write(PACKAGE[:100])
        assert request.transport is not None
        request.transport.close()
        return response

    ended = "the reply ended before it was whole, or cannot be decompressed"
    assert (await refused(await serve(cut))).why == ended


async def test_a_dag_pb_block_is_given_as_it_is_and_hashed(serve: Serve) -> None:
    block = bytes.fromhex("0a09080212036f6e651803")  # a UnixFS file of "one"
    cid = Cid.from_bytes(b"\x12\x20" + Cid.of(block).digest)
    async with Gateway(await serve(body(block))) as gateway:
        assert await gateway.get(cid) == block
        assert (await MultiSource([gateway]).file(cid)).data == b"one"
    assert (await refused(await serve(body(PACKAGE)), DAG_PB)).why


@pytest.mark.parametrize(
    "url",
    [
        *("127.0.0.1:8080", "ftp://host", "http://", "http://me:pw@host", "http://:pw@host"),
        # /ipfs/<cid> would be a part of any of these
        *("http://host/?key=x", "http://host/#x", "http://host?", "http://host/#"),
    ],
)
def test_a_gateway_has_an_http_address_without_secrets(url: str) -> None:
    with pytest.raises(UsageError):
        Gateway(url)


@pytest.mark.parametrize("status", [403, 600, 99999])  # the last is no HTTP
@pytest.mark.parametrize("kind", [Gateway, Kubo])
async def test_a_key_in_the_path_of_a_source_is_not_shown(
    serve: Serve, kind: type[Gateway | Kubo], status: int
) -> None:
    async def repeats(request: web.Request) -> web.Response:
        assert request.transport is not None
        head = f"HTTP/1.1 {status} no\r\nContent-Length: 99\r\n\r\n"
        request.transport.write(f"{head}no key {request.url}{' ' * 99}".encode())
        return web.Response()

    async with kind(await serve(repeats) + "/v1/k3y0123456789") as source:
        with pytest.raises(SourceFault) as caught:
            await source.get(CID)
    assert "k3y" not in source.label + str(caught.value.to_json())


async def test_the_second_source_is_asked_when_the_first_lies(
    serve: Serve, block_directory: BlockDirectory
) -> None:
    lying, honest = Gateway(await serve(body(b"lies"))), Gateway(await serve(body(PACKAGE)))
    try:
        assert await MultiSource([block_directory, lying, honest]).get(CID) == PACKAGE
    finally:
        await lying.close()
        await honest.close()


async def test_a_slow_source_is_not_waited_for_when_another_has_it(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "SLOW_S", 0.01)
    left = asyncio.Event()

    async def stall(_: web.Request) -> web.Response:
        try:
            await asyncio.Event().wait()
        finally:
            left.set()
        return web.Response()

    async with Gateway(await serve(stall)) as slow, Gateway(await serve(body(PACKAGE))) as quick:
        assert await MultiSource([slow, quick]).get(CID) == PACKAGE
    await left.wait()  # its connection was let go


async def test_a_directory_that_cannot_be_read_leaves_the_other_sources(
    serve: Serve, tmp_path: Path
) -> None:
    place = tmp_path / "a file"
    place.write_text("not a directory")
    async with Gateway(await serve(body(PACKAGE))) as gateway:
        assert await MultiSource([BlockDirectory(place), gateway]).get(CID) == PACKAGE


async def test_when_nobody_has_it_every_source_is_named(
    serve: Serve, block_directory: BlockDirectory
) -> None:
    async with Gateway(await serve(body(b"", 404))) as gateway:
        with pytest.raises(Unavailable) as caught:
            await MultiSource([block_directory, gateway]).get(CID)
    assert str(block_directory.path) in caught.value.why
    assert gateway.base_url in caught.value.why


async def test_no_source_at_all_is_said_plainly() -> None:
    with pytest.raises(Unavailable, match="no source"):
        await MultiSource([]).get(CID)


async def test_a_directory_gives_back_what_it_took(block_directory: BlockDirectory) -> None:
    with pytest.raises(Unavailable):
        await block_directory.get(CID)
    assert await block_directory.put(PACKAGE) == CID
    assert await block_directory.put(PACKAGE) == CID
    assert await block_directory.get(CID) == PACKAGE


@pytest.mark.parametrize("spoilt", [b"", PACKAGE[:-1], PACKAGE + b"!"])
async def test_a_corrupted_block_counts_as_absent_and_is_mended(
    block_directory: BlockDirectory, spoilt: bytes
) -> None:
    await block_directory.put(PACKAGE)
    (file,) = (path for path in block_directory.path.rglob("*") if path.is_file())
    file.write_bytes(spoilt)
    with pytest.raises(Unavailable):
        await block_directory.get(CID)
    await block_directory.put(PACKAGE)
    assert await block_directory.get(CID) == PACKAGE


async def test_many_writers_of_one_block_leave_one_whole_file(
    block_directory: BlockDirectory,
) -> None:
    others = [BlockDirectory(block_directory.path) for _ in range(8)]
    await asyncio.gather(*(other.put(PACKAGE) for other in others for _ in range(4)))
    files = [path for path in block_directory.path.rglob("*") if path.is_file()]
    assert [file.read_bytes() for file in files] == [PACKAGE]


async def test_a_write_that_fails_leaves_nothing_behind(
    block_directory: BlockDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(UsageError) as caught:
        await block_directory.put(PACKAGE)
    assert caught.value.why == "No space left on device"
    assert not [path for path in block_directory.path.rglob("*") if path.is_file()]


@pytest.mark.parametrize("count", [1, 2 * MANY])
def test_blocks_that_may_not_be_durable_are_not_there(
    block_directory: BlockDirectory, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    some = {Cid.of(data): data for data in (b"%d" % number for number in range(count))}
    sync, failing = os.fsync, [OSError(5, "Input/output error")] * count

    def fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode) and failing:
            raise failing.pop()
        sync(descriptor)

    monkeypatch.setattr("os.fsync", fsync)
    monkeypatch.setattr("capdex.net.ipfs.block_store._LIBC", object())  # a system without it
    with pytest.raises(UsageError):
        block_directory.keep_many(some.items())
    assert not any(map(block_directory.holds, some))
    failing.clear()
    block_directory.keep_many(some.items())
    assert all(map(block_directory.holds, some))


def test_a_write_that_fails_takes_no_block_away_that_another_process_wrote(
    block_directory: BlockDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = b"one", b"other"
    replace = os.replace

    def full(*_: object) -> None:
        monkeypatch.setattr("os.replace", replace)
        BlockDirectory(block_directory.path).write(other)  # just then
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(UsageError):
        block_directory.keep_many([(Cid.of(data), data) for data in (one, other)])
    assert [block_directory.holds(Cid.of(data)) for data in (one, other)] == [False, True]


def test_a_process_killed_while_it_wrote_is_not_in_the_way_of_one_with_its_number(
    tmp_path: Path,
) -> None:
    write = (
        "import os, sys; from pathlib import Path; from capdex.net.ipfs.block_store import "
        "BlockDirectory\n"
        "os.getpid = lambda: 1\n"
        "if sys.argv[2] == 'killed': os.replace = lambda *_: os._exit(9)\n"
        "BlockDirectory(Path(sys.argv[1])).write(b'package')\n"
    )
    for how, status in (("killed", 9), ("whole", 0)):
        done = subprocess.run([sys.executable, "-c", write, tmp_path, how], check=False)
        assert done.returncode == status
    assert BlockDirectory(tmp_path).read(Cid.of(b"package")) == b"package"


async def test_a_block_over_the_limit_is_refused(block_directory: BlockDirectory) -> None:
    with pytest.raises(InvalidInput) as caught:
        block_directory.write(bytes(MAX_BLOCK_BYTES + 1))
    assert caught.value.code is Code.TOO_LARGE


async def test_a_directory_that_cannot_be_used_says_why(tmp_path: Path) -> None:
    place = tmp_path / "a file"
    place.write_text("not a directory")
    with pytest.raises(UsageError) as caught:
        await BlockDirectory(place).put(PACKAGE)
    assert str(place) in caught.value.message


@given(data=st.binary(max_size=4096))
def test_whatever_is_written_is_read(data: bytes, tmp_path_factory: Any) -> None:
    blocks = BlockDirectory(tmp_path_factory.getbasetemp() / "any blocks")
    assert blocks.read(blocks.write(data)) == data


def test_a_spec_names_a_directory_a_gateway_or_a_kubo(tmp_path: Path) -> None:
    directory = open_ipfs(f"dir:{tmp_path}")
    assert isinstance(directory, BlockDirectory)
    assert directory.path == tmp_path
    assert isinstance(open_ipfs("gateway:https://gateway.example/"), Gateway)
    for spec in ("http://127.0.0.1:5001", "/ip4/127.0.0.1/tcp/5001", "/dns/kubo/tcp/5001/http"):
        assert open_ipfs(spec).label.startswith("Kubo at http://")
        assert open_storage(spec).label.startswith("Kubo at http://")


@pytest.mark.parametrize(
    "spec",
    [
        *("", "kubo", "gateway:", "ipfs://cid", "/ip4/1.2.3.4/udp/5001"),
        *("/ip4/1.2.3.4/tcp/99999", "/ip4/1.2.3.4/tcp/²", "http://127.0.0.1:99999"),
        *("http://127.0.0.1:port", "gateway:http://127.0.0.1:99999", "dir:~nobody-of-this-name/a"),
    ],
)
def test_any_other_spec_is_refused_with_what_to_write(spec: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_ipfs(spec)
    assert caught.value.fix


def test_a_gateway_takes_no_packages() -> None:
    with pytest.raises(UsageError, match="cannot be published to"):
        open_storage("gateway:https://gateway.example")


@pytest.mark.parametrize(
    ("multiaddr", "url"),
    [
        ("/ip4/127.0.0.1/tcp/5001/http", "http://127.0.0.1:5001"),
        ("/ip6/::1/tcp/5001/http", "http://[::1]:5001"),
        ("/dns/kubo/tcp/5001/http", "http://kubo:5001"),
        ("/dns/kubo.example/tcp/443/https", "https://kubo.example:443"),
    ],
)
def test_an_address_reads_the_same_both_ways(multiaddr: str, url: str) -> None:
    assert url_of(multiaddr) == url
    assert multiaddr_of(url) == multiaddr
