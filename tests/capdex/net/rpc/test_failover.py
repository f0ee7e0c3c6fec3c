"""Several endpoints of one chain: which is asked, which is left alone, which is believed."""

from __future__ import annotations

import asyncio

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from capdex.encoding.hexadecimal import unhex
from capdex.errors import Code
from capdex.net.rpc import client as rpc
from capdex.net.rpc import failover
from capdex.net.rpc import transport as jsonrpc
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.endpoint import Endpoint
from capdex.net.rpc.errors import RpcError, RpcFault, rpc_error
from capdex.net.rpc.pacing import FAILURES_TO_OPEN, Breaker, Circuit

HANGS = 0
GENESIS = {
    "number": "0x0",
    "hash": "0x" + "11" * 32,
    "parentHash": "0x" + "00" * 32,
    "timestamp": "0x0",
}


class Server:
    """An endpoint whose chain id is `chain`; it answers with `status` and `headers` while bad."""

    def __init__(self) -> None:
        self.chain, self.status = 1, 200
        self.each_second = False  # of the requests fails
        self.headers: dict[str, str] = {}
        self.seen: list[str] = []

    async def serve(self, request):
        body = orjson.loads(await request.read())
        self.seen.append(body["method"])
        if self.status == HANGS:
            await asyncio.sleep(60)
        status = 503 if self.each_second and len(self.seen) % 2 else self.status
        if status != 200:
            return web.Response(status=status, headers=self.headers)
        results = {"eth_chainId": hex(self.chain), "eth_getBlockByNumber": GENESIS}
        result = results.get(body["method"], "0x7")
        return web.json_response({"jsonrpc": "2.0", "id": body["id"], "result": result})


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr(rpc, "BACKOFF_BASE_S", 0.001)
    monkeypatch.setattr(rpc, "BACKOFF_CAP_S", 0.001)


@pytest.fixture
async def endpoints():
    """Start so many endpoints; gives (server, url) of each."""
    running = []

    async def start(count):
        found = []
        for _ in range(count):
            one = Server()
            app = web.Application()
            app.router.add_post("/{tail:.*}", one.serve)
            server = TestServer(app)
            await server.start_server()
            running.append(server)
            found.append((one, str(server.make_url("/key"))))
        return found

    yield start
    for server in running:
        await server.close()


async def head(chain):
    return await chain.call("eth_blockNumber")


async def test_an_endpoint_of_which_each_second_answer_fails_is_verified(endpoints):
    ((server, url),) = await endpoints(1)  # as a balancer does before one machine that is down
    server.each_second = True
    async with Rpc([url]) as chain:
        chain.expect(1, unhex(GENESIS["hash"]))
        assert await head(chain) == "0x7"
    assert server.seen == [
        *["eth_chainId"] * 2,
        *["eth_getBlockByNumber"] * 2,
        *["eth_blockNumber"] * 2,
    ]


async def test_an_endpoint_that_does_well_goes_on_being_asked(endpoints):
    (a, url), (b, other) = await endpoints(2)
    async with Rpc([url, other]) as chain:
        a.status = 503
        await head(chain)
        a.status = 200
        for _ in range(5):
            await head(chain)
    assert (len(a.seen), len(b.seen)) == (1, 6)


async def test_nobody_is_asked_while_the_only_endpoint_wants_patience(endpoints):
    ((server, url),) = await endpoints(1)
    server.status, server.headers = 429, {"Retry-After": "120"}
    async with Rpc([url]) as chain:
        for _ in range(10):
            with pytest.raises(RpcError) as caught:
                await head(chain)
            assert (caught.value.code, caught.value.fault) == (Code.RATE_LIMITED, RpcFault.RATE)
        (state,) = chain.endpoints_state()
    assert len(server.seen) == 1
    assert caught.value.retry_after_s is not None
    assert 0 < caught.value.retry_after_s <= 120
    assert 0 < state.cooldown_s <= 120


async def test_a_lone_endpoint_is_asked_again_when_its_patience_is_over(endpoints, monkeypatch):
    ((server, url),) = await endpoints(1)
    server.status, server.headers = 429, {"Retry-After": "1"}
    slept = []

    async def sleep(seconds, real=asyncio.sleep):
        slept.append(seconds)
        server.status = 200
        await real(seconds)

    monkeypatch.setattr(failover.asyncio, "sleep", sleep)
    async with Rpc([url]) as chain:
        assert await head(chain) == "0x7"
    assert sum(slept) >= 0.99
    assert len(server.seen) == 2


async def test_an_endpoint_that_is_down_is_tried_by_one_call_at_a_time(endpoints):
    ((server, url),) = await endpoints(1)
    server.status = 502
    async with Rpc([url]) as chain:
        with pytest.raises(RpcError):
            await head(chain)
        assert len(server.seen) > FAILURES_TO_OPEN
        assert chain.endpoints_state()[0].circuit is not Circuit.CLOSED
        server.status = 200
        before = len(server.seen)
        assert await asyncio.gather(*(head(chain) for _ in range(8))) == ["0x7"] * 8
        (state,) = chain.endpoints_state()
    assert len(server.seen) == before + 8
    assert (state.circuit, state.error) == (Circuit.CLOSED, None)


