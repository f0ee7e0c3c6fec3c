"""Snapshots: what comes out is what went in, and nothing that lies ever becomes an index."""

from __future__ import annotations

import asyncio
import os
import random
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp.test_utils import TestServer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capdex.encoding.multiformats import write_varint
from capdex.errors import CapdexError, Code, InvalidInput, Unavailable, UsageError
from capdex.errors import VerificationFailure as Untrue
from capdex.ipld.car import write_block, write_header
from capdex.ipld.cid import Cid
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.net.rpc.client import Rpc
from capdex.proof.index_digest import Counts, event_leaf
from capdex.registry.logs import LogPosition, RawLog
from capdex_indexer.db.engine import reading
from capdex_indexer.query.digest import read_digest
from capdex_indexer.query.index import Index
from capdex_indexer.snapshot import archive as records
from capdex_indexer.snapshot import export
from capdex_indexer.snapshot.restore import restore, restore_events
from capdex_indexer.snapshot.verify import (
    ExpectedIndex,
    TrustAnchor,
    VerifiedSnapshot,
    verify_snapshot,
)
from capdex_indexer.store import Operator, Store


@pytest.fixture(scope="session")
def snapshots() -> Any:
    """Builders of snapshots, honest and not (snapshots.py)."""
    import importlib.util
    import sys

    path = Path(__file__).parents[1] / "snapshots.py"
    spec = importlib.util.spec_from_file_location("indexer_tests_snapshots", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["indexer_tests_snapshots"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def history(making: Any) -> Any:
    """A chain with a bit of everything."""
    chain = making.Chain()
    chain.mine(chain.release("weather"), making.of_name("Claimed", "empty"))
    chain.mine(chain.release("weather", "1.1.0"), chain.release("loose", bound=False))
    chain.mine()
    chain.mine(
        making.yanked("weather", "1.1.0"),
        making.deprecated("weather"),
        making.name_deprecated("loose", replaced_by="weather"),
        making.published("nobody-has-it", cid="no CID"),
        (b"\x99" * 32, b"\x01" * 32, b"\x01" * 20, (("uint64",), ())),
    )
    chain.mine(making.published("weather"), chain.release("other", tools=[making.tool("do")]))
    return chain


@pytest.fixture
def original(tmp_path: Path, snapshots: Any, making: Any) -> Any:
    return snapshots.build(tmp_path, history(making))


@pytest.fixture
async def endpoint(original: Any, snapshots: Any) -> AsyncIterator[Any]:
    """What an endpoint says of the original's chain; `rpc` asks it."""
    found = snapshots.Endpoint(original)
    async with TestServer(found.app()) as server, Rpc([str(server.make_url("/"))]) as rpc:
        found.rpc = rpc
        yield found


async def checked(path: Path, making: Any, trust: TrustAnchor) -> VerifiedSnapshot:
    return await verify_snapshot(path, ExpectedIndex(making.CHAIN_ID, making.REGISTRY), trust)


async def take(
    path: Path, making: Any, trust: TrustAnchor, url: str, blocks: Path
) -> tuple[VerifiedSnapshot, int]:
    """Check and restore, as the command does."""
    found = await checked(path, making, trust)
    return found, await restore(path, found, url, BlockDirectory(blocks))


def read_back(url: str, blocks: BlockDirectory, snapshots: Any, making: Any, chain: Any) -> Any:
    """What an index holds after a node has judged its packages out of `blocks` alone."""
    store = Store.open(url, snapshots.DEPLOYMENT)
    try:
        for job in store.due(1e12, 1000):
            if blocks.read(Cid.raw(job.announcement.sha256)) is not None:
                store.record_many([(job.release_id, making.judge(chain, job))])
        waiting = len(store.due(1e12, 1000))
        snapshots.judge(store, chain, blocks)
    finally:
        store.close()
    return snapshots.soak.contents(url), waiting


# what comes out -----------------------------------------------------------------------------


async def test_an_imported_index_is_the_exported_one(
    original: Any, snapshots: Any, making: Any, database_url: str, tmp_path: Path
) -> None:
    path = original.export(tmp_path / "index.car")
    trust = TrustAnchor(block_hash=original.world.hash)
    found, kept = await take(path, making, trust, database_url, tmp_path / "new")
    assert (kept, found.manifest.packages, found.placed) == (3, 3, False)
    assert snapshots.digest_of(database_url).index == original.digest().index
    blocks = BlockDirectory(tmp_path / "new")
    ours, waiting = read_back(database_url, blocks, snapshots, making, original.chain)
    assert waiting == 1  # what did not verify was not kept, and has to be fetched again
    assert snapshots.soak.differences(ours, snapshots.soak.contents(original.url)) == []
    assert snapshots.digest_of(database_url) == original.digest()


async def test_what_no_node_has_judged_since_its_import_is_exported(
    original: Any, making: Any, tmp_path: Path
) -> None:
    path, url = original.export(tmp_path / "index.car"), f"sqlite:///{tmp_path / 'new.db'}"
    trust, blocks = TrustAnchor(block_hash=original.world.hash), BlockDirectory(tmp_path / "new")
    _, kept = await take(path, making, trust, url, blocks.path)
    block, missing = export.plan_export(url).block_number, list[int]()
    again = tmp_path / "again.car"
    written = export.export_snapshot(
        url, blocks, again, block, proofs={}, on_missing=missing.append
    )
    assert (written.packages, missing) == (kept, [1])  # one did not verify


def test_a_package_that_is_only_signed_is_not_missed(
    snapshots: Any, making: Any, tmp_path: Path
) -> None:
    chain, missing = making.Chain(), list[int]()
    chain.publish("note")
    chain.publish("memo", bound=False)  # its node keeps what it serves
    made = snapshots.build(tmp_path, chain)
    block = export.plan_export(made.url).block_number
    written = export.export_snapshot(
        made.url, made.blocks, tmp_path / "x.car", block, proofs={}, on_missing=missing.append
    )
    assert (written.packages, missing) == (1, [])


async def test_verdicts_are_not_imported(original: Any, making: Any, tmp_path: Path) -> None:
    path, url = original.export(tmp_path / "index.car"), f"sqlite:///{tmp_path / 'new.db'}"
    await take(path, making, TrustAnchor(block_hash=original.world.hash), url, tmp_path / "new")
    index = Index(url)
    state = index.status()
    index.close()
    assert state.by_availability == {"pending": 4}
    assert set(state.by_verdict) == {"mismatch"}  # what the events alone refuse
    assert state.content_digest is None
    assert state.listed == 0


@pytest.mark.parametrize("seed", range(6))
async def test_whatever_happened_the_import_has_the_same_digest_and_rows(
    seed: int, snapshots: Any, making: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "CHUNK_BYTES", 2_000)
    dice, chain = random.Random(seed), making.Chain()  # noqa: S311 - the same history in each run
    kinds: list[Callable[[str, str], Any]] = [
        lambda name, version: making.published(name, version),
        lambda name, version: making.yanked(name, version),
        lambda name, version: making.unyanked(name, version),
        lambda name, version: making.deprecated(name, version, "old\0\ud800"[:4]),
        lambda name, _: making.of_name("MaintainerAdded", name, address="0x" + "44" * 20),
        lambda *_: making.committed(dice.randbytes(32)),
        lambda *_: (dice.randbytes(32), dice.randbytes(32), b"\x01" * 20, dice.randbytes(50)),
    ]
    for _ in range(dice.randint(0, 30)):
        made = [
            dice.choice(kinds)(f"cap-{dice.randint(0, 3)}", f"1.{dice.randint(0, 3)}.0")
            for _ in range(dice.randint(0, 4))
        ]
        chain.mine(*made)
    original = snapshots.build(tmp_path, chain)
    path = original.export(tmp_path / "index.car")
    url = f"sqlite:///{tmp_path / 'new.db'}"
    await take(path, making, TrustAnchor(block_hash=original.world.hash), url, tmp_path / "new")
    ours = snapshots.soak.contents(url)
    assert snapshots.soak.differences(ours, snapshots.soak.contents(original.url)) == []
    assert snapshots.digest_of(url) == original.digest()


async def test_an_older_block_gives_the_index_as_it_was_there(
    original: Any, making: Any, tmp_path: Path, snapshots: Any
) -> None:
    path = original.export(tmp_path / "older.car", 2)
    parts = snapshots.Parts.read(path)
    with reading(original.url) as connection:
        digest = read_digest(connection, 2)
    assert parts.manifest["registry"]["index_digest"] == f"0x{digest.index.hex()}"
    assert parts.manifest["block"]["hash"] == f"0x{original.chain.blocks[2].ref.hash.hex()}"
    assert (parts.manifest["registry"]["log_count"], parts.manifest["packages"]) == (4, 2)
    with pytest.raises(InvalidInput, match="holds no proof"):
        await checked(path, making, TrustAnchor(block_hash=original.chain.blocks[2].ref.hash))


def test_one_index_is_always_one_file(original: Any, tmp_path: Path) -> None:
    one, other = (original.export(tmp_path / name).read_bytes() for name in ("one", "other"))
    assert one == other


@pytest.mark.parametrize("out", ["", ".", "..", "/", "pipe", "link-to-pipe"])
def test_what_is_no_file_is_never_replaced_by_a_snapshot(
    original: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    pipe = tmp_path / "pipe"  # as a device is: whoever is root could lose /dev/null
    os.mkfifo(pipe)
    (tmp_path / "link-to-pipe").symlink_to(pipe)
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(UsageError) as refused:
        original.export(Path(out))
    assert refused.value.code is Code.UNREADABLE
    assert pipe.is_fifo()
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("out", ["file/below", "n" * 250, "n" * 300])
def test_what_cannot_be_a_file_is_refused_in_words(original: Any, tmp_path: Path, out: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError) as refused:
        original.export(tmp_path / out)
    assert refused.value.code is Code.UNREADABLE


def test_a_link_to_a_snapshot_leads_to_the_new_one(original: Any, tmp_path: Path) -> None:
    old, link = tmp_path / "old.car", tmp_path / "latest.car"
    old.write_bytes(b"an older one")
    link.symlink_to(old)
    assert original.export(link).read_bytes() == original.export(tmp_path / "new").read_bytes()
    assert (link.is_symlink(), old.read_bytes()) == (True, link.read_bytes())


def test_what_the_operator_denies_is_left_out_and_the_digest_stays(
    original: Any, tmp_path: Path, snapshots: Any
) -> None:
    whole = snapshots.Parts.read(original.export(tmp_path / "whole.car"))
    with Operator(original.url) as operator:
        operator.deny("other")
        operator.deny(Cid.of(whole.packages[0]).text)
    less = snapshots.Parts.read(original.export(tmp_path / "less.car"))
    assert len(less.packages) == len(whole.packages) - 2
    assert whole.packages[0] not in less.packages
    assert less.manifest["registry"] == whole.manifest["registry"]


async def test_votes_come_along_where_their_log_is_read_that_far(
    original: Any, making: Any, tmp_path: Path, snapshots: Any
) -> None:
    contract = replace(snapshots.DEPLOYMENT, registry="0x" + "33" * 20)
    ballots = making.Chain()
    body = (("uint64", "string", "int8", "uint256"), ("weather", -1, 7))
    ballots.mine((making.events.TOPICS["Voted"], making.keccak(b"weather"), b"\x44" * 20, body))
    store = Store.open(original.url, snapshots.DEPLOYMENT)
    log = store.votes_store(contract)
    making.append(log, ballots)
    store.close()
    early = snapshots.Parts.read(original.export(tmp_path / "early.car"))
    assert early.manifest["votes"] is None
    ballots.blocks[1:] = [
        *ballots.blocks[1:],
        *(making.Block(x.ref) for x in original.chain.blocks[2:]),
    ]
    store = Store.open(original.url, snapshots.DEPLOYMENT)
    log = store.votes_store(contract)
    making.append(log, ballots)
    store.close()
    path, url = original.export(tmp_path / "index.car"), f"sqlite:///{tmp_path / 'new.db'}"
    assert snapshots.Parts.read(path).manifest["votes"]["log_count"] == 1
    trust = TrustAnchor(block_hash=original.world.hash)
    # Another contract than ours is left out, whatever it is.
    taken, _ = await take(path, making, trust, url, tmp_path / "new")
    assert (list(taken.parts), len(taken.manifest.parts)) == ([1], 2)
    assert snapshots.soak.contents(url)["vote"] == []
    # Ours has no proof of its own here, so nobody can take this one in.
    with pytest.raises(InvalidInput, match="holds no proof"):
        await verify_snapshot(
            path, ExpectedIndex(making.CHAIN_ID, making.REGISTRY, b"\x33" * 20), trust
        )


def test_a_log_of_votes_without_any_is_left_out_since_no_contract_may_stand_there(
    original: Any, making: Any, tmp_path: Path, snapshots: Any
) -> None:
    store = Store.open(original.url, snapshots.DEPLOYMENT)
    empty = making.Chain()
    empty.blocks[1:] = [making.Block(x.ref) for x in original.chain.blocks[1:]]
    making.append(
        store.votes_store(replace(snapshots.DEPLOYMENT, registry="0x" + "33" * 20)), empty
    )
    store.close()
    assert list(export.plan_export(original.url).contracts) == [1]
    assert snapshots.Parts.read(original.export(tmp_path / "index.car")).manifest["votes"] is None


@pytest.mark.parametrize(
    ("chain_id", "finalized", "block"),
    [(31337, 4, 7), (1, 4, 4), (1, 0, 0), (1, 99, 7)],
)
def test_without_a_block_the_newest_final_one_is_taken_but_on_a_development_chain(
    making: Any, tmp_path: Path, chain_id: int, finalized: int, block: int
) -> None:
    url, chain = f"sqlite:///{tmp_path / 'index.db'}", making.Chain()
    for _ in range(7):
        chain.mine()
    store = Store.open(url, replace(making.DEPLOYMENT, chain_id=chain_id))
    with pytest.raises(Unavailable, match="no block yet"):
        export.plan_export(url)
    store.append(replace(chain.step(), finalized=finalized), ())
    store.close()
    plan = export.plan_export(url)
    assert (plan.chain_id, plan.block_number, plan.final) == (chain_id, block, block <= finalized)
    assert plan.contracts == {1: making.REGISTRY}
    with pytest.raises(InvalidInput, match="block 8 is not in the index"):
        export.plan_export(url, 8)


def test_a_block_whose_hash_is_not_kept_cannot_be_exported_without_a_proof(
    making: Any, tmp_path: Path
) -> None:
    url, chain = f"sqlite:///{tmp_path / 'index.db'}", making.Chain()
    for _ in range(3):
        chain.mine()
    store = Store.open(url, making.DEPLOYMENT)
    step = chain.step()
    store.append(replace(step, blocks=(step.upto,)), ())
    store.close()
    out = tmp_path / "index.car"
    with pytest.raises(InvalidInput, match="no longer knows the hash of block 1"):
        export.export_snapshot(url, BlockDirectory(tmp_path), out, 1, proofs={})
    assert list(tmp_path.glob("*.car")) + list(tmp_path.glob(".*part")) == []


def test_a_proof_of_another_state_is_not_exported(
    original: Any, tmp_path: Path, snapshots: Any, making: Any
) -> None:
    other = making.Chain()
    other.blocks += [making.Block(x.ref) for x in original.chain.blocks[1:-1]]
    proof = snapshots.prove(snapshots.seal(other))
    with pytest.raises(Unavailable, match="changed while it was read"):
        export.export_snapshot(
            original.url, original.blocks, tmp_path / "x", proof.block_number, proofs={1: proof}
        )
    assert not (tmp_path / "x").exists()


# whom it takes --------------------------------------------------------------------------------


async def test_with_an_endpoint_every_event_is_compared(
    original: Any, endpoint: Any, making: Any, tmp_path: Path, snapshots: Any
) -> None:
    path, url = original.export(tmp_path / "index.car"), f"sqlite:///{tmp_path / 'new.db'}"
    found, kept = await take(path, making, TrustAnchor(endpoint.rpc), url, tmp_path / "new")
    assert (found.placed, kept) == (True, 3)
    assert snapshots.digest_of(url).index == original.digest().index


async def test_without_a_proof_in_the_file_the_endpoint_is_asked_for_it(
    original: Any, endpoint: Any, making: Any, tmp_path: Path
) -> None:
    path = original.export(tmp_path / "index.car", proven=False)
    assert (await checked(path, making, TrustAnchor(endpoint.rpc))).placed
    with pytest.raises(InvalidInput, match="holds no proof"):
        await checked(path, making, TrustAnchor(block_hash=original.world.hash))
    endpoint.serves_state = False
    with pytest.raises(InvalidInput, match="too old to be proven"):
        await checked(path, making, TrustAnchor(endpoint.rpc))


async def test_somebody_has_to_be_trusted(original: Any, making: Any, tmp_path: Path) -> None:
    path = original.export(tmp_path / "index.car")
    with pytest.raises(UsageError, match="without a trusted block hash"):
        await checked(path, making, TrustAnchor())
    with pytest.raises(UsageError, match="without a trusted block hash"):
        await checked(path, making, TrustAnchor(index_digest=original.digest().index))
    with pytest.raises(Untrue, match="not true"):
        await checked(path, making, TrustAnchor(block_hash=b"\x01" * 32))
    trust = TrustAnchor(block_hash=original.world.hash, index_digest=b"\x01" * 32)
    with pytest.raises(Untrue, match="not true"):
        await checked(path, making, trust)


async def test_an_endpoint_and_a_trusted_hash_have_to_agree(
    original: Any, endpoint: Any, making: Any, tmp_path: Path
) -> None:
    path = original.export(tmp_path / "index.car")
    await checked(path, making, TrustAnchor(endpoint.rpc, original.world.hash))
    with pytest.raises(Untrue, match="has another block"):
        await checked(path, making, TrustAnchor(endpoint.rpc, b"\x01" * 32))


async def test_a_snapshot_of_another_chain_or_registry_is_refused(
    original: Any, making: Any, tmp_path: Path
) -> None:
    path, trust = (
        original.export(tmp_path / "index.car"),
        TrustAnchor(block_hash=original.world.hash),
    )
    for chain_id, registry in ((1, making.REGISTRY), (making.CHAIN_ID, b"\x01" * 20)):
        with pytest.raises(InvalidInput, match="another registry"):
            await verify_snapshot(path, ExpectedIndex(chain_id, registry), trust)
    subject = ExpectedIndex(making.CHAIN_ID, making.REGISTRY, start_block=3)
    with pytest.raises(InvalidInput, match="begins at another block"):
        await verify_snapshot(path, subject, trust)


async def test_a_database_that_holds_anything_is_left_alone(
    original: Any, making: Any, tmp_path: Path, snapshots: Any
) -> None:
    path = original.export(tmp_path / "index.car")
    found = await checked(path, making, TrustAnchor(block_hash=original.world.hash))
    chain, url = history(making), f"sqlite:///{tmp_path / 'shorter.db'}"
    store = Store.open(url, snapshots.DEPLOYMENT)
    making.append(store, chain, chain.blocks[2].ref)
    store.close()
    before = snapshots.soak.contents(url)
    with pytest.raises(UsageError, match="holds an index already"):
        restore_events(path, found, url)
    assert snapshots.soak.contents(url) == before
    url = f"sqlite:///{tmp_path / 'other.db'}"
    Store.open(url, replace(making.DEPLOYMENT, registry="0x" + "44" * 20)).close()
    with pytest.raises(UsageError) as caught:
        restore_events(path, found, url)
    assert caught.value.code is Code.FOREIGN_DATABASE


async def test_an_import_that_is_interrupted_has_not_begun(
    original: Any, making: Any, tmp_path: Path, snapshots: Any, database_url: str
) -> None:
    path = original.export(tmp_path / "index.car")
    found = await checked(path, making, TrustAnchor(block_hash=original.world.hash))

    def interrupt(what: str, done: int, total: int) -> None:
        assert (what, done, total) == ("events", 11, 11)
        raise InterruptedError

    with pytest.raises(InterruptedError):
        restore_events(path, found, database_url, progress=interrupt)
    with pytest.raises(Unavailable, match="holds no index yet"):
        snapshots.digest_of(database_url)
    restore_events(path, found, database_url)
    assert snapshots.digest_of(database_url).log.count == 11


async def test_an_import_that_was_cut_short_among_its_packages_is_ended_by_the_next(
    original: Any, making: Any, tmp_path: Path, snapshots: Any, database_url: str
) -> None:
    path, trust = (
        original.export(tmp_path / "index.car"),
        TrustAnchor(block_hash=original.world.hash),
    )
    restore_events(path, await checked(path, making, trust), database_url)
    before = snapshots.soak.contents(database_url)
    found, kept = await take(path, making, trust, database_url, tmp_path / "new")
    assert kept == found.manifest.packages > 0
    assert snapshots.soak.contents(database_url) == before
    _, kept = await take(path, making, trust, original.url, tmp_path / "newer")  # all is judged
    assert kept == found.manifest.packages


async def test_a_file_that_changed_since_it_was_checked_is_not_taken(
    original: Any, making: Any, tmp_path: Path, snapshots: Any
) -> None:
    path, url = original.export(tmp_path / "index.car"), f"sqlite:///{tmp_path / 'new.db'}"
    found = await checked(path, making, TrustAnchor(block_hash=original.world.hash))
    parts = snapshots.Parts.read(path)
    parts.manifest["rules_version"] += 1
    parts.write(path)
    with pytest.raises(InvalidInput, match="damaged"):
        restore_events(path, found, url)
    with pytest.raises(Unavailable, match="holds no index yet"):
        snapshots.digest_of(url)


async def test_a_package_that_does_not_verify_is_not_kept(
    original: Any, making: Any, tmp_path: Path, snapshots: Any
) -> None:
    parts = snapshots.Parts.read(original.export(tmp_path / "index.car"))
    bad = b"metadata: {}\n"
    chain = making.Chain()
    chain.mine(chain.release("bad", data=bad), chain.release("good"))
    folder = tmp_path / "second"
    folder.mkdir()
    second = snapshots.build(folder, chain)
    parts = snapshots.Parts.read(second.export(tmp_path / "index.car"))
    parts.packages.append(bad)
    path, url = parts.write(tmp_path / "index.car"), f"sqlite:///{tmp_path / 'new.db'}"
    trust = TrustAnchor(block_hash=second.world.hash)
    _, kept = await take(path, making, trust, url, tmp_path / "new")
    blocks = BlockDirectory(tmp_path / "new")
    assert (kept, blocks.read(Cid.of(bad))) == (1, None)
    assert blocks.read(Cid.of(parts.packages[0])) == parts.packages[0]


# lies -----------------------------------------------------------------------------------------

LEAF_HEAD = 8 + 8 + 32 + 32 + 4 + 1  # what stands before the topics
Lie = Callable[[Any, Any], None]


def lie_about(**changes: Any) -> Lie:
    def lie(parts: Any, _: Any) -> None:
        for key, value in changes.items():
            parts.manifest[key] = value

    return lie


def lie_about_registry(**changes: Any) -> Lie:
    def lie(parts: Any, _: Any) -> None:
        parts.manifest["registry"] |= changes

    return lie


def lie_about_block(**changes: Any) -> Lie:
    def lie(parts: Any, _: Any) -> None:
        parts.manifest["block"] |= changes

    return lie


def split(chunk: bytes) -> list[bytes]:
    """The records of a chunk, as bytes."""
    found, at = [], 0
    while at < len(chunk):
        topics = chunk[at + LEAF_HEAD - 1]
        length_at = at + LEAF_HEAD + 32 * topics + 1
        (length,) = struct.unpack_from(">I", chunk, length_at)
        end = length_at + 4 + length + 8
        found.append(chunk[at:end])
        at = end
    return found


def events_lie(bend: Callable[[list[bytes]], list[bytes]], **registry: Any) -> Lie:
    """A lie told in the events; the digests and CIDs fit again."""

    def lie(parts: Any, _: Any) -> None:
        parts.chunks = [b"".join(bend(split(parts.chunks[0])))]
        parts.manifest["registry"] |= registry

    return lie


def bent(at: int, offset: int, by: int = 1) -> Callable[[list[bytes]], list[bytes]]:
    def bend(found: list[bytes]) -> list[bytes]:
        event = bytearray(found[at])
        event[offset] = (event[offset] + by) % 256
        return [*found[:at], bytes(event), *found[at + 1 :]]

    return bend


def swapped(found: list[bytes]) -> list[bytes]:
    return [found[1], found[0], *found[2:]]


LIES: dict[str, Lie] = {
    "an event is missing": events_lie(lambda x: x[:-1]),
    "an event is missing, and its count": events_lie(lambda x: x[:-1], log_count=10),
    "an event in the middle is missing": events_lie(lambda x: x[:3] + x[4:]),
    "an event is there twice": events_lie(lambda x: [*x, x[-1]]),
    "two events are swapped": events_lie(swapped),
    "an event says another thing": events_lie(bent(0, LEAF_HEAD + 96 + 5 + 40)),
    "an event has another topic": events_lie(bent(0, LEAF_HEAD)),
    "an event has another sequence": events_lie(bent(4, 7)),
    "an event is of a later block than the snapshot": events_lie(bent(-1, 14)),
    "events of one block have two hashes": events_lie(bent(1, 16)),
    "events of one block have two times": events_lie(bent(0, -1)),
    "an event is before the one before it": events_lie(bent(1, 80 + 3, -1)),
    "an event is cut off": lambda parts, _: parts.chunks.append(parts.chunks.pop()[:-1]),
    "bytes trail": lambda parts, _: parts.chunks.append(parts.chunks.pop() + b"\0"),
    "an event has 200 topics": events_lie(bent(0, LEAF_HEAD - 1, 197)),
    "another count": lie_about_registry(log_count=3),
    "another log head": lie_about_registry(log_head="0x" + "01" * 24),
    "another start": lie_about_registry(start_block=3),
    "no chunks": lambda parts, _: parts.chunks.clear(),
    "another block hash": lie_about_block(hash="0x" + "01" * 32),
    "another number": lie_about_block(number=3),
    "another parent": lie_about_block(parent="0x" + "01" * 32),
    "another time": lie_about_block(timestamp=1_800_000_000),
    "a package nobody announced": lambda parts, _: parts.packages.append(b"metadata: {}\n"),
    "a package that is none": lambda parts, _: parts.packages.append(bytes(300_000)),
    "another schema": lie_about(schema="capdex.snapshot/2"),
    "rules of the future": lie_about(decoder_version=99),
    "a number that is none": lie_about(chain_id=True),
    "a number no database takes": lie_about_block(timestamp=2**63),
    "a member too many": lie_about(more=1),
    "no proof": lie_about_registry(proof=None),
    "a proof that is none": lie_about_registry(proof={}),
    "another's proof": lambda parts, tools: parts.manifest["registry"].update(
        proof=tools.prove(tools.seal(tools.making.Chain())).to_json()
    ),
    "chunks that are no list": lambda parts, _: parts.manifest["registry"].update(chunks="x"),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
async def test_a_snapshot_that_lies_is_refused_before_anything_is_written(
    lie: Lie, original: Any, making: Any, tmp_path: Path, snapshots: Any
) -> None:
    path = original.export(tmp_path / "index.car")
    parts = snapshots.Parts.read(path)
    assert len(split(parts.chunks[0])) == len(original.chain.logs) == 11
    lie(parts, snapshots)
    parts.write(path, list_chunks=parts.manifest["registry"]["chunks"] != "x")
    with pytest.raises(CapdexError) as caught:
        await checked(path, making, TrustAnchor(block_hash=original.world.hash))
    assert caught.value.code in (Code.INVALID_INPUT, Code.BAD_PROOF, Code.USAGE)


ELSEWHERE: dict[str, Lie] = {
    "another transaction": events_lie(bent(3, 48)),
    "another index of a log": events_lie(bent(-1, 80 + 3)),
    "another block": events_lie(bent(0, 16)),
    "another time": events_lie(bent(-1, -1)),
}


@pytest.mark.parametrize("lie", ELSEWHERE.values(), ids=ELSEWHERE)
async def test_where_events_stood_is_proven_by_an_endpoint_or_by_a_trusted_digest(
    lie: Lie, original: Any, endpoint: Any, making: Any, tmp_path: Path, snapshots: Any
) -> None:
    path, url = original.export(tmp_path / "index.car"), f"sqlite:///{tmp_path / 'new.db'}"
    parts = snapshots.Parts.read(path)
    lie(parts, snapshots)
    parts.write(path)
    with pytest.raises(Untrue):
        await checked(path, making, TrustAnchor(endpoint.rpc))
    trust = TrustAnchor(block_hash=original.world.hash, index_digest=original.digest().index)
    try:
        found = await checked(path, making, trust)
    except Untrue:
        return  # it cannot even be a chain
    if lie is ELSEWHERE["another time"]:
        return  # of which no digest knows
    with pytest.raises(Untrue, match="not true"):
        restore_events(path, found, url)
    with pytest.raises(Unavailable, match="holds no index yet"):
        snapshots.digest_of(url)


async def test_a_digest_that_the_events_do_not_have_leaves_no_index_behind(
    original: Any, making: Any, tmp_path: Path, snapshots: Any, database_url: str
) -> None:
    path = original.export(tmp_path / "index.car")
    parts = snapshots.Parts.read(path)
    parts.manifest["registry"]["index_digest"] = "0x" + "01" * 32
    parts.write(path)
    found = await checked(path, making, TrustAnchor(block_hash=original.world.hash))
    with pytest.raises(Untrue, match="not true"):
        restore_events(path, found, database_url)
    with pytest.raises(Unavailable, match="holds no index yet"):
        snapshots.digest_of(database_url)
    honest = original.export(tmp_path / "honest.car")
    await take(
        honest, making, TrustAnchor(block_hash=original.world.hash), database_url, tmp_path / "n"
    )
    assert snapshots.digest_of(database_url).index == original.digest().index


# damage ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, snapshots: Any, making: Any) -> Any:
    """The bytes of a snapshot, and the hash of its block."""
    folder = tmp_path_factory.mktemp("whole")
    chain = making.Chain()
    chain.mine(chain.release(), making.yanked())
    found = snapshots.build(folder, chain)
    return found.export(folder / "index.car").read_bytes(), found.world.hash


HOSTILE = settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)


@given(data=st.data())
@HOSTILE
def test_one_byte_that_was_changed_is_found(
    data: Any, whole: Any, tmp_path: Path, making: Any
) -> None:
    honest, block_hash = whole
    at = data.draw(st.integers(0, len(honest) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda x: x != honest[at]))
    path = tmp_path / "index.car"
    path.write_bytes(honest[:at] + bytes([other]) + honest[at + 1 :])
    with pytest.raises((InvalidInput, Untrue)):
        asyncio.run(checked(path, making, TrustAnchor(block_hash=block_hash)))


@given(data=st.data())
@HOSTILE
def test_a_file_that_is_cut_off_anywhere_is_found(
    data: Any, whole: Any, tmp_path: Path, making: Any
) -> None:
    honest, block_hash = whole
    path = tmp_path / "index.car"
    path.write_bytes(honest[: data.draw(st.integers(0, len(honest) - 1))])
    with pytest.raises(InvalidInput):
        asyncio.run(checked(path, making, TrustAnchor(block_hash=block_hash)))


@given(tail=st.binary(max_size=200))
@HOSTILE
def test_any_bytes_are_a_snapshot_or_refused(tail: bytes, tmp_path: Path, making: Any) -> None:
    path = tmp_path / "index.car"
    root = Cid.of(tail)
    for data in (tail, write_header(root.to_bytes()) + tail):
        path.write_bytes(data)
        with pytest.raises(InvalidInput):
            asyncio.run(checked(path, making, TrustAnchor(block_hash=bytes(32))))
    path.write_bytes(write_header(root.to_bytes()) + write_block(root, tail))
    with pytest.raises(InvalidInput, match="damaged"):
        asyncio.run(checked(path, making, TrustAnchor(block_hash=bytes(32))))


@pytest.mark.parametrize(
    "length",
    [
        *(b"\xff" * 9 + b"\x7f", b"\xff" * 20, b"\x80" * 5, b"\x80\x80\x00", b"\x81\x00"),
        *(write_varint(2**63), write_varint(36 + 2 * 1024 * 1024 + 1), write_varint(35), b"\0"),
    ],
)
async def test_a_length_that_cannot_be_is_refused_before_anything_is_read(
    length: bytes, whole: Any, tmp_path: Path, making: Any
) -> None:
    honest, block_hash = whole
    path = tmp_path / "index.car"
    header = write_header(b"\x01\x55\x12\x20" + bytes(32))
    for data in (honest + length, header + length, honest[: len(header)] + length + honest):
        path.write_bytes(data)
        with pytest.raises(InvalidInput, match="damaged"):
            await checked(path, making, TrustAnchor(block_hash=block_hash))


@pytest.mark.parametrize(
    "manifest",
    [
        b"",
        b"[]",
        b"null",
        b"\xff",
        b"[" * 1_000_000,
        b'{"a":' * 200_000,
        b'{"schema":"capdex.snapshot/1"}',
        orjson.dumps({"schema": "x" * 1_000_000}),
    ],
    ids=["nothing", "list", "null", "no text", "lists", "objects", "little", "long"],
)
async def test_a_manifest_that_is_none_is_refused(
    manifest: bytes, tmp_path: Path, making: Any
) -> None:
    path, root = tmp_path / "index.car", Cid.of(manifest)
    path.write_bytes(write_header(root.to_bytes()) + write_block(root, manifest))
    with pytest.raises(InvalidInput, match="damaged"):
        await checked(path, making, TrustAnchor(block_hash=bytes(32)))


async def test_a_snapshot_of_a_later_format_is_not_called_damaged(
    original: Any, making: Any, tmp_path: Path, snapshots: Any
) -> None:
    path = original.export(tmp_path / "index.car")
    parts = snapshots.Parts.read(path)
    parts.manifest["schema"] = "capdex.snapshot/2"
    parts.write(path)
    with pytest.raises(UsageError, match="made by another version of capdex") as caught:
        await checked(path, making, TrustAnchor(block_hash=original.world.hash))
    assert caught.value.why == "its format is capdex.snapshot/2, not capdex.snapshot/1"


async def test_a_manifest_lists_no_more_chunks_than_it_may(
    original: Any, making: Any, tmp_path: Path, snapshots: Any
) -> None:
    path = original.export(tmp_path / "index.car")
    parts = snapshots.Parts.read(path)
    parts.manifest["registry"]["chunks"] *= 16_385
    parts.write(path, list_chunks=False)
    with pytest.raises(InvalidInput, match="damaged"):
        await checked(path, making, TrustAnchor(block_hash=original.world.hash))


async def test_a_file_that_is_not_there_cannot_be_read(tmp_path: Path, making: Any) -> None:
    with pytest.raises(UsageError) as caught:
        await checked(tmp_path / "none.car", making, TrustAnchor(block_hash=bytes(32)))
    assert caught.value.code is Code.UNREADABLE


async def test_a_pipe_which_cannot_be_read_twice_is_refused_at_once(
    tmp_path: Path, making: Any
) -> None:
    os.mkfifo(path := tmp_path / "index.car")  # nobody ever writes into it
    with pytest.raises(UsageError) as caught:
        await checked(path, making, TrustAnchor(block_hash=bytes(32)))
    assert caught.value.why == "it is a pipe, and a snapshot is read twice"


# records --------------------------------------------------------------------------------------

HASHES = st.binary(min_size=32, max_size=32)
LOGS = st.builds(
    RawLog,
    st.just(b"\x11" * 20),
    st.lists(HASHES, max_size=4).map(tuple),
    st.binary(max_size=300),
    st.builds(LogPosition, st.integers(0, 2**64 - 1), HASHES, HASHES, st.integers(0, 2**32 - 1)),
)


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), LOGS, st.integers(0, 2**64 - 1))))
def test_records_are_read_back_from_their_chunks(
    events: list[tuple[int, RawLog, int]],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "CHUNK_BYTES", 500)
        leaves = [(event_leaf(n, log, Counts.EVENT), at) for n, log, at in events]
        chunks = list(records.pack(leaves))
    found = [x for chunk in chunks for x in records.unpack(chunk, b"\x11" * 20)]
    assert [(x.sequence, x.log, x.timestamp) for x in found] == events


@given(st.binary(max_size=400))
def test_any_chunk_is_records_or_refused(chunk: bytes) -> None:
    def read() -> Iterator[int]:
        for record in records.unpack(chunk, bytes(20)):
            yield record.sequence

    try:
        count = len(list(read()))
    except InvalidInput:
        return
    assert count * (LEAF_HEAD + 13) <= len(chunk)


def test_an_event_too_large_for_a_block_is_not_exported() -> None:
    log = RawLog(b"", (), bytes(2 * 1024 * 1024), LogPosition(1, bytes(32), bytes(32), 0))
    with pytest.raises(InvalidInput) as caught:
        list(records.pack([(event_leaf(1, log, Counts.EVENT), 1)]))
    assert caught.value.code is Code.TOO_LARGE
