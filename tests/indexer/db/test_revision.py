"""The tables are made once, and fixed; databases of other versions are refused."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import Engine, inspect, text

from capdex.errors import Code, UsageError
from capdex.problems import Reason
from capdex_indexer.db.engine import open_operator, open_reader, open_writer, transaction
from capdex_indexer.db.revision import REVISION, create_tables
from capdex_indexer.query.index import Index
from capdex_indexer.store import Delay, Operator, Store
from capdex_indexer.store import deployment as deployments
from capdex_indexer.store import store as stores


def test_tables_that_are_there_are_left_as_they_are(making: Any, database_url: str) -> None:
    Store.open(database_url, making.DEPLOYMENT).close()
    change(database_url, "CREATE TABLE seen (revision TEXT)")
    engine, lock = open_writer(database_url)
    with transaction(engine) as connection:
        create_tables(connection)
        found = connection.execute(text("SELECT version_num FROM alembic_version")).scalars()
        assert found.all() == [REVISION]
    engine.dispose()
    if lock is not None:
        lock.release()


def test_partial_indexes_have_their_conditions(making: Any, database_url: str) -> None:
    Store.open(database_url, making.DEPLOYMENT).close()
    engine = open_reader(database_url)
    with transaction(engine) as connection:
        where = f"{connection.dialect.name}_where"
        indexes = inspect(connection).get_indexes("release")
    engine.dispose()
    partial = {str(x["name"]) for x in indexes if str(x["dialect_options"].get(where, ""))}
    assert partial >= {"uq_release_standing", "ix_release_queued", "ix_release_new"}


def test_a_change_of_the_tables_comes_with_a_new_revision(making: Any, tmp_path: Path) -> None:
    """Our rule: the tables of a revision are fixed. Update the digest with the revision only."""
    path = tmp_path / "index.db"
    Store.open(f"sqlite:///{path}", making.DEPLOYMENT).close()
    with closing(sqlite3.connect(path)) as connection:
        (revision,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql NOT NULL")
        tables = sorted(" ".join(sql.split()) for (sql,) in rows)
    digest = hashlib.sha256("\n".join(tables).encode()).hexdigest()[:16]
    assert {revision: digest} == {"0010": "939fd6adec399932"}


def change(url: str, statement: str) -> None:
    """Run one statement on a database, as its writer."""
    engine, lock = open_writer(url)
    with transaction(engine) as connection:
        connection.execute(text(statement))
    engine.dispose()
    if lock is not None:
        lock.release()


@pytest.mark.parametrize("revision", ["0001", "0006", "9999"])
def test_a_database_of_another_revision_is_refused_and_left_alone(
    making: Any, database_url: str, revision: str
) -> None:
    Store.open(database_url, making.DEPLOYMENT).close()
    change(database_url, f"UPDATE alembic_version SET version_num = '{revision}'")  # noqa: S608
    with pytest.raises(UsageError, match="another version of capdex") as refusal:
        Store.open(database_url, making.DEPLOYMENT)
    assert refusal.value.code is Code.FOREIGN_DATABASE
    assert "index into a new database" in refusal.value.fix
    assert refusal.value.why == f"its tables have revision {revision}, not {REVISION}"
    engine, lock = open_writer(database_url)
    with transaction(engine) as connection:
        found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    assert found == revision
    engine.dispose()
    if lock is not None:
        lock.release()


def releases(url: str) -> list[Any]:
    """Every release of the names that the tests publish."""
    index = Index(url)
    try:
        return [x for name in ("note", "memo", "lie") for x in index.releases(name)]
    finally:
        index.close()


def index_by_older_rules(
    making: Any, chain: Any, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fill an index, then raise the version of the rules by which packages are judged."""
    store = Store.open(url, making.DEPLOYMENT)
    making.follow(store, chain)
    store.close()
    for module in (stores, deployments):
        monkeypatch.setattr(module, "RULES_VERSION", module.RULES_VERSION + 1)


