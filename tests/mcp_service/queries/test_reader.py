"""Answers are kept until a commit of the writer changes what they are about."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from capdex.errors import CapdexError, Code
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.problems import Verdict
from capdex_indexer.query.index import Index
from capdex_indexer.store import Store
from capdex_indexer.store.operator import Operator
from capdex_service.answers.rendered import Answer, Rendered
from capdex_service.mcp.subscriptions.feed import Feed
from capdex_service.mcp.subscriptions.interest import Interest
from capdex_service.queries import reader
from capdex_service.queries.answer_cache import AnswerCache
from capdex_service.queries.reader import Reader
from capdex_service.queries.resolve import WHOLE, name_page, question, resolve

NOTE, MEMO = "did:nuwa:cap:note", "did:nuwa:cap:memo"


class Writing:
    """A chain, the store that indexes it, and a reader beside it."""

    def __init__(self, making: Any, url: str, folder: Path) -> None:
        self.making, self.chain, self.url = making, making.Chain(), url
        self.store = Store.open(self.url, making.DEPLOYMENT)
        self.blocks = BlockDirectory(folder / "blocks")
        self.publish("note", "1.0.0")
        self.publish("memo", "1.0.0")
        self.index = Index(self.url)
        self.operator = Operator(self.url)
        self.reader = Reader(self.index, serve=frozenset({Verdict.VERIFIED}), blocks=self.blocks)

    def publish(self, name: str, version: str, **metadata: Any) -> None:
        self.chain.publish(name, version, **metadata)
        self.making.follow(self.store, self.chain)
        for data in self.chain.packages.values():
            self.blocks.write(data)

    def mine(self, *logs: Any) -> None:
        self.chain.mine(*logs)
        self.making.append(self.store, self.chain)

    async def now(self, uri: str) -> Any:
        """The kept answer, after a look for commits, in a later turn of the loop than theirs."""
        await asyncio.sleep(0)
        moment = await self.reader.moment()
        answer = self.reader.cache.get(question(uri))
        return None if answer is None else answer.answer(moment).to_json()

    def close(self) -> None:
        self.reader.close()
        self.index.close()
        self.operator.close()
        self.store.close()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.real)])
def writing(
    making: Any,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Writing]:
    url = f"sqlite:///{tmp_path / 'index.db'}"
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
    made = Writing(making, url, tmp_path)
    monkeypatch.setattr(reader, "POLL_S", 0.0)  # look for commits at every request
    yield made
    made.close()


async def test_a_kept_answer_is_that_of_the_index_with_the_block_of_now(writing: Writing) -> None:
    first = (await resolve(writing.reader, NOTE)).to_json()
    writing.mine()
    again = await writing.now(NOTE)
    assert again["as_of"]["block_number"] == first["as_of"]["block_number"] + 1
    assert again["as_of"]["block_hash"] == "0x" + writing.chain.head.hash.hex()
    assert (first["chain"]["finality"], again["chain"]["finality"]) == ("head", "finalized")
    writing.reader.cache.clear()
    assert again == (await resolve(writing.reader, NOTE)).to_json()


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.mine(x.making.yanked("note", "1.0.0")),
        lambda x: x.mine(x.making.deprecated("note", "1.0.0", "old")),
        lambda x: x.mine(x.making.name_deprecated("note", "", "memo")),
        lambda x: x.publish("note", "1.1.0"),
        lambda x: x.mine(x.making.published("note", "1.1.0", digest=b"\x33" * 32)),
        lambda x: x.operator.deny("note", "asked to"),
        lambda x: x.store.rollback(x.chain.fork(len(x.chain.blocks) - 1)),
    ],
)
async def test_a_change_of_a_name_drops_what_is_kept_of_it_and_nothing_else(
    writing: Writing, change: Callable[[Writing], object]
) -> None:
    for uri in (NOTE, MEMO):
        await resolve(writing.reader, uri)
    if "rollback" not in change.__code__.co_names:
        assert await writing.now(MEMO) is not None
    change(writing)
    assert await writing.now(NOTE) is None
    if "rollback" not in change.__code__.co_names:
        assert await writing.now(MEMO) is not None


async def test_an_answer_made_before_a_commit_that_was_seen_is_not_kept(writing: Writing) -> None:
    """The writer commits while an answer is made, and another request looks meanwhile."""
    await writing.reader.moment()
    made: list[Answer] = []

    def make(connection: Connection) -> tuple[str, Rendered]:
        rendered = Rendered.of({"semver": "1.0.0"}, "")
        connection.exec_driver_sql("SELECT count(*) FROM release")
        writing.publish("note", "1.1.0")
        look = writing.reader._read_moment(writing.reader._moment)
        writing.reader._token, writing.reader._moment = look[0], look[1]
        return "note", rendered

    made.append(await writing.reader.answer("question", make))
    assert made[0].to_json()["semver"] == "1.0.0"
    assert writing.reader.answer_now("question") is None


async def test_a_client_that_is_told_of_a_change_gets_an_answer_with_it(
    writing: Writing, monkeypatch: pytest.MonkeyPatch
) -> None:
    await resolve(writing.reader, NOTE)
    seen = (await writing.reader.moment()).revision
    monkeypatch.setattr(reader, "POLL_S", 2.0)  # on PostgreSQL a kept answer is of that time
    writing.publish("note", "1.1.0")
    interest = Interest.of(["capdex://note"])
    async with Feed(writing.reader).follow(lambda: interest, since=seen) as follower:
        assert await follower.next()
        assert (await resolve(writing.reader, NOTE)).to_json()["semver"] == "1.1.0"


async def test_a_client_that_is_told_by_one_worker_gets_the_change_from_every_other(
    writing: Writing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "POLL_S", 1.0)
    other = Reader(writing.index, serve=frozenset({Verdict.VERIFIED}))
    interest = Interest.of(["capdex://note"])
    async with Feed(writing.reader).follow(lambda: interest) as follower:
        await asyncio.sleep(0.5)  # the first worker looks again a second after it began
        await resolve(other, NOTE)
        writing.publish("note", "1.1.0")
        assert await follower.next()
        assert (await resolve(other, NOTE)).to_json()["semver"] == "1.1.0"
    other.close()


async def test_who_follows_a_name_is_told_when_an_older_index_takes_the_place_of_this_one(
    making: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "POLL_S", 0.0)
    database = tmp_path / "index.db"
    writing = Writing(making, f"sqlite:///{database}", tmp_path)
    with closing(sqlite3.connect(tmp_path / "copy.db")) as older:
        with closing(sqlite3.connect(database)) as live:
            live.backup(older)
        for version in ("1.1.0", "1.2.0"):
            writing.publish("note", version)
        interest = Interest.of(["capdex://note"])
        async with asyncio.timeout(20), Feed(writing.reader).follow(lambda: interest) as follower:
            with closing(sqlite3.connect(database)) as live:
                older.backup(live)
            assert await follower.next()
            assert (await resolve(writing.reader, NOTE)).to_json()["semver"] == "1.0.0"
    writing.close()


async def test_a_whole_package_has_the_bytes_that_the_chain_names(writing: Writing) -> None:
    answer = await resolve(writing.reader, NOTE, WHOLE, whole=True)
    found = answer.to_json()
    [data] = [x for x in writing.chain.packages.values() if b"cap:note@" in x]
    assert found["package"].encode() == data
    assert found["prompt"] == "Do it."
    assert found["schema"]["type"] == "object"
    assert (found["tools"], found["tool_bindings"]) == ([], {})
    assert "Do it." in answer.text


async def test_a_node_without_the_bytes_says_where_they_are(writing: Writing) -> None:
    writing.reader.blocks = None
    with pytest.raises(CapdexError) as refusal:
        await resolve(writing.reader, NOTE, WHOLE)
    assert refusal.value.code is Code.PENDING
    assert (refusal.value.details or {})["ipfs_cid"] in (refusal.value.fix or "")


async def test_the_page_of_a_name_is_the_same_when_it_is_kept(writing: Writing) -> None:
    first = await name_page(writing.reader, "note")
    again = await name_page(writing.reader, "note")
    assert (first.body, first.etag) == (again.body, again.etag)
    assert len(first.to_json()["releases"]) == 1


def test_what_is_kept_is_bounded_and_the_least_used_goes_first() -> None:
    answer = Rendered((b'{"x":[{"y":', b'},{"y":', b"}]"), (7, 1 << 40), b'"text"')
    all_alike = AnswerCache()
    for name in ("a", "b", "c"):
        all_alike.put(name, name, answer)
    few = AnswerCache(max_bytes=all_alike.size_bytes)
    for name in ("a", "b", "c"):
        few.put(name, name, answer)
    assert few.get("a") == answer
    few.put("d", "d", answer)
    assert [few.get(x) for x in "abcd"] == [answer, None, answer, answer]
    assert few.size_bytes == all_alike.size_bytes
    few.drop(["a", "unknown"])
    assert (few.get("a"), len(few)) == (None, 2)
    few.clear()
    assert (len(few), few.size_bytes) == (0, 0)
