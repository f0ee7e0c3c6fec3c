"""Opening the database of the index: SQLite in WAL mode or PostgreSQL, one writer, many readers.

Every transaction of a reader sees one state of the index.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout
from sqlalchemy import Connection, Engine, create_engine, event, exc, make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError

from capdex.errors import Code, Unavailable, UsageError
from capdex.net.files import unusable
from capdex_indexer.db.driver_errors import locked, translated_errors
from capdex_indexer.db.revision import check_revision

BUSY_TIMEOUT_S: Final = 5  # longer than any transaction of ours takes
CONNECT_TIMEOUT_S: Final = 5
STATEMENT_TIMEOUT_S: Final = 10  # of a reader; an MCP call ends after 10 s, too
READERS: Final = 8  # connections a reading process keeps; more than its threads use at once
# PostgreSQL frees the lock of a writer that is silent for three heartbeats; a standby, which looks
# every second, has then taken over within 10 s.
SILENCE_S: Final = 6
RELEASE_WAIT_S: Final = 1.0  # for a writer that just ended; PostgreSQL notices it a moment late
_KEEPALIVE: Final = {  # notice a server that no longer responds; seconds, the last in ms
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 5000,
}
# A backfill is a fifth faster with these than with SQLite's defaults of 4 KiB, 1000 pages and 2 MB.
# The page size applies to new files only.
_WRITER: Final = (
    *("page_size = 8192", "journal_mode = WAL"),
    *("wal_autocheckpoint = 4000", "cache_size = -16000"),  # pages; KiB if below 0
)
# The advisory lock of the writer of a PostgreSQL database.
_LOCK_KEY: Final = int.from_bytes(hashlib.sha256(b"capdex index writer").digest()[:8], "big") >> 1


class SessionLost(Unavailable):
    """The session that held the writer's lock has ended, so another process may write now."""


def parse_url(text: str) -> URL:
    """Read `sqlite:///PATH` or `postgresql://…`; raises UsageError for anything else."""
    fix = "write sqlite:///index.db or postgresql://user@host/database"
    try:
        url = make_url(text)
        backend = url.get_backend_name()
    except (ArgumentError, ValueError):
        raise UsageError("the database URL cannot be read", code=Code.CONFIG, fix=fix) from None
    if "@" in (url.host or ""):  # the rest of a password, which an error would show
        why = "a password has a sign that ends it in a URL"
        fix = "write @ as %40, and / : # ? likewise; or put the password into PGPASSWORD"
        raise UsageError("the database URL cannot be read", code=Code.CONFIG, why=why, fix=fix)
    if backend in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        why = f"its scheme is {backend[:40]!r}"
        raise UsageError("not a database capdex can use", code=Code.CONFIG, why=why, fix=fix)
    if url.database in (None, "", ":memory:"):
        why = "an index in memory could have no readers and would be lost"
        raise UsageError("the SQLite URL names no file", code=Code.CONFIG, why=why, fix=fix)
    return url.set(drivername="sqlite+pysqlite", query={})


def open_writer(text: str) -> tuple[Engine, FileLock | None]:
    """Return the engine of the one writer, and its lock file if the database is a file.

    The engine has a single connection; on PostgreSQL that session holds the writer's advisory lock.
    It never reconnects: after the session ends, or with another SQLite file in its place, it raises
    SessionLost, so it cannot write beside the next writer, or overwrite its work. Raises
    Unavailable DATABASE_LOCKED if there is another writer, UsageError if the file cannot be opened.
    """
    url = parse_url(text)
    if url.get_backend_name() == "sqlite":
        lock = _lock_file(Path(str(url.database)))
        engine = create_engine(
            url, pool_size=1, max_overflow=0, connect_args={"timeout": BUSY_TIMEOUT_S}
        )
        _prepare_sqlite(engine, begin="BEGIN IMMEDIATE", pragmas=_WRITER)
        _allow_one_session(engine, "its file was moved, replaced or deleted")
        return engine, lock
    engine = _postgresql(url, 0, pool_size=1, max_overflow=0, pool_pre_ping=True)
    _allow_one_session(engine, "PostgreSQL was restarted, ended it, or could not be reached")
    event.listen(engine, "connect", _take_advisory_lock)
    return engine, None


