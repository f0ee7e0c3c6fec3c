"""A thread that keeps the engine of a reader up with the database, and saves it."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Final

import structlog
from sqlalchemy import Connection, func, select

from capdex.errors import CapdexError, Unavailable
from capdex.search.semantic import Encoder
from capdex_indexer.db.models import LISTING
from capdex_indexer.query.changes import CommitWatch
from capdex_indexer.query.search import live
from capdex_indexer.query.search.live import LiveSearch
from capdex_indexer.query.search.mapped_encoder import MappedEncoder
from capdex_indexer.query.search.processes import SaveRequest, SearchProcesses
from capdex_indexer.query.search.snapshots import Snapshots
from capdex_indexer.query.search.state import State

log = structlog.get_logger(part="search")

MANY: Final = 1024  # documents without a vector that helpers encode: one starts in a second
LOOK_S: Final = 0.05  # between two looks for a commit, twice as long after each that found none
REST_S: Final = 0.5  # the longest of those pauses, which a query ends that leaves changes behind
SAVE_S: Final = 60.0  # between two snapshots
RETRY_S: Final = 1.0  # after an error of the database
OTHER_S: Final = 1.0  # between two looks for what another process of the node builds
OTHER_TRIES: Final = 1800
TELL_S: Final = 5.0  # between two lines on how far a build is


class SearchFollower:
    """Follows the writer's commits from `start` to `close`."""

    def __init__(
        self,
        live: LiveSearch,
        read: Callable[[], AbstractContextManager[Connection]],
        watch: CommitWatch,
        snapshots: Snapshots | None = None,
    ) -> None:
        self._live, self._read, self._watch, self._snapshots = live, read, watch, snapshots
        self._stop, self._changed = threading.Event(), threading.Event()
        self._threads = [
            threading.Thread(target=work, name=f"search-{name}", daemon=True)
            for name, work in {"follower": self._run, "encoding": self._encode}.items()
        ]
        self._said: dict[str, str] = {}  # the kind of cause that was logged last, by event
        self._saved: State | None = None
        self._save_at = 0.0
        self._told_at = time.monotonic()

    def start(self) -> None:
        """Begin; queries wait for the first engine from now on."""
        self._live.following = True
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End, and save the newest state."""
        self._stop.set()
        self._changed.set()
        self._live.behind.set()
        for thread in self._threads:
            thread.join()
        self._watch.close()
        if self._snapshots is not None:
            self._save(self._snapshots)
            self._snapshots.close()

    def _run(self) -> None:
        token, pause = None, LOOK_S
        while not self._stop.is_set():
            pause = min(2 * pause, REST_S)
            try:
                if token is None:
                    self._restore()
                newest = self._watch.token()
                if newest != token:
                    with self._read() as connection:
                        self._live.catch_up(connection, self._tell)
                    token, pause = newest, LOOK_S
                    self._changed.set()
                while self._live.merge() and not self._stop.is_set():
                    pass
                self._said.clear()
                if self._snapshots is not None and time.monotonic() >= self._save_at:
                    self._save(self._snapshots)
            except (CapdexError, OSError) as error:
                if self._stop.is_set():
                    break
                self._warn("the search does not follow the index", error)
                self._stop.wait(RETRY_S)
            self._live.behind.wait(pause)
            self._live.behind.clear()

    def _encode(self) -> None:
        """Give vectors to documents, by helpers if many have none."""
        encoder = self._live.encoder
        while encoder is not None and not self._stop.is_set():
            self._changed.wait()
            self._changed.clear()
            try:
                with self._encoder_for(encoder) as chosen:
                    while not self._stop.is_set():
                        if not self._live.encode(self._read, chosen, self._stop.is_set):
                            break
            except (CapdexError, OSError) as error:
                if not self._stop.is_set():
                    self._warn("meanings do not follow", error)
                self._stop.wait(RETRY_S)
                self._changed.set()

    def _warn(self, event: str, error: CapdexError | OSError) -> None:
        """Log a kind of cause that comes again and again once, until the search follows again."""
        why = error.line if isinstance(error, CapdexError) else str(error)
        if self._said.get(event) != (kind := getattr(error, "code", why)):
            self._said[event] = kind
            log.warning(event, why=why)

    def _encoder_for(self, encoder: Encoder) -> AbstractContextManager[Encoder]:
        if isinstance(encoder, MappedEncoder) and self._live.lacks_vectors(MANY):
            return encoder.beside()
        return nullcontext(encoder)

    def _restore(self) -> None:
        """Read what was saved. What many packages lack, a helper builds and saves before.

        So the processes of a node build it once and share one copy of it, and none of them keeps
        the memory that building takes.
        """
        kept = self._snapshots
        if kept is None or self._live.state is not None or self._load(kept):
            return
        with self._read() as connection:
            listed = connection.execute(select(func.count()).select_from(LISTING)).scalar_one()
        if listed < live.MANY:
            return
        try:
            for _ in range(OTHER_TRIES):
                if kept.lock():
                    break
                self._stop.wait(OTHER_S)
                if self._stop.is_set() or self._load(kept):  # another process built it
                    return
            else:
                return
            with SearchProcesses(1) as helpers:
                helpers.ask(SaveRequest(self._live.database, str(kept.directory)), self._tell)
        except (CapdexError, OSError) as error:
            if not self._stop.is_set():
                log.warning("the search is built in this process", why=str(error))
        else:
            self._load(kept)

    def _load(self, kept: Snapshots) -> bool:
        try:
            with self._read() as connection:
                return self._live.restore(connection, kept.load)
        except (CapdexError, OSError) as error:
            self._warn("the saved search is not used", error)
            return False

    def _save(self, snapshots: Snapshots) -> None:
        state = self._live.state
        self._save_at = time.monotonic() + SAVE_S
        with suppress(OSError, AttributeError):  # glibc alone keeps what threads have freed
            ctypes.CDLL(None).malloc_trim(0)
        saved = self._saved
        if state is None or (
            saved and state.engine is saved.engine and state.triggers is saved.triggers
        ):
            return
        try:
            if snapshots.lock():
                snapshots.save(state)
            self._saved = state
        except OSError as error:
            log.warning("the search is not saved", why=str(error))

    def _tell(self, done: int, total: int) -> None:
        self._live.done = done, total
        if self._stop.is_set():
            raise Unavailable("the reader is being closed")
        if time.monotonic() - self._told_at >= TELL_S:
            self._told_at = time.monotonic()
            log.info("building the search", packages=done, of=total)
