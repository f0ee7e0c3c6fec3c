"""The whole state of a registry can be rebuilt from its logs alone (P13).

A random history of OPERATIONS transactions, valid and not, is sent to a real chain; then every view
of both contracts is compared with what folding the logs gives. Seeds count up from SEED for SEEDS
histories (`make soak KIND=rebuild`).
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest
from eth_abi.abi import decode as decode_abi
from eth_abi.abi import encode
from eth_hash.auto import keccak

from capdex.encoding.abi import checksum_address
from capdex.encoding.hexadecimal import unhex
from capdex.errors import InvalidInput
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.types import quantity
from capdex.registry.events import TOPICS, Voted, decode
from capdex.registry.logs import BlockRef, LogHead, RawLog
from capdex.registry.state import ZERO_ADDRESS, Ledger, NameState
from capdex.uri import PREFIX, check_name, is_reserved, name_id, skeleton
from capdex_indexer.projection.block_range import BlockRange, LogRows
from capdex_indexer.query.index import Index
from capdex_indexer.query.name_state import read_name_state
from capdex_indexer.store import Deployment, Store
from capdex_indexer.sync.log_completeness import check_logs

OPERATIONS = int(os.environ.get("OPERATIONS", "5000"))
SEED, SEEDS = int(os.environ.get("SEED", "1")), int(os.environ.get("SEEDS", "1"))
ABI = Path(__file__).resolve().parents[2] / "capdex" / "abi"
CHAIN_ID = 31337
RELEASE = "(string,string,string,bytes32,bool,bool)"
BLOCK = 60  # transactions at most

View = tuple[bytes, str, Sequence[str], Sequence[Any], str]  # address, name, types, values, result


def _history() -> ModuleType:
    """The module beside this one."""
    full = "e2e_history"
    if full not in sys.modules:
        spec = importlib.util.spec_from_file_location(full, Path(__file__).with_name("history.py"))
        assert spec is not None
        assert spec.loader is not None
        sys.modules[full] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[full])
    return sys.modules[full]


@dataclass
class Contracts:
    """A registry and its votes on an Anvil where every account may send."""

    rpc: Rpc
    registry: bytes
    votes: bytes
    start_block: int

    @classmethod
    async def deploy(cls, rpc: Rpc, ages: tuple[int, int], accounts: Iterable[str]) -> Contracts:
        await rpc.call("anvil_autoImpersonateAccount", [True])
        await rpc.call("evm_setBlockGasLimit", [hex(10**9)])
        accounts = list(accounts)
        await rpc.batch([("anvil_setBalance", [x, hex(10**24)]) for x in accounts])

        async def create(name: str, types: list[str], values: list[Any]) -> tuple[bytes, int]:
            bytecode = json.loads((ABI / f"{name}.json").read_text())["bytecode"]
            data = bytecode + encode(types, values).hex()
            transaction = {"from": accounts[0], "data": data}
            sent: str = await rpc.call("eth_sendTransaction", [transaction])
            receipt: dict[str, Any] | None = None
            while receipt is None:
                receipt = await rpc.call("eth_getTransactionReceipt", [sent])
            assert receipt["status"] == "0x1"
            return unhex(receipt["contractAddress"]), quantity(receipt["blockNumber"])

        registry, block = await create("CapabilityRegistry", ["uint256", "uint256"], list(ages))
        values = [checksum_address(registry), ZERO_ADDRESS, 0]
        votes, _ = await create("CapabilityVotes", ["address", "address", "uint256"], values)
        return cls(rpc, registry, votes, block)

    async def mine(self, operations: Sequence[tuple[str, bool, bytes]], timestamp: int) -> int:
        """Mine these into one block; its number."""
        transactions = [
            {
                "from": sender,
                "to": "0x" + (self.votes if vote else self.registry).hex(),
                "data": "0x" + data.hex(),
                "gas": hex(2_000_000),
            }
            for sender, vote, data in operations
        ]
        await self.rpc.batch([("eth_sendTransaction", [x]) for x in transactions])
        await self.rpc.call("evm_setNextBlockTimestamp", [timestamp])
        await self.rpc.call("evm_mine")
        return quantity(await self.rpc.call("eth_blockNumber"))

    async def read(self, views: Sequence[View]) -> list[tuple[Any, ...]]:
        calls = []
        for address, name, types, values, _ in views:
            data = keccak(f"{name}({','.join(types)})".encode())[:4] + encode(types, values)
            calls.append(
                ("eth_call", [{"to": "0x" + address.hex(), "data": "0x" + data.hex()}, "latest"])
            )
        results = await self.rpc.batch(calls, unhex)
        return [
            decode_abi(_types(view[4]), result) for view, result in zip(views, results, strict=True)
        ]


def _types(result: str) -> list[str]:
    return [result] if result.startswith("(") else result.split(",")


async def live(contracts: Contracts, history: Any, operations: int) -> None:
    """Send the operations, blocks of them; the history learns of each block."""
    head = await contracts.rpc.block("latest")
    assert head is not None
    history.now = head.timestamp
    await contracts.rpc.call("evm_setAutomine", [False])
    while history.made < operations:
        history.now += history.random.randint(1, 90)
        some = min(history.random.randint(1, BLOCK), operations - history.made)
        block = await contracts.mine([history.operation() for _ in range(some)], history.now)
        for log in await contracts.rpc.logs(contracts.registry, block, block):
            history.ledger.apply(decode(log, CHAIN_ID))


def rebuild(logs: Sequence[RawLog]) -> tuple[Ledger, LogHead]:
    ledger, head = Ledger(), LogHead()
    for log in logs:
        ledger.apply(decode(log, CHAIN_ID))
        head = head.fold(log)
    return ledger, head


@dataclass(slots=True)
class Votes:
    """What the contract keeps after `count` events: votes by name and account, and weights."""

    count: int = 0
    votes: dict[str, dict[str, int]] = field(default_factory=dict)
    weights: dict[str, int] = field(default_factory=dict)

    def apply(self, event: Voted) -> None:
        """Fold in the next event; raises InvalidInput, changing nothing, if it cannot be that.

        Whether the name is claimed is not looked at: that stands in the log of another contract.
        """
        why = self._objection(event)
        if why:
            raise InvalidInput(f"vote {event.sequence} cannot have happened", why=why)
        self.votes.setdefault(event.name, {})[event.by] = event.vote
        self.weights[event.by] = event.weight
        self.count += 1

    def vote_of(self, name: str, account: str) -> int:
        """1, -1, or 0 for none."""
        return self.votes.get(name, {}).get(account, 0)

    def tally(self, name: str) -> tuple[int, int]:
        """The sums of the weights for and against."""
        cast = self.votes.get(name, {}).items()
        up, down = (sum(self.weights[who] for who, x in cast if x == vote) for vote in (1, -1))
        return up, down

    def _objection(self, event: Voted) -> str:
        if event.sequence != self.count + 1:
            return f"vote {self.count + 1} is next"
        if name_id(check_name(event.name)) != event.name_id:
            return "its name id is another name's"
        if event.vote not in (-1, 0, 1):
            return f"a vote is 1, -1 or 0, not {event.vote}"
        if event.vote == self.vote_of(event.name, event.by):
            return "nothing would change"
        if event.weight == 0 or self.weights.get(event.by, event.weight) != event.weight:
            return "what an account's vote weighs is not zero, and never changes"
        return ""


def count_votes(logs: Sequence[RawLog]) -> tuple[Votes, LogHead]:
    votes, head = Votes(), LogHead()
    for log in logs:
        event = decode(log, CHAIN_ID)
        assert isinstance(event, Voted)
        votes.apply(event)
        head = head.fold(log)
    return votes, head


def is_name(name: str) -> bool:
    try:
        return bool(check_name(name))
    except InvalidInput:
        return False


def expected(
    contracts: Contracts, history: Any, ledger: Ledger, head: LogHead, votes: Votes, polled: LogHead
) -> Iterable[tuple[View, tuple[Any, ...]]]:
    """Every view of both contracts, and what the logs say that it returns."""
    at = contracts.registry
    string, account = ["string"], ["string", "address"]
    yield (at, "log", [], [], "bytes24,uint64"), (head.head, head.count)
    yield (contracts.votes, "log", [], [], "bytes24,uint64"), (polled.head, polled.count)
    for address in history.accounts:
        yield (at, "nonces", ["address"], [address], "uint256"), (ledger.nonces.get(address, 0),)
    for commitment in sorted(history.commitments | {bytes(32)}):
        made_at = ledger.commitments.get(commitment, 0)
        yield (at, "committedAt", ["bytes32"], [commitment], "uint256"), (made_at,)
    for name in sorted(history.names):
        state = ledger.names.get(name)
        owned = state or NameState(None)
        count = len(owned.releases)
        record = (owned.owner or ZERO_ADDRESS, owned.pending_owner or ZERO_ADDRESS)
        yield (
            (at, "nameRecord", string, [name], "address,address,uint32,uint32,bool"),
            (*map(str.lower, record), count, owned.epoch, owned.deprecated),
        )
        yield (at, "ownerOf", string, [name], "address"), (record[0].lower(),)
        yield (at, "releaseCount", string, [name], "uint256"), (count,)
        if is_name(name):
            yield (at, "isReserved", string, [name], "bool"), (is_reserved(name),)
        same = [x for x in ledger.names if skeleton(x) == skeleton(name)]
        yield (
            (at, "nameOfSkeleton", string, [skeleton(name)], "string"),
            (same[0] if same else "",),
        )
        for address in history.accounts:
            maintains = address in owned.maintainers
            yield (at, "isMaintainer", account, [name, address], "bool"), (maintains,)
            vote = votes.vote_of(name, address)
            yield (contracts.votes, "voteOf", account, [name, address], "int8"), (vote,)
        yield (contracts.votes, "tally", string, [name], "uint256,uint256"), votes.tally(name)
        releases = tuple(
            (f"{PREFIX}{name}@{x.semver}", x.semver, x.cid, x.sha256, x.yanked, x.deprecated)
            for x in owned.releases
        )
        whole = [name, 0, count + 1]
        paged = ["string", "uint256", "uint256"]
        yield (at, "releases", paged, whole, RELEASE + "[]"), (releases,)
        for index, release in enumerate(releases):
            which = [name, release[1]]
            yield (at, "release", ["string", "string"], which, RELEASE), (release,)
            yield (at, "indexOf", ["string", "string"], which, "uint256"), (index,)


def in_one_step(logs: list[RawLog], head: LogHead) -> BlockRange:
    places = {log.position.block_number: log.position.block_hash for log in logs}
    blocks = tuple(BlockRef(n, hash_, bytes(32), 0) for n, hash_ in places.items())
    upto = blocks[-1]
    return BlockRange(
        LogRows.of(logs), dict.fromkeys(places, 0), blocks, upto, upto.number, upto.number, head
    )


def index_says_the_same(
    url: str, contracts: Contracts, logs: list[RawLog], head: LogHead, cast: list[RawLog]
) -> int:
    """How many releases a node that reads these logs tells with the flags the ledger has.

    Of every name it says who owns and maintains it and how it was voted on, too.
    """

    def deployment(address: bytes) -> Deployment:
        return Deployment(CHAIN_ID, checksum_address(address), contracts.start_block, bytes(32))

    store = Store.open(url, deployment(contracts.registry))
    index = Index(url)
    try:
        step = in_one_step(logs, head)
        store.append(step, check_logs(step, LogHead()))
        votes, polled = count_votes(cast)
        step = in_one_step(cast, polled)
        ballots = store.votes_store(deployment(contracts.votes))
        ballots.append(step, check_logs(step, LogHead()))
        assert index.status().undecodable == 0
        ledger, told = rebuild(logs)[0], 0
        for name, state in ledger.names.items():
            with index.read() as connection:
                standing = read_name_state(connection, name)
            assert (standing.owner, standing.pending_owner) == (state.owner, state.pending_owner)
            assert standing.renounced == state.renounced
            assert standing.maintainers == state.maintainers
            assert (standing.upvotes, standing.downvotes) == votes.tally(name)
            indexed = {x.semver: x for x in index.releases(name)}
            assert len(indexed) == len(state.releases)
            for release in state.releases:
                row = indexed[release.semver]
                assert (row.cid, row.sha256) == (release.cid, release.sha256.hex())
                assert (row.publisher, row.sequence) == (release.publisher, release.sequence)
                assert (row.yanked, row.yank_reason) == (release.yanked, release.yank_reason)
                assert row.deprecated == release.deprecated
                assert row.deprecation_message == release.message
                assert row.name_deprecated == state.deprecated
                assert (row.name_message, row.replaced_by) == (state.message, state.replaced_by)
                told += 1
        return told
    finally:
        index.close()
        store.close()


@pytest.mark.parametrize("ages", [(0, 0), (60, 1200)], ids=["without-commitments", "committed"])
@pytest.mark.parametrize("seed", range(SEED, SEED + SEEDS))
async def test_the_state_of_a_registry_is_what_its_logs_say(
    anvil: Any, tmp_path: Path, seed: int, ages: tuple[int, int]
) -> None:
    async with Rpc([anvil.url]) as rpc:
        history = _history().History(Random(f"{seed} {ages}"), CHAIN_ID, "")  # noqa: S311
        contracts = await Contracts.deploy(rpc, ages, history.accounts)
        history.registry = checksum_address(contracts.registry)
        await live(contracts, history, OPERATIONS)
        newest = quantity(await rpc.call("eth_blockNumber"))
        logs = await rpc.logs(contracts.registry, 0, newest)
        ledger, head = rebuild(logs)
        cast = await rpc.logs(contracts.votes, 0, newest)
        assert logs, f"{OPERATIONS} transactions are too few for an event of each kind: take 1000"
        assert cast, f"{OPERATIONS} transactions are too few for an event of each kind: take 1000"
        votes, polled = count_votes(cast)

        pairs = list(expected(contracts, history, ledger, head, votes, polled))
        views = [view for view, _ in pairs]
        for (view, value), result in zip(pairs, await contracts.read(views), strict=True):
            assert result == value, view[1:4]

    told = index_says_the_same(f"sqlite:///{tmp_path / 'index.db'}", contracts, logs, head, cast)
    kinds = Counter(log.topics[0] for log in [*logs, *cast])
    print(  # noqa: T201 - what a soak is run for
        f"seed {seed}, ages {ages}: {history.made} transactions, {len(logs)} + {len(cast)} events "
        f"of {len(kinds)} kinds, {len(ledger.names)} names, {told} releases, "
        f"{len(pairs)} views compared"
    )
    never = {TOPICS["Committed"]} if ages == (0, 0) else set()
    assert set(kinds) == set(TOPICS.values()) - never, f"{OPERATIONS} transactions are too few"
    assert len(logs) > history.made // 4
