"""One writer at a time, whatever becomes of it, and many readers beside it."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import make_url

from capdex.errors import CapdexError, Code, Unavailable, UsageError
from capdex_indexer.db import engine as database
from capdex_indexer.db.engine import SessionLost
from capdex_indexer.db.heartbeat import Heartbeat
from capdex_indexer.query.index import Index
from capdex_indexer.store import Store

WRITER = """
import sys
from capdex_indexer.store import Deployment, Store
store = Store.open(sys.argv[1], Deployment(31337, sys.argv[2], 0, bytes.fromhex(sys.argv[3])))
print("open", flush=True)
sys.stdin.read()
"""


def test_a_second_writer_is_turned_away(making: Any, store: Store, database_url: str) -> None:
    with pytest.raises(Unavailable) as refusal:
        Store.open(database_url, making.DEPLOYMENT)
    assert refusal.value.code is Code.DATABASE_LOCKED
    assert "another writer" in refusal.value.message
    assert refusal.value.fix
    store.close()
    Store.open(database_url, making.DEPLOYMENT).close()


def test_a_second_writer_is_turned_away_that_names_the_file_by_a_link(
    making: Any, store: Store, database_url: str, tmp_path: Path
) -> None:
    if not database_url.startswith("sqlite"):
        pytest.skip("a PostgreSQL database has one name")
    link = tmp_path / "link.db"
    link.symlink_to(database_url.removeprefix("sqlite:///"))
    with pytest.raises(Unavailable) as refusal:
        Store.open(f"sqlite:///{link}", making.DEPLOYMENT)
    assert refusal.value.code is Code.DATABASE_LOCKED


def test_a_file_with_a_second_name_is_not_written(
    making: Any, store: Store, database_url: str, tmp_path: Path
) -> None:
    if not database_url.startswith("sqlite"):
        pytest.skip("a PostgreSQL database has one name")
    link = tmp_path / "hard.db"
    link.hardlink_to(database_url.removeprefix("sqlite:///"))
    with pytest.raises(UsageError, match="cannot be opened for writing") as refusal:
        Store.open(f"sqlite:///{link}", making.DEPLOYMENT)
    assert "hard link" in refusal.value.why


def test_a_writer_that_comes_as_another_goes_waits_for_it(
    making: Any, store: Store, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "RELEASE_WAIT_S", 60.0)
    monkeypatch.setattr(time, "sleep", lambda seconds: store.close())
    Store.open(database_url, making.DEPLOYMENT).close()


def test_a_killed_writer_leaves_the_database_free(making: Any, database_url: str) -> None:
    deployment = making.DEPLOYMENT
    command = [sys.executable, "-c", WRITER, database_url]
    command += [deployment.registry, deployment.genesis.hex()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"open\n"
        with pytest.raises(Unavailable):
            Store.open(database_url, deployment)
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait(30)
    # PostgreSQL notices a moment later that nobody is there any more
    for _ in range(1000):
        with contextlib.suppress(Unavailable):
            Store.open(database_url, deployment).close()
            return
    pytest.fail("the lock outlived its writer")


def test_readers_read_while_the_writer_writes(
    making: Any, store: Store, chain: Any, search_index: Index
) -> None:
    chain.publish("note")
    making.append(store, chain)
    answers: list[int] = []
    threads = [
        threading.Thread(target=lambda: answers.append(search_index.status().releases))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    making.fetch(store, chain)
    for thread in threads:
        thread.join()
    assert answers == [1] * 8


def test_a_busy_sqlite_file_is_reported_as_locked(
    making: Any, tmp_path: Path, chain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.01)
    path = tmp_path / "busy.db"
    store = Store.open(f"sqlite:///{path}", making.DEPLOYMENT)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable) as refusal:
            making.append(store, chain)
        assert refusal.value.code is Code.DATABASE_LOCKED
        assert "backup" in refusal.value.fix
        other.execute("ROLLBACK")
    making.append(store, chain)
    store.close()


@pytest.mark.parametrize("fate", ["deleted", "moved", "replaced"])
def test_a_file_that_is_no_longer_in_its_place_is_not_written_to(
    making: Any, tmp_path: Path, chain: Any, fate: str
) -> None:
    path, aside = tmp_path / "index.db", tmp_path / "aside.db"
    url = f"sqlite:///{path}"
    store, index = Store.open(url, making.DEPLOYMENT), Index(url)
    watch = index.watch()
    making.append(store, chain)
    assert index.heartbeat()[0].block_number is not None
    before = watch.token()
    if fate == "replaced":
        Store.open(f"sqlite:///{aside}", making.DEPLOYMENT).close()
        for tail in ("-wal", "-shm"):
            Path(f"{path}{tail}").unlink()
        aside.replace(path)
    else:
        path.unlink() if fate == "deleted" else path.rename(aside)
    for _ in range(2):
        with pytest.raises(SessionLost) as lost:
            store.beat(Heartbeat(0, 0, following=True))
    assert "moved, replaced or deleted" in lost.value.why
    store.close()
    Store.open(url, making.DEPLOYMENT).close()
    assert index.heartbeat()[0].block_number is None  # of the file that is there
    assert watch.token() == watch.token() != before  # so that kept answers are looked at again
    watch.close()
    index.close()


@pytest.fixture
def own_database(postgres_server: str) -> Iterator[tuple[str, psycopg.Connection[Any]]]:
    """The URL of a PostgreSQL database, and an administrator's connection beside it."""
    name = f"test_{uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
        yield postgres_server.replace("/postgres?", f"/{name}?"), admin
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")  # type: ignore[arg-type]


