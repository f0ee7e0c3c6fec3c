"""A whole node against real parts: Anvil with the real contract, SQLite, a directory of blocks."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from eth_abi import encode
from eth_hash.auto import keccak
from msgspec.structs import replace

from capdex.encoding.abi import checksum_address
from capdex.errors import CapdexError, Code, Refused, Unavailable, UsageError
from capdex.ipld.cid import Cid
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.net.rpc.client import Rpc
from capdex.problems import Verdict
from capdex.uri import CapabilityURI
from capdex_indexer.chain.start_block import locate_registry
from capdex_indexer.node.node import Node, NodeOptions
from capdex_indexer.query.name_state import read_name_state
from capdex_indexer.sync.loop import SyncProgress

FAIL_AFTER_S = 60.0  # a hang's end; no test waits for it
DEV = 31337

pytestmark = pytest.mark.real

Until = Callable[[Callable[[], bool]], Awaitable[None]]


@pytest.fixture
def shared(tmp_path: Path) -> BlockDirectory:
    """Where the publisher's packages lie; the node has a directory of its own."""
    return BlockDirectory(tmp_path / "shared")


@pytest.fixture
def options(registry: Any, shared: BlockDirectory, tmp_path: Path) -> NodeOptions:
    return NodeOptions(
        rpc_urls=(registry.url,),
        chain_id=DEV,
        registry=checksum_address(registry.address),
        db=f"sqlite:///{tmp_path / 'index.db'}",
        blocks=tmp_path / "blocks",
        ipfs=(f"dir:{shared.path}",),
        serve=frozenset({Verdict.VERIFIED}),
        poll_interval_s=0.05,
    )


class Publisher:
    """Signs packages and publishes them through the contract: `await publish("note")`."""

    def __init__(self, registry: Any, shared: BlockDirectory, making: Any) -> None:
        self._registry, self._shared, self._making = registry, shared, making

    async def __call__(self, name: str, version: str = "1.0.0") -> Cid:
        return self._shared.write(await self.announce(name, version))

    async def announce(self, name: str, version: str = "1.0.0") -> bytes:
        """Publish a package whose bytes nobody has yet."""
        account = (await self._registry.call("eth_accounts"))[0]
        holder = bytes.fromhex(account[2:])
        data: bytes = self._making.package_bytes(name, version, publisher=holder)
        values = [name, version, Cid.of(data).text, Cid.of(data).digest]
        types = ["string", "string", "string", "bytes32"]
        body = keccak(f"publish({','.join(types)})".encode())[:4] + encode(types, values)
        call = {"from": account, "to": checksum_address(self._registry.address)}
        call |= {"data": "0x" + body.hex(), "gas": hex(5_000_000)}
        sent = await self._registry.call("eth_sendTransaction", call)
        while not (receipt := await self._registry.call("eth_getTransactionReceipt", sent)):
            pass
        assert receipt["status"] == "0x1"
        return data


@pytest.fixture
def publish(registry: Any, shared: BlockDirectory, making: Any) -> Publisher:
    return Publisher(registry, shared, making)


@asynccontextmanager
async def running(node: Node) -> AsyncIterator[Until]:
    """Run a node; gives `until(reached)`, which asks again until it is so or the node fails."""
    task = asyncio.create_task(node.run())

    async def until(reached: Callable[[], bool]) -> None:
        async with asyncio.timeout(FAIL_AFTER_S):
            while not await asyncio.to_thread(reached):
                if task.done():
                    task.result()
                await asyncio.sleep(0.01)  # the node needs the processor

    try:
        yield until
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def votes_of(node: Node) -> tuple[int, int]:
    with node.surface.index.read() as connection:
        state = read_name_state(connection, "note")
    return state.upvotes, state.downvotes


def verified(node: Node, count: int) -> Callable[[], bool]:
    return lambda: node.surface.index.status().by_verdict.get("verified", 0) == count


