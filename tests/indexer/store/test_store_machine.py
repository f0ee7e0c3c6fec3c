"""Whatever the chain does and whenever the process dies, the index is that of the chain."""

from __future__ import annotations

import dataclasses
import importlib.util
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sqlalchemy import Engine, event

from capdex_indexer.query.changes import read_changes
from capdex_indexer.query.digest import DigestCache, read_digest
from capdex_indexer.query.index import Index
from capdex_indexer.query.name_state import read_name_state
from capdex_indexer.query.status import read_revision
from capdex_indexer.store import Store
from tests.indexer.found import search_page
from tests.indexer.tables import with_tables

NAMES = ("note", "memo")
KINDS = (
    *("publish", "lie", "yank", "unyank", "noise", "claim"),
    *("deprecate", "undeprecate", "deprecate name", "undeprecate name"),
)
SCHEMAS = (None, "did:nuwa:state:shared#v1", "did:nuwa:state:shared#v2")
SCOPES = (None, "sc:shared", "sc:other")
VERSIONS = ("1.0.0", "1.1.0", "2.0.0-rc.1")


def _load(name: str) -> Any:
    """A module of the tests, which are no packages, by its path from their folder."""
    full = f"tests_{name.replace('/', '_')}"
    if full not in sys.modules:
        path = Path(__file__).resolve().parents[2] / f"{name}.py"
        spec = importlib.util.spec_from_file_location(full, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[full] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[full])
    return sys.modules[full]


making, soak = _load("indexer/making"), _load("soak/contents")


def read(index: Index, look: Callable[..., Any], *of: object) -> Any:
    with index.read() as connection:
        return look(connection, *of)


class Died(BaseException):
    """The process, in the middle of a transaction."""


@contextmanager
def dying(statements: int) -> Iterator[None]:
    """Die before the statement after so many, else before the commit, of the one transaction."""
    left = iter(range(statements))

    def count(*_: object) -> None:
        if next(left, None) is None:
            raise Died

    def refuse(*_: object) -> None:
        raise Died

    event.listen(Engine, "before_cursor_execute", count)
    event.listen(Engine, "commit", refuse)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", count)
        event.remove(Engine, "commit", refuse)


def schema_claims(path: Path) -> list[Any]:
    """Who uses what, by the sequences of the events."""
    query = (
        "SELECT release.sequence, schema_claim.sequence, claims, schema_uri, memory_scope "
        "FROM schema_claim LEFT JOIN release ON release.id = release_id ORDER BY 1"
    )
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def picture(index: Index) -> Any:
    """All that an index answers, without what only its own past explains (ids, attempts)."""
    found = [index.releases(name) for name in NAMES]
    listed = search_page(index, "")
    searches = [
        [(hit.release.cap_uri, hit.matched) for hit in search_page(index, words).hits]
        for words in ("note", "memo", "keeps", "edition")
    ]
    state = index.status()
    kept = (
        *("block_number", "block_hash", "log_count", "log_head", "releases", "listed"),
        *("by_verdict", "by_availability", "rejected_by_reason", "undecodable", "rejections"),
    )
    return found, listed.hits, searches, {x: getattr(state, x) for x in kept}