def bound_idleness(engine: Engine) -> None:
    """Let PostgreSQL end the writer's session after `SILENCE_S` without a statement.

    Otherwise a process that is suspended or cut off would keep the writer's lock. Also bounds the
    wait for locks of other sessions, which would count as silence. Call it when the store
    is ready, since judging all packages anew may take longer.
    """
    if engine.dialect.name == "postgresql":
        with transaction(engine) as connection:
            for name in ("idle_session_timeout", "idle_in_transaction_session_timeout"):
                connection.exec_driver_sql(f"SET {name} = '{SILENCE_S}s'")
            connection.exec_driver_sql(f"SET lock_timeout = '{BUSY_TIMEOUT_S}s'")


def open_reader(text: str) -> Engine:
    """Return an engine that only reads; each transaction sees one state of the index."""
    url = parse_url(text)
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, creator=_existing_file(url), pool_size=READERS, pool_timeout=5)
        _prepare_sqlite(engine, begin="BEGIN", pragmas=("query_only = ON",))
    else:
        engine = _postgresql(
            url,
            STATEMENT_TIMEOUT_S,
            pool_size=READERS,
            pool_timeout=5,
            pool_pre_ping=True,
            isolation_level="REPEATABLE READ",
            # Not by an option of the session, which target_session_attrs=read-write would refuse.
            execution_options={"postgresql_readonly": True},
        )
    event.listen(engine, "connect", check_revision)
    return engine


def open_operator(text: str) -> Engine:
    """Return an engine for short transactions of an operator beside the running writer."""
    url = parse_url(text)
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, creator=_existing_file(url), pool_size=1, max_overflow=0)
        _prepare_sqlite(engine, begin="BEGIN IMMEDIATE", pragmas=())
    else:
        engine = _postgresql(url, STATEMENT_TIMEOUT_S, pool_size=1, max_overflow=0)
    event.listen(engine, "connect", check_revision)
    return engine


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """Run a transaction: commit it at the end, roll it back on any error."""
    with translated_errors(engine), engine.begin() as connection:
        yield connection


@contextmanager
def reading(text: str) -> Iterator[Connection]:
    """Open a database, read in one transaction, and close it."""
    engine = open_reader(text)
    try:
        with transaction(engine) as connection:
            yield connection
    finally:
        engine.dispose()


def _postgresql(url: URL, limit_s: int, **attributes: object) -> Engine:
    """Return an engine, each statement of which may take `limit_s` seconds, or any time if 0.

    It holds in place of a limit that the server has for the account or the database.
    """

    # Not by an option of the connection, which poolers refuse.
    def limit(connection: Any, _: Any) -> None:
        connection.execute(f"SET statement_timeout = '{limit_s}s'")
        connection.commit()

    connect_args = {"connect_timeout": CONNECT_TIMEOUT_S, **_KEEPALIVE}
    engine = create_engine(url, connect_args=connect_args, **attributes)
    event.listen(engine, "connect", _prepare_session, insert=True)  # before SQLAlchemy reads text
    event.listen(engine, "connect", limit)
    return engine


def _prepare_session(connection: Any, _: Any) -> None:
    """Refuse another encoding than UTF8, and a session that a pooler shares among clients.

    Also undo a setting with which COPY stores other bytes.
    """
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        connection.close()
        raise UsageError(
            f"the database's encoding is {encoding}; create it with UTF8",
            Code.CONFIG,
            fix="createdb --encoding UTF8 --template template0 NAME",
        )
    if _is_shared(connection):
        connection.close()
        raise UsageError(
            "a pooler before the database lets clients share a session",
            Code.CONFIG,
            why="the lock that keeps a second writer away belongs to a session",
            fix="connect to PostgreSQL itself, or to a pool in session mode",
        )
    connection.execute("SET standard_conforming_strings = on")
    connection.commit()