async def refusal(options: NodeOptions) -> CapdexError:
    """Why a node does not start, or ends."""
    with pytest.raises(CapdexError) as raised:
        async with Node.open(options) as node, asyncio.timeout(FAIL_AFTER_S):
            await node.run()
    return raised.value


async def test_a_publication_becomes_verified_and_its_block_is_kept(
    registry: Any, options: NodeOptions, publish: Publisher, shared: BlockDirectory
) -> None:
    async with Node.open(options) as node, running(node) as until:
        await until(lambda: node.surface.health.following)
        cid = await publish("note")
        await until(verified(node, 1))
        found = node.surface.index.resolve(CapabilityURI.parse("did:nuwa:cap:note"))
        assert (found.cid, found.verdict) == (cid.text, Verdict.VERIFIED)
        assert found.registry == options.registry
        assert node.surface.blocks.read(cid) == shared.read(cid)
        assert node.surface.blocks.path != shared.path
        assert node.surface.health.faults() == []
        assert node.surface.index.status().start_block == registry.start_block


async def test_votes_are_counted_beside_the_registry_and_taken_back_in_a_reorg(
    registry: Any, options: NodeOptions, publish: Publisher
) -> None:
    await publish("note")
    votes = await registry.deploy_votes()
    async with Node.open(replace(options, votes=votes)) as node, running(node) as until:

        def counted(up: int, down: int) -> Callable[[], bool]:
            return lambda: votes_of(node) == (up, down)

        await registry.vote(votes, "note", 1)
        await until(counted(1, 0))
        await registry.vote(votes, "note", -1)
        await until(counted(0, 1))
        await registry.call("anvil_reorg", 1, [])
        await until(counted(1, 0))
        assert node.surface.index.status().log_count == 1


async def test_votes_that_no_endpoint_knows_at_the_start_are_counted_once_they_are_there(
    registry: Any, options: NodeOptions, publish: Publisher
) -> None:
    await publish("note")
    before = await registry.call("evm_snapshot")
    votes = await registry.deploy_votes()
    await registry.call("evm_revert", before)
    async with Node.open(replace(options, votes=votes)) as node, running(node) as until:
        await until(lambda: node.surface.health.following)
        assert await registry.deploy_votes() == votes
        await registry.vote(votes, "note", 1)
        await until(lambda: votes_of(node) == (1, 0))


async def test_without_a_contract_of_votes_a_node_goes_on_without_votes(
    options: NodeOptions, publish: Publisher
) -> None:
    nowhere = "0x" + "77" * 20
    async with Node.open(replace(options, votes=nowhere)) as node, running(node) as until:
        await publish("note")
        await until(verified(node, 1))


async def test_a_package_that_comes_to_ipfs_later_is_pending_until_then(
    options: NodeOptions, publish: Publisher, shared: BlockDirectory
) -> None:
    late = CapabilityURI.parse("did:nuwa:cap:late")
    async with Node.open(options) as node, running(node) as until:
        data = await publish.announce("late")
        await publish("note")
        await until(verified(node, 1))  # the other one is not held up
        with pytest.raises(Unavailable) as pending:
            node.surface.index.resolve(late)
        assert pending.value.code == Code.PENDING
        shared.write(data)
        await until(verified(node, 2))
        assert node.surface.index.resolve(late).cid == Cid.of(data).text


async def test_opened_again_a_node_goes_on_where_it_was(
    options: NodeOptions, publish: Publisher
) -> None:
    first = await publish("note")
    async with Node.open(options) as node, running(node) as until:
        await until(verified(node, 1))
    before = (await _cursor(options)).block
    second = await publish("note", "1.1.0")
    third = await publish("other")
    async with Node.open(options) as node:
        assert node.store.ring()[-1] == before
        async with running(node) as until:
            await until(verified(node, 3))
        assert [x.semver for x in node.surface.index.releases("note")] == ["1.1.0", "1.0.0"]
        assert node.surface.index.status().log_count == 3
        assert all(node.surface.blocks.read(cid) for cid in (first, second, third))