def end_sessions(url: str, admin: psycopg.Connection[Any]) -> None:
    """Cut every connection to a database."""
    name = make_url(url).database
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
    admin.execute(cut, (name,))


@pytest.mark.real
def test_a_writer_whose_session_ends_never_writes_again(
    making: Any, own_database: tuple[str, psycopg.Connection[Any]], chain: Any
) -> None:
    url, admin = own_database
    store = Store.open(url, making.DEPLOYMENT)
    end_sessions(url, admin)
    for _ in range(2):  # not even when nobody else has the lock
        with pytest.raises(Unavailable) as lost:
            making.append(store, chain)
    assert isinstance(lost.value, SessionLost)
    next_one = Store.open(url, making.DEPLOYMENT)
    making.append(next_one, chain)
    with pytest.raises(SessionLost):
        store.beat(Heartbeat(0, 0, following=True))
    store.close()
    with pytest.raises(Unavailable) as locked:
        Store.open(url, making.DEPLOYMENT)
    assert locked.value.code is Code.DATABASE_LOCKED
    next_one.close()


@pytest.mark.real
def test_a_writer_that_falls_silent_loses_its_session(
    making: Any,
    own_database: tuple[str, psycopg.Connection[Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, _ = own_database
    monkeypatch.setattr(database, "SILENCE_S", 1)
    silent = Store.open(url, making.DEPLOYMENT)
    for _ in range(1000):
        with contextlib.suppress(Unavailable):
            Store.open(url, making.DEPLOYMENT).close()
            break
        threading.Event().wait(0.02)
    else:
        pytest.fail("the lock outlived the silence of its writer")
    with pytest.raises(SessionLost):
        silent.beat(Heartbeat(0, 0, following=True))
    silent.close()


def test_a_heartbeat_counts_up_and_changes_nothing_else(
    making: Any, store: Store, search_index: Index, chain: Any
) -> None:
    making.append(store, chain)
    before, none = search_index.heartbeat()
    assert none is None
    state = search_index.status()
    store.beat(Heartbeat(9, 3, following=True))
    store.beat(Heartbeat(10, 4, following=False, code="STALLED", message="a gap"))
    assert search_index.heartbeat() == (
        before,
        Heartbeat(10, 4, False, "STALLED", "a gap", beats=2),
    )
    assert search_index.status() is state  # nothing was counted again


def refused_as_damaged(making: Any, path: Path) -> None:
    for opening in (
        lambda: Store.open(f"sqlite:///{path}", making.DEPLOYMENT),
        lambda: Index(f"sqlite:///{path}").status(),
    ):
        with pytest.raises(UsageError) as refusal:
            opening()
        assert refusal.value.code is Code.UNREADABLE
        assert refusal.value.fix == "restore a backup, or build the index again in another file"


def test_a_file_that_is_no_database_is_refused(making: Any, tmp_path: Path) -> None:
    path = tmp_path / "text.db"
    path.write_text("not a database at all, but long enough to be looked at " * 20, "utf-8")
    refused_as_damaged(making, path)
    assert path.read_text("utf-8").startswith("not a database")


def test_a_damaged_index_is_told_from_a_file_that_cannot_be_opened(
    making: Any, tmp_path: Path
) -> None:
    """To start the node on it, or to change who may read it, mends nothing."""
    path = tmp_path / "index.db"
    Store.open(f"sqlite:///{path}", making.DEPLOYMENT).close()
    with path.open("r+b") as file:  # as a disk that was full or a copy that was cut off leaves it
        file.truncate(path.stat().st_size // 2)
    refused_as_damaged(making, path)


def test_a_path_that_cannot_be_written_is_refused(making: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError) as refusal:
        Store.open(f"sqlite:///{tmp_path}/file/index.db", making.DEPLOYMENT)
    assert refusal.value.code is Code.UNREADABLE


def test_a_directory_is_no_database(making: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        Store.open(f"sqlite:///{tmp_path}", making.DEPLOYMENT)


def test_a_reader_never_makes_the_file_it_misses(tmp_path: Path) -> None:
    path = tmp_path / "missing.db"
    with pytest.raises(CapdexError) as refusal:
        Index(f"sqlite:///{path}").status()
    assert "start the node" in refusal.value.fix
    assert not path.exists()


def test_a_database_without_tables_holds_no_index_yet(database_url: str, tmp_path: Path) -> None:
    (tmp_path / "store.db").touch()
    index = Index(database_url)
    with pytest.raises(Unavailable) as refusal:
        index.status()
    assert refusal.value.code is Code.DATABASE_UNAVAILABLE
    assert "no index yet" in refusal.value.message
    assert "FROM" not in refusal.value.why  # PostgreSQL shows the line of the statement
    index.close()


def test_a_reader_cannot_write(store: Store, search_index: Index) -> None:
    with (
        pytest.raises(CapdexError),
        database.transaction(search_index._engine) as connection,
    ):
        connection.exec_driver_sql("DELETE FROM deployment")
