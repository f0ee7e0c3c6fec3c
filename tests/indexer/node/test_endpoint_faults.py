"""A node over an index that it has, whatever its endpoint does: it answers, and tells why.

Each row of "Faults of an endpoint" in docs/operations.md names its test here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import structlog
from msgspec.structs import replace

from capdex.encoding.abi import checksum_address
from capdex.errors import CapdexError, Code
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.problems import Verdict
from capdex_cli.node.serve import serve
from capdex_cli.node.server import listen, url_of
from capdex_cli.node.workers import Serving
from capdex_indexer.chain import reorg
from capdex_indexer.node.node import Node
from capdex_indexer.options import NodeOptions
from capdex_service.limits.hosts import LOOPBACK
from tests.e2e.templates import keep_code

FAIL_AFTER_S = 20.0  # a hang's end; no test waits for it
MANY = 10_000  # answers: more than a test asks for

pytestmark = pytest.mark.usefixtures("hasty")
keep_code()


class Running:
    """A node that serves: `await node("/ready")` gives the status and the JSON."""

    def __init__(self, node: Node, url: str, http: aiohttp.ClientSession, loops: Any) -> None:
        self.node, self._url, self._http, self._loops = node, url, http, loops

    async def __call__(self, path: str) -> tuple[int, Any]:
        async with self._http.get(self._url + path) as answer:
            return answer.status, await answer.json(content_type=None)

    async def until(self, reached: Callable[[], bool]) -> None:
        async with asyncio.timeout(FAIL_AFTER_S):
            while not await asyncio.to_thread(reached):
                if self._loops.done():
                    self._loops.result()
                await asyncio.sleep(0.01)  # the node needs the processor

    def codes(self) -> list[str]:
        return [fault["code"] for fault in self.node.surface.health.faults()]


@asynccontextmanager
async def running(options: NodeOptions) -> AsyncIterator[Running]:
    async with Node.open(options) as node:
        with listen("127.0.0.1", 0) as listener:
            async with (
                serve(node, listener, Serving(LOOPBACK)) as loops,
                aiohttp.ClientSession() as http,
            ):
                yield Running(node, url_of(listener), http, loops)


@pytest.fixture
async def sim(simulate: Any, making: Any, tmp_path: Path) -> Any:
    """A chain with a genesis of its own, and one package that a directory has."""
    shared = BlockDirectory(tmp_path / "shared")

    def package(name: str) -> bytes:
        data: bytes = making.package_bytes(name, chain_id=1)
        shared.write(data)
        return data

    chain = await simulate(package=package)
    chain.publish()
    chain.mine(2)
    return chain


@pytest.fixture
def options(sim: Any, tmp_path: Path) -> NodeOptions:
    return NodeOptions(
        rpc_urls=(sim.url,),
        chain_id=1,
        registry=checksum_address(sim.registry),
        db=f"sqlite:///{tmp_path / 'index.db'}",
        blocks=tmp_path / "blocks",
        ipfs=(f"dir:{tmp_path / 'shared'}",),
        serve=frozenset({Verdict.VERIFIED}),
        poll_interval_s=0.05,
    )


@pytest.fixture
async def index(options: NodeOptions) -> None:
    """The index of that chain, complete."""
    async with running(options) as it:
        await it.until(lambda: not it.codes())
        await it.until(lambda: it.node.surface.index.status().by_verdict.get("verified") == 1)


async def answers(it: Running, code: str) -> None:
    """The node answers all that its index has, with a warning, and is not ready by `code`."""
    status, found = await it("/v1/resolve?uri=did:nuwa:cap:pkg-0")
    assert (status, found["acp_metadata"]["id"]) == (200, "did:nuwa:cap:pkg-0@1.0.0")
    assert code in found["as_of"]["warning"]
    status, found = await it("/v1/search?q=pkg-0")
    assert (status, "did:nuwa:cap:pkg-0" in str(found)) == (200, True)
    assert (await it("/c/pkg-0.json"))[0] == 200
    assert (await it("/status"))[1]["chain"]["block_number"] == 3
    assert (await it("/health"))[0] == 200
    status, found = await it("/ready")
    assert (status, [fault["code"] for fault in found["because"]]) == (503, [code])
    assert "asked again in" in found["because"][0]["message"]


REFUSALS = {
    "dead": (b"", 503, {}, "RPC_UNAVAILABLE"),
    "forbidden": (b"no", 403, {}, "RPC_UNAVAILABLE"),
    "payment": (b"daily quota is used up", 402, {}, "RPC_UNAVAILABLE"),
    "rate": (b"", 429, {"Retry-After": "300"}, "RATE_LIMITED"),
    "page": (b"<html>sign in</html>", 200, {}, "RPC_UNAVAILABLE"),
    "quota": (
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"daily limit"}}',
        200,
        {},
        "RATE_LIMITED",
    ),
}


@pytest.mark.parametrize("kind", REFUSALS)
async def test_a_node_with_an_index_answers_while_its_endpoint_refuses(
    sim: Any, options: NodeOptions, index: None, garbage: Any, kind: str
) -> None:
    body, status, headers, code = REFUSALS[kind]
    sim.respond_once(garbage(body, status, **headers), times=MANY)
    async with running(options) as it:
        await it.until(lambda: it.codes() == [code])
        await answers(it, code)


async def test_an_endpoint_of_another_chain_is_not_read_and_the_index_goes_on_answering(
    sim: Any, options: NodeOptions, index: None
) -> None:
    sim.chain_id, sim.calls = 5, []
    sim.publish()
    async with running(options) as it:
        await it.until(lambda: it.codes() == ["WRONG_CHAIN"])
        await answers(it, "WRONG_CHAIN")
        assert set(sim.calls) == {"eth_chainId"}
        sim.chain_id = 1


async def test_an_endpoint_of_another_genesis_is_not_read_and_the_index_goes_on_answering(
    sim: Any, options: NodeOptions, index: None, simulate: Any
) -> None:
    other = await simulate()
    other.reorg(1, events=0)  # another first block
    other.mine(20)
    async with running(replace(options, rpc_urls=(other.url,))) as it:
        await it.until(lambda: it.codes() == ["WRONG_CHAIN"])
        await answers(it, "WRONG_CHAIN")
    assert not {"eth_getLogs", "eth_call"} & set(other.calls)
    async with running(replace(options, rpc_urls=(other.url, sim.url))) as it:
        sim.mine()
        await it.until(lambda: it.node.surface.index.status().block_number == 4)
        assert "eth_getLogs" not in other.calls


async def test_an_endpoint_that_still_syncs_leaves_the_index_as_it_is(
    sim: Any, options: NodeOptions, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reorg, "LAG_PATIENCE_S", 0.1)
    sim.visible = 0  # it knows neither the contract nor the newest block
    sim.once("eth_getCode", lambda code: "0x", times=MANY)
    async with running(options) as it:
        await it.until(lambda: "STALLED" in it.codes())
        status, found = await it("/v1/resolve?uri=did:nuwa:cap:pkg-0")
        assert (status, found["acp_metadata"]["name"]) == (200, "Pkg-0")
        assert (await it("/ready"))[0] == 503
        sim.visible = None
        await it.until(lambda: not it.codes())


async def test_a_fault_whose_numbers_change_with_each_block_is_one_line_of_the_log(
    sim: Any, options: NodeOptions, index: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reorg, "LAG_PATIENCE_S", 0.1)
    with structlog.testing.capture_logs() as lines:
        async with running(options) as it:

            def shown(words: str) -> bool:
                trouble = it.node.surface.health.at.trouble
                return trouble is not None and words in trouble.line

            await it.until(lambda: not it.codes())
            for newest in (0, 1, 2):  # it catches up
                sim.visible = newest
                await it.until(lambda: shown(f"is at block {newest}"))  # noqa: B023
            sim.visible = None
            await it.until(lambda: not it.codes())
            sim.publish()
            sim.once("eth_getLogs", lambda logs: [], times=MANY)
            for newest in (4, 5, 6):
                await it.until(lambda: shown(f"up to block {newest}"))  # noqa: B023
                sim.mine()
    waiting = [line["why"] for line in lines if line["event"] == "waiting"]
    assert len(waiting) == 2, waiting


async def test_an_endpoint_that_keeps_no_first_block_is_believed(
    sim: Any, options: NodeOptions, index: None
) -> None:
    sim.publish()
    sim.once("eth_getBlockByNumber", lambda block: None)
    async with running(options) as it:
        await it.until(lambda: it.node.surface.index.status().log_count == 2)
    sim.publish()
    sim.refuse_once("eth_getBlockByNumber", 4444, "pruned history unavailable")
    async with running(options) as it:
        await it.until(lambda: it.node.surface.index.status().log_count == 3)


async def test_an_endpoint_that_comes_back_is_followed(
    sim: Any, options: NodeOptions, index: None, garbage: Any
) -> None:
    sim.respond_once(garbage(b"", 503), times=20)
    sim.publish()
    async with running(options) as it:
        await it.until(lambda: it.codes() == ["RPC_UNAVAILABLE"])
        await it.until(lambda: it.node.surface.index.status().log_count == 2)
        await it.until(lambda: not it.codes())


async def test_a_new_index_waits_for_an_endpoint_and_health_says_so(
    sim: Any, options: NodeOptions, garbage: Any
) -> None:
    sim.respond_once(garbage(b"", 429, **{"Retry-After": "300"}), times=MANY)
    async with running(options) as it:
        await it.until(lambda: it.codes() == ["RATE_LIMITED"])
        status, found = await it("/health")
        assert (status, [x["code"] for x in found["because"]]) == (200, ["RATE_LIMITED"])
        assert (await it("/ready"))[0] == 503
        assert (await it("/status"))[1]["chain"]["block_number"] is None


async def test_a_new_index_begins_once_its_endpoint_answers(
    sim: Any, options: NodeOptions, garbage: Any
) -> None:
    sim.respond_once(garbage(b"", 503), times=20)
    async with running(replace(options, start_block=1)) as it:
        await it.until(lambda: it.codes() == ["RPC_UNAVAILABLE"])
        await it.until(lambda: not it.codes())
        status = it.node.surface.index.status()
        assert (status.block_number, status.start_block) == (3, 1)
    async with running(options) as it:
        assert it.node.store.deployment.genesis == sim.blocks[0].hash


async def test_a_database_of_another_chain_is_foreign_although_no_endpoint_answers(
    sim: Any, options: NodeOptions, index: None, garbage: Any
) -> None:
    sim.respond_once(garbage(b"", 503), times=MANY)
    with pytest.raises(CapdexError) as raised:
        async with Node.open(replace(options, chain_id=5)):
            pass
    assert raised.value.code is Code.FOREIGN_DATABASE


async def test_a_first_start_on_an_empty_database_logs_no_warning(options: NodeOptions) -> None:
    with structlog.testing.capture_logs() as lines:
        async with running(options) as it:
            await it.until(lambda: not it.codes())
    assert [line for line in lines if line["log_level"] not in ("info", "debug")] == []
