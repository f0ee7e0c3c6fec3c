"""Packages are fetched back through a gateway before anything is paid."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from aiohttp import web

from capdex.errors import Code, Unavailable
from capdex.ipld.cid import Cid
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.net.ipfs.gateway import Gateway
from capdex_publisher.progress import Step
from capdex_publisher.publish.upload import Uploader

DATA = b"a package"


class GatewayOf:
    """A gateway over a directory; it finds a block only when asked `late` times before."""

    def __init__(self, blocks, *, late=0, lies=False):
        self.blocks, self.late, self.lies = blocks, late, lies
        self.asked: Counter[str] = Counter()

    async def answer(self, request):
        cid = Cid.parse(request.match_info["cid"])
        self.asked[str(cid)] += 1
        found = self.blocks.read(cid)
        if found is None or self.asked[str(cid)] <= self.late:
            return web.Response(status=404)
        return web.Response(body=b"others" if self.lies else found)


@pytest.fixture
async def serve():
    """`await serve(gateway)` gives its URL."""
    runners = []

    async def start(gateway):
        app = web.Application()
        app.router.add_get("/ipfs/{cid}", gateway.answer)
        runner = web.AppRunner(app)
        runners.append(runner)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        return f"http://{host}:{port}"

    yield start
    for runner in runners:
        await runner.cleanup()


async def put(uploader):
    try:
        return await uploader.upload(DATA)
    finally:
        await uploader.close()


async def test_a_package_is_fetched_back_through_the_gateway(blocks, serve):
    url = await serve(GatewayOf(blocks))
    uploaded = await put(Uploader(blocks, gateway=Gateway(url)))
    assert uploaded.source == f"gateway:{url}"
    assert (uploaded.cid, uploaded.size_bytes) == (str(Cid.of(DATA)), len(DATA))


async def test_a_gateway_may_take_its_time_to_find_it(blocks, serve):
    gateway = GatewayOf(blocks, late=2)
    await put(Uploader(blocks, gateway=Gateway(await serve(gateway))))
    assert gateway.asked[str(Cid.of(DATA))] == 3


@pytest.mark.parametrize("fault", ["absent", "lies"])
async def test_a_gateway_that_does_not_give_it_stops_before_the_chain(
    blocks, serve, tmp_path, fault
):
    elsewhere = BlockDirectory(tmp_path / "elsewhere")
    gateway = GatewayOf(elsewhere) if fault == "absent" else GatewayOf(blocks, lies=True)
    uploader = Uploader(blocks, gateway=Gateway(await serve(gateway)), gateway_wait_s=0.3)
    with pytest.raises(Unavailable) as refusal:
        await put(uploader)
    assert refusal.value.code is Code.IPFS_UNAVAILABLE
    assert "gateway-url" in refusal.value.fix


async def test_a_node_that_shares_the_storage_gives_it_back(blocks, serve):
    url = await serve(GatewayOf(blocks))
    assert (await put(Uploader(blocks, node=Gateway(url)))).source == f"gateway:{url}"


async def test_a_node_that_keeps_only_what_was_announced_is_asked_once(blocks, serve, tmp_path):
    gateway = GatewayOf(BlockDirectory(tmp_path / "elsewhere"))
    uploaded = await put(Uploader(blocks, node=Gateway(await serve(gateway))))
    assert uploaded.source == blocks.label
    assert gateway.asked.total() == 1


async def test_a_storage_that_loses_it_stops_before_the_chain(tmp_path):
    class Leaky(BlockDirectory):
        async def get(self, cid):
            raise Unavailable("no such block", Code.IPFS_UNAVAILABLE)

    with pytest.raises(Unavailable) as refusal:
        await put(Uploader(Leaky(tmp_path / "blocks")))
    assert "nothing was sent" in refusal.value.fix


async def test_uploads_go_side_by_side_and_tell_each_as_it_ends(tmp_path):
    both = asyncio.Barrier(2)

    class Slow(BlockDirectory):
        async def put(self, data):
            await both.wait()  # would wait for ever if they went one after the other
            return await super().put(data)

    told: list[Step] = []
    uploader = Uploader(Slow(tmp_path / "blocks"))
    ends = await uploader.upload_all([b"one", b"two"], on_step=told.append)
    assert [end.cid for end in ends] == [str(Cid.of(b"one")), str(Cid.of(b"two"))]
    assert {one.cid for one in told} == {end.cid for end in ends}
