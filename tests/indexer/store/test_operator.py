"""What an operator says to a node by its database, beside the writer that runs."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import get_ident
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine, event

from capdex.errors import CapdexError, InvalidInput
from capdex.problems import Reason
from capdex_indexer.query.changes import read_changes
from capdex_indexer.query.index import Index
from capdex_indexer.query.status import read_revision
from capdex_indexer.store import Delay, Store
from capdex_indexer.store.operator import Operator, read_subject

HASH = "0x" + "ab" * 32


def test_the_newest_accepted_block_counts(store: Store, database_url: str) -> None:
    assert store.accepted() is None
    with Operator(database_url) as operator:
        operator.accept("0x" + "11" * 32)
        operator.accept(HASH.upper().replace("0X", "0x"))
    assert store.accepted() == bytes.fromhex(HASH[2:])


@pytest.mark.parametrize("bad", ["", "0x", HASH[:-1], HASH + "0", HASH[2:], "0x" + "g" * 64, "12"])
def test_what_is_no_block_hash_is_refused(store: Store, database_url: str, bad: str) -> None:
    with Operator(database_url) as operator, pytest.raises(InvalidInput) as refusal:
        operator.accept(bad)
    assert "log" in refusal.value.fix
    assert store.accepted() is None


def test_parked_releases_are_tried_again_of_one_name_or_all(
    making: Any, store: Store, chain: Any, database_url: str
) -> None:
    for name in ("one", "two"):
        chain.publish(name)
    making.append(store, chain)
    for job in store.due(1.0, 9):
        store.delay_many([Delay(job.release_id, "nobody has it", reason=Reason.UNAVAILABLE)])
    with Operator(database_url) as operator:
        assert operator.rearm("two") == 1
        assert [x.announcement.cap_uri for x in store.due(1.0, 9)] == ["did:nuwa:cap:two@1.0.0"]
        assert operator.rearm() == 1
        assert operator.rearm() == 0
        with pytest.raises(InvalidInput):
            operator.rearm("No Name")
    assert len(store.due(1.0, 9)) == 2


def test_readers_know_that_something_was_said(
    making: Any, store: Store, chain: Any, database_url: str, search_index: Index
) -> None:
    making.append(store, chain)
    before = search_index.status()
    with Operator(database_url) as operator:
        operator.deny("evil-weather", "it lies")
        assert [x.subject for x in operator.denials()] == ["evil-weather"]
        assert operator.undeny("evil-weather")
        assert not operator.undeny("evil-weather")
    assert search_index.status() is not before


def test_readers_learn_of_names_that_the_writer_changes_while_an_operator_commits(
    making: Any, store: Store, chain: Any, database_url: str, search_index: Index
) -> None:
    if database_url.startswith("sqlite"):
        pytest.skip("on SQLite one transaction writes at a time")
    for name in ("one", "two"):
        chain.publish(name)
    making.append(store, chain)
    one, two = store.due(1.0, 9)
    store.delay_many([Delay(two.release_id, "nobody has it", reason=Reason.UNAVAILABLE)])
    writer, seen = get_ident(), list[int]()
    rearmed = list[Future[int]]()

    def commit_between(*given: Any) -> None:
        if get_ident() != writer or rearmed or not given[2].startswith("UPDATE deployment"):
            return
        rearmed.append(thread.submit(operator.rearm, "two"))
        while not rearmed[0].done() and not waits_for_a_lock(server):
            pass
        with search_index.read() as connection:
            seen.append(read_revision(connection)[0])

    event.listen(Engine, "before_cursor_execute", commit_between)
    try:
        with (
            Operator(database_url) as operator,
            ThreadPoolExecutor(1) as thread,
            psycopg.connect(database_url, autocommit=True) as server,
        ):
            store.delay_many([Delay(one.release_id, "not yet", at=9.0)])
            assert rearmed[0].result() == 1
    finally:
        event.remove(Engine, "before_cursor_execute", commit_between)
    with search_index.read() as connection:
        changed = read_changes(connection, (seen[0], "~"), 9)
    assert "one" in {x.name for x in changed}


def waits_for_a_lock(server: psycopg.Connection) -> bool:
    """Return True if a session of this database waits for another one."""
    found = server.execute(
        "SELECT 1 FROM pg_stat_activity "
        "WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    return found.fetchone() is not None


def test_nothing_is_said_to_a_database_without_an_index(tmp_path: Path) -> None:
    path = tmp_path / "missing.db"
    with Operator(f"sqlite:///{path}") as operator, pytest.raises(CapdexError) as refusal:
        operator.accept(HASH)
    assert "start the node" in refusal.value.fix
    assert not path.exists()


@given(st.text())
def test_a_subject_is_a_cid_a_name_or_refused(text: str) -> None:
    try:
        subject = read_subject(text)
    except InvalidInput:
        return
    assert read_subject(subject) == subject
