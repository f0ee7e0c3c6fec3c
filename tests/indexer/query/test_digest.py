"""The digests of an index: what they are of, and that one kept is the one made anew."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, event

from capdex.errors import InvalidInput, Unavailable
from capdex.package import RULES_VERSION
from capdex.problems import Reason
from capdex.proof.index_digest import Counts, Frontier, deployment_leaf, event_leaf, release_leaf
from capdex.registry.logs import LogHead
from capdex_indexer.db.models import DECODER_VERSION
from capdex_indexer.projection import event_rows as rows
from capdex_indexer.projection.package_rows import Judgement
from capdex_indexer.query import digest
from capdex_indexer.query.index import Index
from capdex_indexer.store import Delay, Store
from tests.indexer.tables import with_tables


def digest_of(index: Index, block: int | None = None) -> digest.Digest:
    with index.read() as connection:
        return digest.read_digest(connection, block)


def votes_digest_of(index: Index, block: int | None = None) -> digest.Digest | None:
    with index.read() as connection:
        return digest.read_votes_digest(connection, block)


@pytest.fixture
def fresh(making: Any, tmp_path: Any) -> Iterator[Any]:
    """Make the digest of a chain in an index of its own, up to any block."""
    opened: list[Any] = []

    def make(chain: Any, upto: Any = None, *, fetch: bool = True) -> digest.Digest:
        url = with_tables(tmp_path / f"fresh-{len(opened)}.db")
        store, index = Store.open(url, making.DEPLOYMENT), Index(url)
        opened.extend([index, store])
        making.append(store, chain, upto)
        if fetch:
            making.fetch(store, chain)
        return digest_of(index)

    yield make
    for one in opened:
        one.close()


def first_leaf(making: Any) -> bytes:
    ours = making.DEPLOYMENT
    contract = bytes.fromhex(ours.registry[2:])
    return deployment_leaf(ours.chain_id, contract, ours.genesis, DECODER_VERSION)


def test_the_index_digest_is_of_the_deployment_and_every_event_in_order(
    store: Store, search_index: Index, chain: Any, making: Any
) -> None:
    chain.mine(making.published(), making.published(), making.yanked())
    chain.mine(
        (b"\x99" * 32, b"\x01" * 32, b"\x01" * 20, (("uint64",), ())),  # no event of ours
        making.published("other", cap_uri="did:nuwa:cap:another@1.0.0"),
        making.yanked("No name"),
    )
    making.append(store, chain)
    found = digest_of(search_index)
    counts = [
        *(Counts.RELEASE, Counts.EVENT, Counts.EVENT),  # a version is announced once
        *(Counts.NOTHING, Counts.EVENT, Counts.NOTHING),
    ]
    events = [event_leaf(i + 1, log, counts[i]) for i, log in enumerate(chain.logs)]
    assert found.index == Frontier([first_leaf(making), *events]).root()
    log = LogHead()
    for raw in chain.logs:
        log = log.fold(raw)
    assert found.log == log
    assert (found.block_number, found.block_hash) == (chain.head.number, chain.head.hash)
    assert (found.decoder_version, found.rules_version) == (DECODER_VERSION, RULES_VERSION)


def test_the_content_digest_is_of_every_release_once_all_are_judged(
    store: Store, search_index: Index, chain: Any, making: Any
) -> None:
    chain.mine(
        chain.release("good"),
        chain.release("loose", bound=False),
        making.published("refused", cid="no CID"),
    )
    making.append(store, chain)
    assert digest_of(search_index).content is None  # two are pending
    making.fetch(store, chain)
    digests = [bytes.fromhex(search_index.releases(x)[0].sha256) for x in ("good", "loose")]
    verdicts = ["verified", "signed", "mismatch"]
    expected = [
        release_leaf(i + 1, x, RULES_VERSION, verdicts[i])
        for i, x in enumerate([*digests, b"\x22" * 32])
    ]
    assert digest_of(search_index).content == Frontier(expected).root()


def test_a_parked_release_leaves_the_contents_of_its_block_and_later_ones_without_digest(
    store: Store, search_index: Index, chain: Any, making: Any
) -> None:
    chain.publish("first")
    parked = chain.mine(making.published("parked"))
    chain.publish("last")
    making.follow(store, chain)
    (job,) = store.due(1e12, 10)
    store.delay_many([Delay(job.release_id, "nobody has it", reason=Reason.UNAVAILABLE)])
    assert digest_of(search_index, parked.number - 1).content is not None
    assert digest_of(search_index, parked.number).content is None
    assert digest_of(search_index).content is None
    assert search_index.status().content_digest is None


def test_an_index_without_events_has_a_digest_of_its_deployment_alone(
    store: Store, search_index: Index, chain: Any, making: Any
) -> None:
    assert (search_index.status().index_digest, search_index.status().content_digest) == (
        None,
        None,
    )
    with pytest.raises(Unavailable, match="no block yet"):
        digest_of(search_index)
    making.append(store, chain)
    found = digest_of(search_index)
    assert (found.index, found.content) == (
        Frontier([first_leaf(making)]).root(),
        Frontier().root(),
    )
    assert search_index.status().index_digest == f"0x{found.index.hex()}"


def test_the_digest_at_an_older_block_is_that_of_an_index_which_ends_there(
    store: Store, search_index: Index, chain: Any, making: Any, fresh: Any
) -> None:
    for number in range(4):
        chain.publish(f"cap-{number}")
        chain.mine()
    making.follow(store, chain)
    for block in chain.blocks:
        assert digest_of(search_index, block.ref.number) == fresh(chain, block.ref)


@pytest.mark.parametrize("block", [-1, 99, 10**30])
def test_a_block_that_is_not_indexed_has_no_digest(
    store: Store, search_index: Index, chain: Any, making: Any, block: int
) -> None:
    making.append(store, chain)
    with pytest.raises(InvalidInput, match=f"block {block} is not in the index"):
        digest_of(search_index, block)


def test_the_hash_of_an_old_block_without_events_is_not_kept_and_so_not_told(
    store: Store, search_index: Index, chain: Any, making: Any
) -> None:
    chain.mine(making.published())
    for _ in range(4):
        chain.mine()
    step = chain.step()
    kept = tuple(block for block in step.blocks if block.number in (1, 3, chain.head.number))
    store.append(replace(step, blocks=kept), making.heads(step))
    hashes = [digest_of(search_index, number).block_hash for number in range(1, 6)]
    assert [x is not None for x in hashes] == [True, False, True, False, True]
    assert hashes[2] == chain.blocks[3].ref.hash


def test_votes_have_a_digest_of_their_own(
    store: Store, search_index: Index, chain: Any, making: Any
) -> None:
    chain.publish()
    making.append(store, chain)
    before = digest_of(search_index)
    assert votes_digest_of(search_index) is None
    contract = replace(making.DEPLOYMENT, registry="0x" + "33" * 20)
    log, ballots = store.votes_store(contract), making.Chain()
    assert votes_digest_of(search_index) is None  # nothing is read yet
    body = (("uint64", "string", "int8", "uint256"), ("note", 1, 1))
    name_id, topic = making.keccak(b"note"), making.events.TOPICS["Voted"]
    ballots.mine((topic, name_id, b"\x44" * 20, body))
    ballots.mine()
    making.append(log, ballots)
    expected = [
        deployment_leaf(contract.chain_id, b"\x33" * 20, contract.genesis, DECODER_VERSION),
        event_leaf(1, ballots.logs[0], Counts.EVENT),
    ]
    votes = votes_digest_of(search_index)
    assert votes is not None
    assert (votes.index, votes.content) == (Frontier(expected).root(), None)
    assert (votes.log.count, votes.block_number) == (1, 2)
    assert votes_digest_of(search_index, 99) == votes  # its own log ends before
    earlier = votes_digest_of(search_index, 0)
    assert earlier is not None
    assert earlier.index == Frontier(expected[:1]).root()
    assert digest_of(search_index) == before


def test_digests_that_are_kept_are_those_made_anew_whatever_happens_to_the_chain(
    store: Store, search_index: Index, chain: Any, making: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digest, "PAGE", 3)
    dice = random.Random(14)  # noqa: S311 - the same walk in each run
    for turn in range(60):
        if dice.random() < 0.3 and len(chain.blocks) > 4:
            depth = dice.randint(1, 4)  # below what the steps call final, too
            store.rollback(chain.fork(depth))
        for _ in range(dice.randint(1, 3)):
            some = [
                making.published(f"cap-{dice.randint(0, 9)}", f"{turn}.0.{i}") for i in range(2)
            ]
            chain.mine(*some[: dice.randint(0, 2)], making.yanked("cap-1", f"{turn}.0.0"))
        making.append(store, chain)
        if dice.random() < 0.4:
            for job in store.due(1e12, 1000):
                refused = rows.refusal(job.announcement, "by the dice")
                store.record_many([(job.release_id, Judgement.of(refused))])
        if dice.random() < 0.6:
            state, anew = search_index.status(), digest_of(search_index)
            assert state.index_digest == f"0x{anew.index.hex()}"
            content = None if anew.content is None else f"0x{anew.content.hex()}"
            assert state.content_digest == content


def test_only_what_came_since_the_finalised_block_is_read_again(
    store: Store, search_index: Index, chain: Any, making: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain.mine(*(making.published(f"cap-{i}") for i in range(40)))
    for _ in range(3):
        chain.mine(making.published("late", f"1.0.{len(chain.blocks)}"))
    making.append(store, chain)
    read: list[int] = []
    events = digest.read_events

    def counted(*arguments: Any) -> Iterator[tuple[bytes, int]]:
        for leaf in events(*arguments):
            read.append(int.from_bytes(leaf[0][:8], "big"))
            yield leaf

    monkeypatch.setattr(digest, "read_events", counted)
    search_index.status()
    assert sorted(read) == list(range(1, 44))
    read.clear()
    chain.mine(making.published("newest"))
    making.append(store, chain)
    search_index.status()
    assert sorted(read) == [42, 43, 44]  # two blocks above the finalised one, which is taken in now
    assert f"0x{digest_of(search_index).index.hex()}" == search_index.status().index_digest


def test_the_last_event_up_to_a_block_is_found_by_the_index_of_blocks(
    tmp_path: Path, making: Any
) -> None:
    path = tmp_path / "index.db"
    Store.open(f"sqlite:///{path}", making.DEPLOYMENT).close()
    engine = create_engine(f"sqlite:///{path}")
    asked: list[tuple[str, Any]] = []
    event.listen(
        engine, "before_cursor_execute", lambda *call: asked.append((call[2], call[3])), named=False
    )
    with engine.connect() as connection:
        digest.last_event(connection, 1, 5)
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {asked[0][0]}", asked[0][1])
        steps = [row[3] for row in plan]
    engine.dispose()
    assert steps == ["SEARCH event USING INDEX ix_event_block_number (block_number<?)"]