async def test_an_index_made_anew_takes_its_packages_from_the_old_blocks(
    options: NodeOptions, publish: Publisher, tmp_path: Path
) -> None:
    await publish("note")
    async with Node.open(options) as node, running(node) as until:
        await until(verified(node, 1))
    fresh = replace(options, db=f"sqlite:///{tmp_path / 'fresh.db'}", ipfs=())
    async with Node.open(fresh) as node, running(node) as until:
        await until(verified(node, 1))


async def test_a_node_without_its_old_blocks_fetches_what_it_has_verified_before(
    options: NodeOptions, publish: Publisher, tmp_path: Path
) -> None:
    cid = await publish("note")
    async with Node.open(options) as node, running(node) as until:
        await until(verified(node, 1))
    moved = replace(options, blocks=tmp_path / "of another machine")
    async with Node.open(moved) as node, running(node) as until:
        await until(lambda: node.surface.blocks.holds(cid))


async def test_an_index_has_one_node(options: NodeOptions) -> None:
    async with Node.open(options):
        error = await refusal(options)
        assert isinstance(error, Unavailable)
        assert error.code == Code.DATABASE_LOCKED
    async with Node.open(options):
        pass  # it takes over when the first is gone


async def test_an_index_of_another_registry_is_left_alone(
    registry: Any, options: NodeOptions
) -> None:
    async with Node.open(options) as node, running(node) as until:
        await until(lambda: node.surface.health.following)
    await registry.deploy()
    other = replace(options, registry=checksum_address(registry.address))
    assert (await refusal(other)).code == Code.FOREIGN_DATABASE
    async with Node.open(options):
        pass


async def test_a_new_index_does_not_begin_at_an_endpoint_of_another_chain(
    options: NodeOptions, publish: Publisher
) -> None:
    error = await refusal(replace(options, chain_id=1))
    assert isinstance(error, Refused)
    assert error.code == Code.WRONG_CHAIN
    await publish("note")
    async with Node.open(options) as node, running(node) as until:
        await until(verified(node, 1))  # nothing of the other chain is in the database


async def test_an_address_without_code_is_refused(options: NodeOptions) -> None:
    error = await refusal(replace(options, registry="0x" + "00" * 19 + "99"))
    assert isinstance(error, UsageError)
    assert error.code == Code.NO_CONTRACT


async def test_a_second_endpoint_takes_over_from_a_dead_one(
    registry: Any, options: NodeOptions, publish: Publisher, hasty: None
) -> None:
    await publish("note")
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        both = replace(options, rpc_urls=(dead, registry.url))
        async with Node.open(both) as node, running(node) as until:
            await until(verified(node, 1))


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "0x",
        "note",
        "0x5FbDB2315678afecb367f032d93F642f64180a",
        "0x5FbDB2315678afecb367f032d93F642f64180aa3aa",
        "0x5FbDB2315678afecb367f032d93F642f64180aA3",
        "0x5fbdb2315678afecb367f032d93f642f64180aaG",
        "0x0x5fbdb2315678afecb367f032d93f642f64180aa3",
        "0x5fbdb2315678afecb367f032d93f642f 64180aa3",
        "0x5fbdb2315678afecb367f032d93f642f64180aa3\n",
    ],
)
async def test_what_is_no_address_is_refused_before_anything_is_asked(
    bad: str, tmp_path: Path
) -> None:
    error = await refusal(_nowhere(bad, tmp_path))
    assert isinstance(error, UsageError)


@pytest.mark.parametrize("spell", [str.lower, lambda x: "0x" + x[2:].upper(), str])
async def test_an_address_may_be_written_with_or_without_its_checksum(
    options: NodeOptions, spell: Callable[[str], str]
) -> None:
    async with Node.open(replace(options, registry=spell(options.registry))) as node:
        assert node.surface.index.status().registry == options.registry


