"""A real Kubo: what is put comes back under the CID that the contract takes."""

from __future__ import annotations

import os
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from capdex.errors import Code, Unavailable
from capdex.ipld.cid import Cid
from capdex.ipld.unixfs import divide
from capdex.net.ipfs.gateway import Gateway
from capdex.net.ipfs.kubo import Kubo


async def test_what_one_client_puts_another_gets(kubo: Any) -> None:
    data = os.urandom(3000)
    async with Kubo(kubo.api) as mine, Kubo(kubo.api) as another:
        cid = await mine.put(data)
        assert cid == Cid.of(data)
        assert await another.get(cid) == data


async def test_kubos_gateway_is_a_trustless_gateway(kubo: Any) -> None:
    data = os.urandom(3000)
    async with Kubo(kubo.api) as rpc, Gateway(kubo.gateway) as gateway:
        assert await gateway.get(await rpc.put(data)) == data


async def test_a_file_goes_to_kubo_without_the_proxy_of_the_environment(
    kubo: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    async with Kubo(kubo.api) as client:
        assert await client.put(b"a file") == Cid.of(b"a file")


async def test_a_kubo_behind_tls_is_trusted_by_the_file_that_the_environment_names(
    certified: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def add(request: web.Request) -> web.Response:
        await request.read()
        return web.json_response({"Name": "x", "Hash": str(Cid.of(b"a file")), "Size": "1"})

    app = web.Application()
    app.router.add_post("/api/v0/add", add)
    context, file = certified()
    server = TestServer(app, scheme="https", host="localhost")
    await server.start_server(ssl=context)
    try:
        async with Kubo(str(server.make_url("")).rstrip("/")) as client:
            with pytest.raises(Unavailable, match="did not take the file") as refused:
                await client.put(b"a file")
            monkeypatch.setenv("SSL_CERT_FILE", file)
            assert await client.put(b"a file") == Cid.of(b"a file")
    finally:
        await server.close()
    assert refused.value.why == "TLS failed: CERTIFICATE_VERIFY_FAILED, self-signed certificate"


async def test_putting_twice_gives_the_same_cid(kubo: Any) -> None:
    data = os.urandom(3000)
    async with Kubo(kubo.api) as client:
        assert await client.put(data) == await client.put(data)


async def test_a_file_of_the_largest_package_is_one_raw_block(kubo: Any) -> None:
    data = os.urandom(256 * 1024)
    async with Kubo(kubo.api) as client:
        assert await client.get(await client.put(data)) == data


@pytest.mark.parametrize("size", [0, 256 * 1024 + 1, 4 * 1024 * 1024])
async def test_a_file_of_a_package_is_divided_as_its_cid_says(kubo: Any, size: int) -> None:
    data = os.urandom(size)
    async with Kubo(kubo.api) as client:
        assert await client.put(data) == divide(data)[0][0]
        for cid, block in divide(data):
            assert await client.get(cid) == block


async def test_an_absent_block_is_unavailable_not_wrong(
    kubo: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capdex.net.ipfs.gateway.TIMEOUT", aiohttp.ClientTimeout(total=5.0))
    async with Kubo(kubo.api) as client:
        with pytest.raises(Unavailable) as caught:
            await client.get(cid := Cid.of(os.urandom(32)))
    assert caught.value.code is Code.IPFS_UNAVAILABLE
    said = "block was not found locally (offline): ipld: could not find"
    assert caught.value.why == f'it answered 500 for {cid}: "{said} {cid}"'


async def test_a_kubo_that_is_down_is_named_with_how_to_start_it(unused_tcp_port: int) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}"
    async with Kubo(url) as client:
        with pytest.raises(Unavailable) as caught:
            await client.put(b"a file")
        assert caught.value.code is Code.IPFS_UNAVAILABLE
        assert url in caught.value.message
        assert caught.value.why == "connection refused"
        assert "ipfs daemon" in caught.value.fix
        with pytest.raises(Unavailable):
            await client.get(Cid.of(b"a file"))


async def test_a_kubo_below_a_path_takes_files_and_gives_them() -> None:
    stored = b"a file"

    async def add(request: web.Request) -> web.Response:
        await request.read()
        return web.json_response({"Name": "x", "Hash": str(Cid.of(stored)), "Size": "1"})

    async def block(_: web.Request) -> web.Response:
        return web.Response(body=stored)

    app = web.Application()
    app.router.add_post("/team/ipfs/api/v0/add", add)
    app.router.add_post("/team/ipfs/api/v0/block/get", block)
    async with TestServer(app) as server, Kubo(str(server.make_url("/team/ipfs/"))) as client:
        assert await client.get(await client.put(stored)) == stored


async def test_a_kubo_that_refuses_an_upload_is_told_without_its_path() -> None:
    app = web.Application()  # which answers 404 for every path, without words of Kubo
    async with TestServer(app) as server, Kubo(str(server.make_url("/t0ken-of-mine"))) as client:
        with pytest.raises(Unavailable) as caught:
            await client.put(b"a file")
    assert caught.value.why == "HTTPError: 404 Client Error: Not Found"
    assert "t0ken-of-mine" not in caught.value.message


async def test_a_kubo_that_ends_during_an_upload_is_told_in_plain_words() -> None:
    async def add(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    app = web.Application()
    app.router.add_post("/api/v0/add", add)
    async with TestServer(app) as server, Kubo(str(server.make_url("")).rstrip("/")) as client:
        with pytest.raises(Unavailable) as caught:
            await client.put(b"a file")
    assert caught.value.why in (
        "connection reset by peer",
        "Remote end closed connection without response",
    )


async def test_a_kubo_whose_disk_is_full_is_not_told_to_be_started() -> None:
    full = "write /data/ipfs/blocks/.temp/temp-1: no space left on device"

    async def add(request: web.Request) -> web.Response:
        await request.read()
        return web.json_response({"Message": full, "Code": 0, "Type": "error"}, status=500)

    app = web.Application()
    app.router.add_post("/api/v0/add", add)
    async with TestServer(app) as server, Kubo(str(server.make_url("")).rstrip("/")) as client:
        with pytest.raises(Unavailable) as caught:
            await client.put(b"a file")
    assert caught.value.why == full
    assert caught.value.fix.startswith("see that it runs (`ipfs daemon`) and can write, or ")


@pytest.mark.parametrize(
    "answer",
    [
        {"Name": "x", "Hash": str(Cid.of(b"other bytes")), "Size": "1"},
        {"Name": "x", "Hash": "QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG", "Size": "1"},
        {"Name": "x", "Hash": "not a cid", "Size": "1"},
        {"Message": "disk full", "Code": 0, "Type": "error"},
    ],
    ids=["other bytes", "another codec", "no CID", "an error"],
)
async def test_a_daemon_that_stores_something_else_is_not_believed(answer: dict[str, str]) -> None:
    async def add(request: web.Request) -> web.Response:
        await request.read()
        return web.json_response(answer)

    app = web.Application()
    app.router.add_post("/api/v0/add", add)
    server = TestServer(app)
    await server.start_server()
    try:
        async with Kubo(str(server.make_url("")).rstrip("/")) as client:
            with pytest.raises(Unavailable) as caught:
                await client.put(b"a file")
        assert caught.value.why
    finally:
        await server.close()
