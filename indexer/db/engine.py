"""Opening the database of the index: SQLite in WAL mode or PostgreSQL, one writer, many readers.

Every fault of a driver leaves here as one of capdex's errors (`indexer.db.errors`), and every
transaction of a reader sees one state of the index.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import EISDIR
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout
from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError

from capdex.errors import Code, Unavailable, UsageError
from indexer.db.errors import locked, translated_errors

BUSY_TIMEOUT_S: Final = 5  # longer than any transaction of ours takes
CONNECT_TIMEOUT_S: Final = 5
STATEMENT_TIMEOUT_S: Final = 10  # a reader's answer is worth nothing later (limits, MCP handler)
READERS: Final = 8  # connections a reading process keeps; more than its threads use at once
# PostgreSQL frees the lock of a writer that is silent for three heartbeats; a standby, which looks
# every second, has then taken over within 10 s.
SILENCE_S: Final = 6
LEAVING_S: Final = 1.0  # the writer before may be about to go; PostgreSQL sees it a moment late
_KEEPALIVE: Final = {  # notice a server that is gone without a word, in seconds
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 5000,
}
# A backfill is a fifth faster by these than by SQLite's own 4 KiB, 1000 pages and 2 MB. Only a new
# file takes the size of its pages.
_WRITER: Final = (
    *("page_size = 8192", "journal_mode = WAL"),
    *("wal_autocheckpoint = 4000", "cache_size = -16000"),  # pages; KiB if below 0
)
# Any two capdex writers of one PostgreSQL database ask for the same advisory lock.
_LOCK_KEY: Final = int.from_bytes(hashlib.sha256(b"capdex index writer").digest()[:8], "big") >> 1


class SessionLost(Unavailable):
    """The session that held the writer's lock has ended: another may write now."""


def parse_url(text: str) -> URL:
    """Read `sqlite:///PATH` or `postgresql://…`; raises UsageError for anything else."""
    fix = "write sqlite:///index.db or postgresql://user@host/database"
    try:
        url = make_url(text)
        backend = url.get_backend_name()
    except (ArgumentError, ValueError):
        raise UsageError("the database URL cannot be read", code=Code.CONFIG, fix=fix) from None
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
    """The engine of the one writer, and its lock file where the database is a file.

    Its single connection writes; on PostgreSQL that one session holds the writer's advisory lock.
    There is never a second: whoever loses the session raises SessionLost from then on, so that it
    cannot write beside the next writer, nor after it by what it knew before. Raises Unavailable
    DATABASE_LOCKED when another writer is there, UsageError when the file cannot be had.
    """
    url = parse_url(text)
    if url.get_backend_name() == "sqlite":
        lock = _lock_file(Path(str(url.database)))
        engine = create_engine(
            url, pool_size=1, max_overflow=0, connect_args={"timeout": BUSY_TIMEOUT_S}
        )
        _prepare_sqlite(engine, begin="BEGIN IMMEDIATE", pragmas=_WRITER)
        return engine, lock
    engine = create_engine(
        url,
        pool_size=1,
        max_overflow=0,
        pool_pre_ping=True,
        connect_args={"connect_timeout": CONNECT_TIMEOUT_S, "autocommit": False, **_KEEPALIVE},
    )
    _allow_one_session(engine)
    event.listen(engine, "connect", _take_advisory_lock)
    return engine, None


def bound_idleness(engine: Engine) -> None:
    """Let PostgreSQL end the writer's session once the writer is silent for `SILENCE_S`.

    A process that is stopped, or whose machine is cut off, would else hold the lock for ever; and
    a lock of somebody else's is not waited for in silence. For after the tables are up to date:
    that may take its time.
    """
    if engine.dialect.name == "postgresql":
        with transaction(engine) as connection:
            for name in ("idle_session_timeout", "idle_in_transaction_session_timeout"):
                connection.exec_driver_sql(f"SET {name} = '{SILENCE_S}s'")
            connection.exec_driver_sql(f"SET lock_timeout = '{BUSY_TIMEOUT_S}s'")