async def test_a_node_that_is_stopped_before_its_first_block_starts_again(
    options: NodeOptions, publish: Publisher
) -> None:
    async with Node.open(options) as node, running(node):
        pass
    await publish("note")
    async with Node.open(options) as node, running(node) as until:
        await until(verified(node, 1))


async def test_a_first_block_that_is_looked_for_is_the_one_that_the_index_began_at(
    options: NodeOptions,
) -> None:
    begun = replace(options, start_block=0)
    async with Node.open(begun) as node, running(node) as until:
        await until(lambda: node.surface.health.following)
    async with Node.open(options) as node, running(node) as until:
        await until(lambda: node.surface.health.following)  # it found the block of the deployment
        assert node.surface.index.status().start_block == 0
        assert node.store.deployment.start_block == 0
    other = await refusal(replace(options, start_block=1))
    assert other.code is Code.FOREIGN_DATABASE
    assert other.message == "the database begins at another block"
    assert other.fix.startswith("leave out --start-block")


async def test_an_index_of_no_event_that_began_too_late_begins_where_its_operator_says(
    registry: Any, options: NodeOptions, publish: Publisher
) -> None:
    await publish("note")
    await registry.mine()
    await publish("note", "1.1.0")
    late = replace(options, start_block=registry.start_block + 2)
    async with Node.open(late) as node, running(node) as until:
        await until(lambda: node.surface.health.at.trouble is not None)
        trouble = node.surface.health.at.trouble
        assert trouble is not None
        assert "--start-block" in trouble.why
    async with (
        Node.open(replace(options, start_block=0)) as node,
        running(node) as until,
    ):
        await until(verified(node, 2))
        assert node.surface.index.status().start_block == 0
    assert (await refusal(late)).code is Code.FOREIGN_DATABASE  # now it has events


async def test_an_index_of_no_event_takes_an_earlier_first_block_that_is_found(
    registry: Any, options: NodeOptions, publish: Publisher
) -> None:
    await publish("note")
    await registry.mine()
    late = replace(options, start_block=registry.start_block + 2)
    async with Node.open(late) as node, running(node) as until:
        await until(lambda: node.surface.health.at != SyncProgress())
    async with Node.open(options) as node, running(node) as until:
        await until(verified(node, 1))
        assert node.surface.index.status().start_block == registry.start_block


async def test_a_chain_is_known_by_its_genesis_except_for_development(registry: Any) -> None:
    async with Rpc([registry.url]) as rpc:
        genesis = await rpc.block(0)
        assert genesis is not None
        dev = await locate_registry(rpc, chain_id=DEV, registry=registry.address)
    assert dev.genesis == bytes(32)
    await registry.call("anvil_setChainId", 7777)
    async with Rpc([registry.url]) as rpc:
        place = await locate_registry(rpc, chain_id=7777, registry=registry.address)
    assert place.genesis == genesis.hash != bytes(32)
    assert place.start_block == registry.start_block


async def test_the_first_block_may_be_named(registry: Any) -> None:
    async with Rpc([registry.url]) as rpc:
        place = await locate_registry(rpc, chain_id=DEV, registry=registry.address, start_block=0)
    assert place.start_block == 0


def _nowhere(address: str, folder: Path) -> NodeOptions:
    """Options whose every other part would fail later."""
    return NodeOptions(
        rpc_urls=("http://127.0.0.1:1",),
        chain_id=DEV,
        registry=address,
        db=f"sqlite:///{folder / 'index.db'}",
        blocks=folder / "blocks",
        ipfs=(),
        serve=frozenset({Verdict.VERIFIED}),
    )


async def _cursor(options: NodeOptions) -> Any:
    """Where an index stands, read after its node is gone."""
    async with Node.open(options) as node:
        return node.store.cursor()