def _is_shared(connection: Any) -> bool:
    """True if another client gets this one's session between transactions (PgBouncer, Neon …)."""
    own = _process_of(connection)
    if own == connection.info.backend_pid:  # as PostgreSQL itself said; a pooler says another
        return False
    about = connection.info
    with type(connection).connect(about.dsn, password=about.password) as another:
        return own == _process_of(another) or own != _process_of(connection)


def _process_of(connection: Any) -> int:
    (process,) = connection.execute("SELECT pg_backend_pid()").fetchone()
    connection.commit()
    return int(process)


def _lock_file(path: Path) -> FileLock:
    lock = FileLock(f"{path.resolve()}.lock", timeout=0, thread_local=False)
    try:
        if path.is_dir():
            raise OSError(0, "it is a directory")
        if path.exists() and path.stat().st_nlink > 1:  # SQLite keeps a log beside each name
            raise OSError(0, "it has another name, too: a hard link")
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(RELEASE_WAIT_S, RELEASE_WAIT_S / 20)
    except Timeout:
        raise locked(str(path)) from None
    except OSError as error:
        fix = "name a file of a single name, in a directory that this account may write to"
        raise unusable(f"{path} cannot be opened for writing", error, fix) from None
    return lock


def _existing_file(url: URL) -> Callable[[], sqlite3.Connection]:
    # mode=rw: fail for a missing file instead of creating an empty one
    path = f"{Path(str(url.database)).absolute().as_uri()}?mode=rw"

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(path, uri=True, timeout=BUSY_TIMEOUT_S, check_same_thread=False)

    return connect


def _prepare_sqlite(engine: Engine, *, begin: str, pragmas: tuple[str, ...]) -> None:
    """Begin transactions explicitly; pysqlite begins none for reads and schema changes.

    A connection whose file was moved, replaced or deleted is not used again, since SQLite would go
    on with the old file: `in_place` in its record's info tells.
    """
    path = os.fspath(Path(str(engine.url.database)).absolute())

    def file() -> tuple[int, int] | None:
        try:
            status = os.stat(path)  # noqa: PTH116 - before each answer, and Path takes twice as long
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def on_connect(connection: Any, record: Any) -> None:
        connection.isolation_level = None
        for pragma in (*pragmas, "synchronous = NORMAL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")
        opened = file()
        record.info["in_place"] = lambda: file() == opened

    def on_checkout(_: Any, record: Any, __: Any) -> None:
        if not record.info["in_place"]():
            raise exc.DisconnectionError

    event.listen(engine, "connect", on_connect)
    event.listen(engine, "checkout", on_checkout)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))


def _allow_one_session(engine: Engine, why: str) -> None:
    """Raise SessionLost, for the reason `why`, instead of connecting a second time."""
    begun = False

    def on_connect(*_: object) -> None:
        if begun:
            raise SessionLost(
                "the writer's session has ended",
                Code.DATABASE_UNAVAILABLE,
                why=why,
                fix="nothing: the node becomes the writer again, or a standby",
            )

    def connected(*_: object) -> None:
        nonlocal begun
        begun = True

    event.listen(engine, "do_connect", on_connect)
    event.listen(engine, "connect", connected)


def _take_advisory_lock(connection: Any, _: Any) -> None:
    until = time.monotonic() + RELEASE_WAIT_S
    while True:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK_KEY,))
            taken = bool(cursor.fetchone()[0])
        connection.commit()  # the lock belongs to the session and outlives this transaction
        if taken:
            return
        if time.monotonic() > until:
            connection.close()
            raise locked("the PostgreSQL database")
        time.sleep(RELEASE_WAIT_S / 20)