def open_reader(text: str) -> Engine:
    """An engine that only reads; each transaction sees one state of the index."""
    url = parse_url(text)
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, creator=_existing_file(url), pool_size=READERS, pool_timeout=5)
        _prepare_sqlite(engine, begin="BEGIN", pragmas=("query_only = ON",))
        return engine
    return create_engine(
        url,
        pool_size=READERS,
        pool_timeout=5,
        pool_pre_ping=True,
        isolation_level="REPEATABLE READ",
        connect_args={
            "connect_timeout": CONNECT_TIMEOUT_S,
            "options": f"-c statement_timeout={STATEMENT_TIMEOUT_S}s "
            "-c default_transaction_read_only=on",
        },
    )


def open_operator(text: str) -> Engine:
    """An engine for short transactions beside the writer, who keeps its lock."""
    url = parse_url(text)
    if url.get_backend_name() == "sqlite":
        engine = create_engine(url, creator=_existing_file(url), pool_size=1, max_overflow=0)
        _prepare_sqlite(engine, begin="BEGIN IMMEDIATE", pragmas=())
        return engine
    return create_engine(
        url,
        pool_size=1,
        max_overflow=0,
        connect_args={
            "connect_timeout": CONNECT_TIMEOUT_S,
            "options": f"-c statement_timeout={STATEMENT_TIMEOUT_S}s",
        },
    )


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """One transaction: committed at the end, rolled back by any error."""
    with translated_errors(engine), engine.begin() as connection:
        yield connection


def _lock_file(path: Path) -> FileLock:
    lock = FileLock(f"{path}.lock", timeout=0, thread_local=False)
    try:
        if path.is_dir():
            raise IsADirectoryError(EISDIR, "it is a directory")
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(LEAVING_S, LEAVING_S / 20)
    except Timeout:
        raise locked(str(path)) from None
    except OSError as error:
        raise UsageError(
            f"{path} cannot be opened for writing",
            code=Code.UNREADABLE,
            why=error.strerror or str(error),
            fix="name a directory that this account may write to",
        ) from None
    return lock


def _existing_file(url: URL) -> Callable[[], sqlite3.Connection]:
    path = Path(str(url.database)).absolute().as_uri()

    def connect() -> sqlite3.Connection:
        # mode=rw: never create an empty file where the index was expected to be
        return sqlite3.connect(
            f"{path}?mode=rw", uri=True, timeout=BUSY_TIMEOUT_S, check_same_thread=False
        )

    return connect


def _prepare_sqlite(engine: Engine, *, begin: str, pragmas: tuple[str, ...]) -> None:
    """Let us say when a transaction begins (pysqlite would not for reads or schema changes)."""

    def on_connect(connection: Any, _: Any) -> None:
        connection.isolation_level = None
        for pragma in (*pragmas, "synchronous = NORMAL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")

    event.listen(engine, "connect", on_connect)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))


def _allow_one_session(engine: Engine) -> None:
    begun = False

    def on_connect(*_: Any) -> None:
        if begun:
            raise SessionLost(
                "the writer's session has ended",
                Code.DATABASE_UNAVAILABLE,
                why="PostgreSQL was restarted, ended it, or could not be reached",
                fix="nothing: the node takes its seat again, or stands by",
            )

    def connected(*_: Any) -> None:
        nonlocal begun
        begun = True

    event.listen(engine, "do_connect", on_connect)
    event.listen(engine, "connect", connected)


def _take_advisory_lock(connection: Any, _: Any) -> None:
    until = time.monotonic() + LEAVING_S
    while not _has_advisory_lock(connection):
        if time.monotonic() > until:
            connection.close()
            raise locked("the PostgreSQL database")
        time.sleep(LEAVING_S / 20)


def _has_advisory_lock(connection: Any) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK_KEY,))
        held = bool(cursor.fetchone()[0])
    connection.commit()  # the lock is the session's; it outlives this transaction
    return held