def test_a_change_of_the_rules_has_everything_judged_again_once(
    making: Any, chain: Any, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain.publish("note")
    chain.mine(chain.release("memo"), making.published("lie", cid="nonsense"))
    index_by_older_rules(making, chain, database_url, monkeypatch)
    for due in (2, 0):
        store = Store.open(database_url, making.DEPLOYMENT)
        assert len(store.due(1e12, 10)) == due
        assert releases(database_url)[0].verdict == "verified"  # meanwhile, too
        making.fetch(store, chain)
        store.close()
    assert releases(database_url)[0].verdict == "verified"


def test_what_cannot_be_judged_again_keeps_its_verdict_and_leaves_the_queue(
    making: Any, chain: Any, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain.publish("note")
    chain.publish("memo", bound=False)
    index_by_older_rules(making, chain, database_url, monkeypatch)
    store = Store.open(database_url, making.DEPLOYMENT)
    try:
        jobs = store.due(1e12, 10)
        store.delay_many([Delay(job.release_id, "not found", at=5.0) for job in jobs])
        assert store.due(4.0, 10) == []
        unavailable = Reason.UNAVAILABLE
        store.delay_many([Delay(job.release_id, "gone", reason=unavailable) for job in jobs])
        assert (len(jobs), store.due(1e12, 10)) == (2, [])
        note, memo = releases(database_url)
        assert (note.verdict, note.reason, note.message) == ("verified", None, "")
        assert (memo.verdict, memo.reason) == ("signed", Reason.NOT_BOUND)
        assert "gone" not in memo.message
        assert {note.availability, memo.availability} == {"available"}
        with Operator(database_url) as operator:
            assert operator.rearm() == 0
    finally:
        store.close()


@pytest.mark.parametrize("column", ["decoder_version", "rules_version"])
def test_a_database_of_newer_rules_is_refused(making: Any, database_url: str, column: str) -> None:
    Store.open(database_url, making.DEPLOYMENT).close()
    change(database_url, f"UPDATE deployment SET {column} = 9999")  # noqa: S608 - ours
    with pytest.raises(UsageError) as refusal:
        Store.open(database_url, making.DEPLOYMENT)
    assert refusal.value.code is Code.FOREIGN_DATABASE
    assert "another version of capdex" in refusal.value.message


def test_a_database_of_another_program_is_left_alone(making: Any, database_url: str) -> None:
    change(database_url, "CREATE TABLE release (title TEXT)")
    with pytest.raises(UsageError) as refusal:
        Store.open(database_url, making.DEPLOYMENT)
    assert refusal.value.code is Code.FOREIGN_DATABASE
    engine, lock = open_writer(database_url)
    with transaction(engine) as connection:
        assert not connection.dialect.has_table(connection, "deployment")
    engine.dispose()
    if lock is not None:
        lock.release()


@pytest.mark.parametrize("opened", [open_reader, open_operator])
@pytest.mark.parametrize("revision", ["0009", "9999"])
def test_readers_and_operators_of_a_database_of_another_revision_are_told(
    making: Any, database_url: str, revision: str, opened: Callable[[str], Engine]
) -> None:
    Store.open(database_url, making.DEPLOYMENT).close()
    change(database_url, f"UPDATE alembic_version SET version_num = '{revision}'")  # noqa: S608
    engine = opened(database_url)
    with pytest.raises(UsageError) as refusal, transaction(engine):
        pass
    assert refusal.value.code is Code.FOREIGN_DATABASE
    assert revision in refusal.value.why
    assert "index into a new database" in refusal.value.fix
    engine.dispose()


@pytest.mark.real
@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_postgresql_database_that_is_not_utf8_is_refused_by_its_encoding(
    making: Any, postgres_server: str, encoding: str
) -> None:
    name = f"test_{uuid4().hex}"
    url = postgres_server.replace("/postgres?", f"/{name}?")
    with psycopg.connect(postgres_server, autocommit=True) as admin:
        made = f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'"
        admin.execute(f"{made} TEMPLATE template0")  # type: ignore[arg-type]
    try:
        with pytest.raises(UsageError) as writer:
            Store.open(url, making.DEPLOYMENT)
        reader = open_reader(url)
        with pytest.raises(UsageError) as reading, transaction(reader):
            pass
        reader.dispose()
    finally:
        with psycopg.connect(postgres_server, autocommit=True) as admin:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")  # type: ignore[arg-type]
    told = f"the database's encoding is {encoding}; create it with UTF8"
    assert (writer.value.message, reading.value.message) == (told, told)
    assert (writer.value.code, writer.value.kind.exit) == (Code.CONFIG, 2)
