"""PostgreSQL as operators set it up: what their settings change, and what they must not."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import psycopg
import pytest

from capdex.errors import Code, Unavailable, UsageError
from capdex.uri import CapabilityURI
from capdex_indexer.db import engine
from capdex_indexer.query.index import Index
from capdex_indexer.query.status import read_revision
from tests.indexer.db.pooler import pooling

ON_POSTGRESQL = [pytest.param("postgresql", marks=pytest.mark.real)]


@pytest.mark.parametrize("database_url", ON_POSTGRESQL, indirect=True)
@pytest.mark.parametrize(
    ("setting", "value"), [("standard_conforming_strings", "off"), ("bytea_output", "escape")]
)
def test_bytes_are_stored_as_they_are_whatever_the_server_takes_a_backslash_for(
    database_url: str, making: Any, tmp_path: Path, setting: str, value: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f'ALTER DATABASE "{name}" SET {setting} = {value}')
    chain = making.Chain()
    chain.publish("note")
    making.fill(database_url, chain, tmp_path / "blocks")
    index = Index(database_url)
    try:
        found = index.resolve(CapabilityURI.parse("did:nuwa:cap:note"))
        assert bytes.fromhex(found.sha256) in chain.packages
    finally:
        index.close()


@pytest.mark.parametrize("database_url", ON_POSTGRESQL, indirect=True)
def test_a_reader_of_several_hosts_reads_from_the_one_that_is_written(
    database_url: str, making: Any, tmp_path: Path
) -> None:
    making.fill(database_url, chain := making.Chain(), tmp_path / "blocks")
    first, _, folder = database_url.partition("?host=")
    hosts = f"{first}?host={tmp_path}&host={folder}&target_session_attrs=read-write"
    reader = engine.open_reader(hosts)
    try:
        with engine.transaction(reader) as connection:
            assert read_revision(connection)[1].block_number == chain.head.number
        with pytest.raises(Unavailable), engine.transaction(reader) as connection:
            connection.exec_driver_sql("DELETE FROM release")
    finally:
        reader.dispose()


@pytest.mark.parametrize("database_url", ON_POSTGRESQL, indirect=True)
def test_a_reader_notices_as_soon_as_the_writer_that_its_server_is_cut_off(
    database_url: str, making: Any, tmp_path: Path
) -> None:
    making.fill(database_url, making.Chain(), tmp_path / "blocks")
    writer, _ = engine.open_writer(database_url)
    reader, operator = engine.open_reader(database_url), engine.open_operator(database_url)
    found: list[dict[str, str]] = []
    for opened in (writer, reader, operator):
        with engine.transaction(opened) as connection:
            said = connection.connection.dbapi_connection.info.get_parameters()  # type: ignore[union-attr]
        found.append({k: v for k, v in said.items() if k.startswith(("keepalive", "tcp_user"))})
        opened.dispose()
    assert found[0]["tcp_user_timeout"] == "5000"
    assert found[1:] == [found[0]] * 2


@pytest.fixture
def behind_a_pooler(database_url: str, making: Any, tmp_path: Path) -> Any:
    """`behind_a_pooler(transactions=…)` gives the URL of an index by way of a pooler."""
    making.fill(database_url, making.Chain(), tmp_path / "blocks")
    first, _, folder = database_url.partition("?host=")

    @contextmanager
    def url(*, transactions: bool) -> Iterator[str]:
        with (
            tempfile.TemporaryDirectory(prefix="pool-") as place,
            pooling(Path(folder) / ".s.PGSQL.5432", Path(place), transactions=transactions),
        ):
            yield f"{first}?host={place}"

    return url


@pytest.mark.parametrize("database_url", ON_POSTGRESQL, indirect=True)
def test_a_pooler_that_shares_sessions_is_refused_to_writers_and_readers(
    behind_a_pooler: Any,
) -> None:
    with behind_a_pooler(transactions=True) as url:
        reader = engine.open_reader(url)
        for opened in (reader, engine.open_operator(url), engine.open_writer(url)[0]):
            with (
                pytest.raises(UsageError, match="lets clients share a session") as refusal,
                engine.transaction(opened),
            ):
                pass
            assert refusal.value.code is Code.CONFIG
            opened.dispose()


@pytest.mark.parametrize("database_url", ON_POSTGRESQL, indirect=True)
def test_a_pooler_in_session_mode_is_used_with_the_limits_of_each_statement(
    behind_a_pooler: Any,
) -> None:
    with behind_a_pooler(transactions=False) as url:
        limits = []
        for opened in (engine.open_reader(url), engine.open_writer(url)[0]):
            with engine.transaction(opened) as connection:
                limits.append(connection.exec_driver_sql("SHOW statement_timeout").scalar())
            opened.dispose()
    assert limits == ["10s", "0"]


@pytest.mark.parametrize("database_url", ON_POSTGRESQL, indirect=True)
def test_a_limit_of_the_server_for_statements_ends_no_long_one_of_the_writer(
    database_url: str, making: Any, tmp_path: Path
) -> None:
    making.fill(database_url, making.Chain(), tmp_path / "blocks")
    with psycopg.connect(database_url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f'ALTER DATABASE "{name}" SET statement_timeout = 1000')
    limits = []
    for opened in (engine.open_reader(database_url), engine.open_writer(database_url)[0]):
        with engine.transaction(opened) as connection:
            limits.append(connection.exec_driver_sql("SHOW statement_timeout").scalar())
        opened.dispose()
    assert limits == ["10s", "0"]


@pytest.mark.parametrize("database_url", ON_POSTGRESQL, indirect=True)
def test_a_session_that_the_server_ends_in_a_transaction_is_no_bug_of_capdex(
    database_url: str,
) -> None:
    writer, _ = engine.open_writer(database_url)
    with psycopg.connect(database_url, autocommit=True) as other:

        def lives(process: int) -> bool:
            said = other.execute("SELECT FROM pg_stat_activity WHERE pid = %s", (process,))
            return bool(said.rowcount)

        def pause() -> None:
            with engine.transaction(writer) as connection:
                session: Any = connection.connection.dbapi_connection
                connection.exec_driver_sql("SET idle_in_transaction_session_timeout = '1ms'")
                while lives(session.info.backend_pid):
                    pass
                connection.exec_driver_sql("SELECT 1")

        with pytest.raises(Unavailable) as caught:
            pause()
    writer.dispose()
    assert caught.value.code is Code.DATABASE_UNAVAILABLE
    assert caught.value.why == "terminating connection due to idle-in-transaction timeout"


@pytest.mark.parametrize("database_url", ON_POSTGRESQL, indirect=True)
def test_a_reader_looks_where_the_options_of_its_url_say(
    database_url: str, making: Any, tmp_path: Path
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA ours")
    url = f"{database_url}&options=-csearch_path%3Dours"
    chain = making.Chain()
    chain.publish("note")
    making.fill(url, chain, tmp_path / "blocks")
    index = Index(url)
    try:
        assert index.resolve(CapabilityURI.parse("did:nuwa:cap:note")).semver == "1.0.0"
    finally:
        index.close()


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("sslmodee=require", 'invalid connection option "sslmodee"'),
        ("sslmode=required", 'connection is bad: invalid sslmode value: "required"'),
    ],
)
def test_a_misspelt_option_of_a_url_is_a_mistake_of_the_url(option: str, why: str) -> None:
    with pytest.raises(UsageError) as refused:
        Index(f"postgresql://127.0.0.1:1/x?{option}").status()
    assert (refused.value.code, refused.value.why) == (Code.CONFIG, why)


def test_no_password_of_a_url_is_in_an_error() -> None:
    url = (
        "postgresql://me:s3cret1@127.0.0.1:1/x?password=s3cret2&sslpassword=s3cret3&sslmode=prefer"
    )
    with pytest.raises(Unavailable) as refused:
        Index(url).status()
    assert "me:***@127.0.0.1:1/x?sslmode=prefer" in refused.value.message
    assert "s3cret" not in refused.value.line


@pytest.mark.parametrize("database_url", ON_POSTGRESQL, indirect=True)
def test_a_database_that_does_not_exist_is_to_be_created(database_url: str) -> None:
    with pytest.raises(Unavailable) as refused:
        Index(database_url.replace("/test_", "/no_test_")).status()
    assert "is unavailable" in refused.value.message
    assert "createdb --encoding UTF8" in refused.value.fix


def test_a_certificate_that_does_not_exist_is_not_called_a_missing_index(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def agree() -> None:
            client, _ = server.accept()
            with client:
                client.recv(1000)  # the request for TLS
                client.sendall(b"S")
                client.recv(1000)

        agreeing = Thread(target=agree)
        agreeing.start()
        options = f"sslmode=verify-full&sslrootcert={tmp_path}/ca.crt&gssencmode=disable"
        with pytest.raises(Unavailable) as refused:
            Index(f"postgresql://me@127.0.0.1:{server.getsockname()[1]}/x?{options}").status()
        agreeing.join()
    assert "is unavailable" in refused.value.message
    assert f'root certificate file "{tmp_path}/ca.crt" does not exist' in refused.value.why
    assert refused.value.fix.endswith("or correct the URL")


def test_an_account_without_its_password_is_told_where_the_password_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PGPASSWORD", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def ask() -> None:
            client, _ = server.accept()
            with client:
                client.recv(1000)  # the startup message
                client.sendall(b"R\0\0\0\x08\0\0\0\x03")  # AuthenticationCleartextPassword
                client.recv(1000)

        asking = Thread(target=ask)
        asking.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(Unavailable, match="is unavailable") as refused:
            Index(f"postgresql://reader@{address}/x?sslmode=disable&gssencmode=disable").status()
        asking.join()
    assert "no password supplied" in refused.value.why
    assert refused.value.fix == "put the password of this account into PGPASSWORD, or a pgpass file"