class Indexing(RuleBasedStateMachine):
    """Extend, fork, crash and record in any order; then compare with an index built at once."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="capdex-machine-"))
        self.url = with_tables(self.home / "index.db")
        self.chain, self.digests = making.Chain(), DigestCache()
        self.answers: dict[str, Any] = {}
        self.revision = 0
        self.canonical = True  # False while the chain has forked below the cursor

    @initialize()
    def open(self) -> None:
        self._open()
        making.append(self.store, self.chain)

    def _open(self) -> None:
        """A process: its writer, and a reader for as long."""
        self.store, self.index = Store.open(self.url, making.DEPLOYMENT), Index(self.url)

    def _close(self) -> None:
        self.index.close()
        self.store.close()

    @rule(
        kinds=st.lists(st.sampled_from(KINDS), max_size=3),
        name=st.sampled_from(NAMES),
        version=st.sampled_from(VERSIONS),
        edition=st.integers(0, 1),
        bound=st.booleans(),
        spaces=st.tuples(st.sampled_from(SCHEMAS), st.sampled_from(SCOPES)),
    )
    def extend(
        self,
        kinds: list[str],
        name: str,
        version: str,
        edition: int,
        bound: bool,
        spaces: tuple[str | None, str | None],
    ) -> None:
        schema_uri, memory_scope = spaces
        make = {
            "publish": lambda: self.chain.release(
                name,
                version,
                bound=bound,
                summary=f"keeps edition {edition}",
                schema_uri=schema_uri,
                memory_scope=memory_scope,
            ),
            "lie": lambda: making.published(name, version, cid="nonsense"),
            "yank": lambda: making.yanked(name, version),
            "unyank": lambda: making.unyanked(name, version),
            "deprecate": lambda: making.deprecated(name, version, f"edition {edition}"),
            "undeprecate": lambda: making.undeprecated(name, version),
            "deprecate name": lambda: making.name_deprecated(name, "", NAMES[edition]),
            "undeprecate name": lambda: making.of_name("NameUndeprecated", name),
            "claim": lambda: making.of_name("Claimed", name),
            "noise": lambda: (*making.yanked(name, version)[:3], b"\0" * 31),
        }
        self.chain.mine(*(make[kind]() for kind in kinds))
        making.append(self.store, self.chain)

    @rule(depth=st.integers(1, 5))
    def fork(self, depth: int) -> None:
        if depth < len(self.chain.blocks):
            self.store.rollback(self.chain.fork(depth))

    @rule(count=st.integers(1, 3))
    def record(self, count: int) -> None:
        making.fetch(self.store, self.chain, limit=count)

    @rule(count=st.integers(1, 3))
    def record_the_newest_first(self, count: int) -> None:
        for job in self.store.due(1e12, 1000)[: -count - 1 : -1]:
            if job.announcement.sha256 in self.chain.packages:
                self.store.record_many([(job.release_id, making.judge(self.chain, job))])

    @rule(depth=st.integers(1, 3))
    def record_too_late(self, depth: int) -> None:
        """A worker judges, the chain forks, the worker hands in."""
        jobs = [x for x in self.store.due(1e12, 2) if x.announcement.sha256 in self.chain.packages]
        judged = [(job.release_id, making.judge(self.chain, job)) for job in jobs]
        if depth < len(self.chain.blocks):
            self.store.rollback(self.chain.fork(depth))
        self.store.record_many(judged)

    @rule()
    def crash_and_reopen(self) -> None:
        self._close()
        self._open()
        cursor = self.store.cursor()
        assert cursor is not None
        assert cursor.block == self.chain.head

    @rule(
        what=st.sampled_from(["append", "rollback", "record"]),
        statements=st.integers(0, 25),
        depth=st.integers(1, 4),
    )
    def die_inside(self, what: str, statements: int, depth: int) -> None:
        """Whatever a transaction has done until the process dies, nothing of it is there after."""
        before = soak.contents(self.url)
        was = list(self.chain.blocks)
        jobs = self._judged(depth) if what == "record" else []
        work: Callable[[], Any]
        if what == "rollback" and depth < len(self.chain.blocks):
            work = partial(self.store.rollback, self.chain.fork(depth))
        elif jobs:
            work = partial(self.store.record_many, jobs)
        else:
            self.chain.mine(self.chain.release("note", "1.0.0"), making.yanked("note", "1.0.0"))
            work = partial(making.append, self.store, self.chain)
        with pytest.raises(Died), dying(statements):
            work()
        self.chain.blocks = was
        assert soak.contents(self.url) == before
        self.crash_and_reopen()
        assert soak.contents(self.url) == before

    def _judged(self, count: int) -> list[Any]:
        jobs = self.store.due(1e12, count)
        known = [job for job in jobs if job.announcement.sha256 in self.chain.packages]
        return [(job.release_id, making.judge(self.chain, job)) for job in known]

    @rule()
    def repeat(self) -> None:
        """The process died after the commit: the reader hands over the same step again."""
        step = self.chain.step(self.chain.blocks[-2].ref) if len(self.chain.blocks) > 1 else None
        if step is not None:
            self.store.append(step, making.heads(step))

    @invariant()
    def the_log_slot_is_that_of_the_chain(self) -> None:
        cursor = self.store.cursor()
        assert cursor is not None
        assert (cursor.block, cursor.log_head.count) == (self.chain.head, len(self.chain.logs))
        assert self.store.ring() == [block.ref for block in self.chain.blocks]

    @invariant()
    def every_changed_answer_is_in_the_feed_of_changes(self) -> None:
        """Readers keep answers until the feed names them; only the finality may differ."""
        feed = read(self.index, read_changes, (self.revision, chr(0x10FFFF)), 1000)
        answers = {
            name: (
                [dataclasses.replace(x, finality="") for x in self.index.releases(name)],
                read(self.index, read_name_state, name),
            )
            for name in NAMES
        }
        self.revision = read(self.index, read_revision)[0]
        changed = {name for name in answers if answers[name] != self.answers.get(name)}
        assert changed <= {x.name for x in feed} or not self.answers
        self.answers = answers

    @invariant()
    def the_tree_that_is_kept_is_the_one_that_is_read_anew(self) -> None:
        with self.index.read() as connection:
            assert self.digests.read(connection) == read_digest(connection)

    def teardown(self) -> None:
        self.chain.mine()  # what is final is said again with every step
        making.append(self.store, self.chain)
        making.fetch(self.store, self.chain)
        url = with_tables(self.home / "rebuilt.db")
        rebuilt = Store.open(url, making.DEPLOYMENT)
        making.follow(rebuilt, self.chain)
        fresh = Index(url)
        try:
            assert picture(self.index) == picture(fresh)
            assert schema_claims(self.home / "index.db") == schema_claims(self.home / "rebuilt.db")
            assert soak.digest(self.url) == soak.digest(url)
            assert not soak.differences(soak.contents(self.url), soak.contents(url))
        finally:
            fresh.close()
            rebuilt.close()
            self._close()
            shutil.rmtree(self.home)


@pytest.mark.filterwarnings("ignore::hypothesis.errors.NonInteractiveExampleWarning")
class TestIndexing(Indexing.TestCase):  # type: ignore[name-defined,misc,valid-type]
    settings = settings(
        max_examples=25,
        stateful_step_count=20,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