async def test_an_endpoint_of_another_chain_is_never_mixed_in(endpoints):
    (a, url), (b, other) = await endpoints(2)
    b.chain = 5
    async with Rpc([url, other]) as chain:
        chain.expect(1)
        assert await head(chain) == "0x7"
        a.status = 503
        with pytest.raises(RpcError):
            await head(chain)
        states = chain.endpoints_state()
    assert set(b.seen) == {"eth_chainId"}
    assert states[1].error.why == "it is of chain 5, not 1"


async def test_an_endpoint_that_was_down_must_show_its_chain_again(endpoints):
    ((server, url),) = await endpoints(1)
    async with Rpc([url]) as chain:
        chain.expect(1)
        await head(chain)
        await head(chain)
        assert server.seen == ["eth_chainId", "eth_blockNumber", "eth_blockNumber"]
        server.status = 502
        with pytest.raises(RpcError):
            await head(chain)
        server.status, server.chain, server.seen = 200, 2, []
        for _ in range(3):
            with pytest.raises(RpcError) as caught:
                await head(chain)
            assert caught.value.code == Code.WRONG_CHAIN
    assert server.seen == ["eth_chainId"]


async def test_an_endpoint_that_does_not_answer_in_time_is_asked_twice_and_no_more(
    endpoints, monkeypatch
):
    monkeypatch.setattr(jsonrpc, "READ_S", 0.5)
    monkeypatch.setattr(jsonrpc, "CONNECT_S", 0.5)
    ((server, url),) = await endpoints(1)
    server.status = HANGS
    async with Rpc([url]) as chain:
        with pytest.raises(RpcError) as caught:
            await head(chain)
    assert caught.value.fault is RpcFault.TIMEOUT
    assert len(server.seen) == 2


@pytest.mark.parametrize("count", [1, 2])
async def test_a_range_without_an_answer_in_time_is_asked_once_of_each_endpoint(
    endpoints, monkeypatch, count
):
    monkeypatch.setattr(jsonrpc, "READ_S", 0.5)
    monkeypatch.setattr(jsonrpc, "CONNECT_S", 0.5)
    started = await endpoints(count)
    for server, _ in started:
        server.status = HANGS
    async with Rpc([url for _, url in started]) as chain:
        with pytest.raises(RpcError) as caught:
            await chain.logs(bytes(20), 1, 100)
    assert caught.value.fault is RpcFault.TIMEOUT
    assert [len(server.seen) for server, _ in started] == [1] * count


def test_refusals_of_calls_that_were_under_way_together_lengthen_pauses_once():
    breaker = Breaker(0.25, 15.0, uniform=lambda low, high: high)
    endpoint = Endpoint("http://a", "a", breaker)
    for _ in range(8):
        endpoint.failed(rpc_error("a", RpcFault.RATE, "slow down"), 10.0, sent=9.0)
    assert endpoint.refusals == 1
    assert endpoint.wait_s(10.0) <= 0.5
    endpoint.failed(rpc_error("a", RpcFault.RATE, "slow down"), 12.0, sent=11.0)
    assert endpoint.refusals == 2


async def test_who_is_blamed_is_asked_only_when_the_others_cannot_be(endpoints):
    (a, url), (b, other) = await endpoints(2)
    async with Rpc([url, other]) as chain:
        await head(chain)
        error = chain.blame("it contradicted itself")
        assert isinstance(error, RpcError)
        for _ in range(3):
            await head(chain)
        assert (len(a.seen), len(b.seen)) == (1, 3)
        b.status, b.headers = 429, {"Retry-After": "100"}
        for _ in range(3):
            await head(chain)
    assert (len(a.seen), len(b.seen)) == (4, 4)


async def test_a_survey_asks_everybody_and_moves_nobody(endpoints):
    (a, url), (b, other), (c, third) = await endpoints(3)
    b.status = 401
    c.chain = 9
    async with Rpc([url, other, third]) as chain:
        said = await chain.survey("eth_chainId", (), lambda value: int(value, 16))
        assert chain.endpoint == said[0].label
    assert [one.answer for one in (said[0], said[2])] == [1, 9]
    assert isinstance(said[1].answer, RpcError)
    assert len({one.origin for one in said}) == 3
    assert len(a.seen) == len(b.seen) == len(c.seen) == 1


async def test_calls_are_counted_by_method_endpoint_and_outcome(endpoints):
    (a, url), (_, other) = await endpoints(2)
    a.status = 503
    async with Rpc([url, other]) as chain:
        await head(chain)
        await head(chain)
        first, second = (state.label for state in chain.endpoints_state())
        assert chain.counts == {
            ("eth_blockNumber", first, "transient"): 1,
            ("eth_blockNumber", second, "ok"): 2,
        }
    assert "key" not in first + second


def test_two_keys_of_one_vendor_are_told_apart_without_showing_them():
    async def states():
        async with Rpc(["https://rpc.example/v3/one", "https://rpc.example/v3/two"]) as chain:
            return chain.endpoints_state()

    labels = [state.label for state in asyncio.run(states())]
    assert labels == ["https://rpc.example/… (1)", "https://rpc.example/… (2)"]


async def test_a_cancelled_probe_leaves_the_way_free_for_the_next(endpoints):
    ((server, url),) = await endpoints(1)
    server.status = 502
    async with Rpc([url]) as chain:
        with pytest.raises(RpcError):
            await head(chain)
        server.status = 200
        probe = asyncio.create_task(head(chain))
        await asyncio.sleep(0)
        probe.cancel()
        await asyncio.gather(probe, return_exceptions=True)
        async with asyncio.timeout(20):
            assert await head(chain) == "0x7"
