"""The SQLite database of state: WAL, whole transactions, one error type for each of its failures.

A process that dies leaves the last committed state. `synchronous` is NORMAL: a power cut may take
the last commits with it, but never a part of one.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from filelock import FileLock

from capdex.errors import Code, InvalidInput, Unavailable, UsageError
from capdex.net.files import saying

VERSION: Final = 1
BUSY_S: Final = 5.0
PAGE_BYTES: Final = 4_096
MAX_BYTES: Final = 1024**3  # of the whole file
_TABLES: Final = """
CREATE TABLE origin (place TEXT NOT NULL);
CREATE TABLE collections (
  number INTEGER PRIMARY KEY,
  owner TEXT NOT NULL,
  scope TEXT NOT NULL,
  schema_uri TEXT NOT NULL,
  strategies BLOB,  -- NULL until the package itself was here
  ttl_s REAL,
  visibility TEXT,
  UNIQUE (owner, scope, schema_uri)
);
-- Queries read the merged values alone, so the documents are beside them.
CREATE TABLE objects (
  collection INTEGER NOT NULL,
  id TEXT NOT NULL,
  state INTEGER NOT NULL,  -- 0 live, 1 deleted, 2 erased
  changed REAL NOT NULL,
  value BLOB,
  conflicts BLOB,
  PRIMARY KEY (collection, id)
) WITHOUT ROWID;
CREATE TABLE documents (
  collection INTEGER NOT NULL,
  id TEXT NOT NULL,
  peer INTEGER,  -- NULL: take a new one
  blob BLOB NOT NULL,
  PRIMARY KEY (collection, id)
) WITHOUT ROWID;
"""


class Database:
    """One connection, shared by the threads of a process; several processes share the file."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        with translated(), saying(f"{path} cannot be opened", f"see who owns {path}, and its mode"):
            # SQLite gives its other files the mode of this one.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            # Two that change a new file to WAL do not wait for each other by themselves.
            lock = path.with_name(path.name + ".lock")
            with FileLock(lock, mode=0o600, poll_interval=0.005):
                self._connection = sqlite3.connect(
                    path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
                )
                try:
                    self._prepare(path)
                except BaseException:
                    self._connection.close()
                    raise

    def _prepare(self, path: Path) -> None:
        for pragma in (
            *("journal_mode = WAL", "synchronous = NORMAL", "secure_delete = ON"),
            *(f"page_size = {PAGE_BYTES}", f"max_page_count = {MAX_BYTES // PAGE_BYTES}"),
        ):
            self._connection.execute(f"PRAGMA {pragma}")
        with self.writing() as run:
            version = run("PRAGMA user_version").fetchone()[0]
            if version == 0:
                for statement in _TABLES.split(";"):
                    run(statement)
                run(f"PRAGMA user_version = {VERSION}")
            elif version != VERSION:
                raise UsageError(
                    f"the state is of another version ({version})",
                    Code.CONFIG,
                    fix="use the capdex that wrote it, or move the file away",
                )
            # Two copies of a file must not write under the same peer numbers: a copy takes others.
            place = f"{platform.node()}:{path.stat().st_ino}"
            if run("SELECT place FROM origin").fetchone() != (place,):
                run("DELETE FROM origin")
                run("INSERT INTO origin VALUES (?)", (place,))
                run("UPDATE documents SET peer = NULL")

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """Give a function that runs SQL; all of it sees one state."""
        with self._lock, translated():
            self._connection.execute("BEGIN")
            try:
                yield self._connection.execute
            finally:
                self._connection.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """Give a function that runs SQL, all of which takes effect, or none of it."""
        with self._lock, translated():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection.execute
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def forget(self) -> None:
        """Write the log into the file and empty it, so that what was erased is in neither."""
        with self._lock, translated():
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._connection.close()


@contextmanager
def translated() -> Iterator[None]:
    """Turn SQLite's errors into ours.

    Raises Unavailable DATABASE_LOCKED, InvalidInput TOO_LARGE for a full file or disk, else
    UsageError UNREADABLE.
    """
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise Unavailable(
                "the state is in use",
                Code.DATABASE_LOCKED,
                fix="wait until the other capdex is done, and try again",
            ) from None
        if name.startswith("SQLITE_FULL"):
            raise InvalidInput(
                "there is no room for more state",
                Code.TOO_LARGE,
                why=f"the disk is full, or the state has {MAX_BYTES} bytes",
                fix="run: capdex state purge",
            ) from None
        what, why = "the state cannot be used", str(error)
        fix = "see state.sqlite: its rights, that the disk is not full; if damaged, move it away"
        raise UsageError(what, Code.UNREADABLE, why=why, fix=fix) from None
