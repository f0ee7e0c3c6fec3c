"""The engine of one reader, as new as the database: caught up by queries, or by a follower."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Final

import numpy as np
from sqlalchemy import Connection, select

from capdex.errors import Code, Unavailable
from capdex.manifest.triggers import Trigger
from capdex.routing import Segment, TriggerSet
from capdex.routing import merge as merge_triggers
from capdex.search import Document, Engine, WordSegment, merge
from capdex.search.semantic import Encoder, encode_documents
from capdex_indexer.db.models import DEPLOYMENT, LISTING, NAME_CHANGE, REGISTRY
from capdex_indexer.query.search.copies import read_copies
from capdex_indexer.query.search.documents import (
    FINGERPRINT,
    read_all,
    read_documents,
    read_fingerprint,
)
from capdex_indexer.query.search.state import State

INLINE: Final = 32  # changed names that a query brings in by itself while there is a follower
FIRST_S: Final = 8.0  # how long a query waits for the first engine, or for the first triggers
TURN_S: Final = 0.5  # how long one query waits for a commit that is being brought in

Read = Callable[[], AbstractContextManager[Connection]]  # opens a transaction
Progress = Callable[[int, int], None]  # documents done, and all

_DEPLOYMENT: Final = select(DEPLOYMENT.c.revision, DEPLOYMENT.c.secret).where(
    DEPLOYMENT.c.id == REGISTRY
)
_CHANGED: Final = select(NAME_CHANGE.c.name).order_by(NAME_CHANGE.c.revision)


class LiveSearch:
    """The engine of the listed releases. Any thread may ask for it.

    Without a follower each query brings in what changed. With one (`following`) a query waits for
    the first engine, brings in a few names at most, and waits for others that bring in a few. Of
    the queries during a long change, one waits for TURN_S and the others not at all.
    """

    def __init__(self) -> None:
        self.following = False
        self.behind = threading.Event()  # a query has left names to the follower
        self.encoder: Encoder | None = None  # searches by meaning, too, if there is one
        self._state: State | None = None  # replaced as a whole, so reading it needs no lock
        self._first = threading.Event()
        self._triggers_read = threading.Event()
        self._turn = threading.Lock()
        self._turn_is_long = False
        self._done = (0, 0)

    @property
    def state(self) -> State | None:
        """The newest state; None before the first one."""
        return self._state

    def at(self, connection: Connection) -> State:
        """Return an engine of the state that a transaction sees, or of a later one.

        With a follower it is of an earlier state while many names are being brought in. Raises
        Unavailable PENDING while the follower takes longer than FIRST_S to build the first one.
        """
        revision, _ = _read(connection)
        if self.following and not self._first.wait(FIRST_S):
            done, total = self._done
            raise Unavailable(
                "the search index is being built",
                Code.PENDING,
                why=f"{done} of {total} packages are in it",
                fix="try again in a few seconds",
            )
        state = self._state
        if state is not None and state.revision >= revision:
            return state
        if state is None or not self.following:
            return self.catch_up(connection)
        self._turn_is_long = not self._turn.acquire(timeout=0 if self._turn_is_long else TURN_S)
        if not self._turn_is_long:
            try:
                state = self._advance(connection, self._state or state, revision, INLINE)
            finally:
                self._turn.release()
        if state.revision < revision:
            self.behind.set()
        return state

    def catch_up(self, connection: Connection, progress: Progress = lambda *_: None) -> State:
        """Bring in all that changed up to the state that a transaction sees; build at first."""
        with self._turn:
            revision, key = _read(connection)
            state = self._state
            if state is None or state.key != key:  # none yet, or the database is another one
                state = self._build(connection, revision, key, progress)
            else:
                state = self._advance(connection, state, revision)
        while not self.following and self.merge():
            pass
        return state

    def restore(self, connection: Connection, load: Callable[[bytes], State | None]) -> bool:
        """Take the state that `load` returns for the secret of this database, and catch up.

        Returns False, and takes nothing, unless it then has exactly the listed releases.
        """
        with self._turn:
            revision, key = _read(connection)
            state = load(key)
            if state is None or state.revision > revision:
                return False
            identity = self.encoder.identity if self.encoder else None
            if state.encoder != identity:
                state = replace(state, engine=state.engine.without_vectors(), encoder=identity)
            state = self._advance(connection, state, revision)
            engine, triggers = state.engine, state.triggers
            if _fingerprint(engine) != read_fingerprint(connection) & _BITS or (
                triggers is not None and triggers.packages != engine.packages
            ):
                self._state = None
                return False
            self._state = state
            self._first.set()
            if triggers is not None:
                self._triggers_read.set()
            return True

    def merge(self) -> bool:
        """Merge some segments, beside queries and changes; returns False if they are few enough."""
        if (state := self._state) is None:
            return False
        sources = state.engine.mergeable()
        if not sources:
            return self._merge_triggers(state)
        segment = merge(sources)
        with self._turn:
            assert self._state is not None  # noqa: S101 - it was not, and none takes it away
            engine = self._state.engine.merged(sources, segment)
            self._state = replace(self._state, engine=engine)
        return True

    def _merge_triggers(self, state: State) -> bool:
        sources = state.triggers.mergeable() if state.triggers else []
        if not sources:
            return False
        segment = merge_triggers(sources)
        with self._turn:
            if self._state is not None and self._state.triggers is not None:
                triggers = self._state.triggers.merged(sources, segment)
                self._state = replace(self._state, triggers=triggers)
        return True

    def triggers_at(self, connection: Connection) -> State:
        """Return what `at` returns, with triggers.

        Raises Unavailable PENDING while a follower takes longer than FIRST_S to read them.
        """
        state = self.at(connection)
        if state.triggers is None:
            if self.following:
                self._triggers_read.wait(FIRST_S)
            else:
                self.read_triggers(lambda: nullcontext(connection))
            state = self.at(connection)
        if state.triggers is None:
            raise Unavailable(
                "the triggers of the index are being read",
                Code.PENDING,
                fix="try again in a few seconds",
            )
        return state

    def read_triggers(self, read: Read) -> bool:
        """Read the triggers of all packages beside queries and changes; False if they are known."""
        state = self._state
        if state is None or state.triggers is not None:
            return False
        with read() as connection:
            begun, _ = _read(connection)
            pieces = [
                (Segment.build(map(_triggers, documents)), None)
                for documents in read_all(connection)
            ]
        triggers = TriggerSet([(merge_triggers(pieces), None)])
        with read() as connection, self._turn:
            state = self._advance(connection, self._state or state, _read(connection)[0])
            changed = _CHANGED.where(NAME_CHANGE.c.revision > begun)
            names = connection.execute(changed).scalars().all()
            documents = map(_triggers, read_documents(connection, names))
            triggers = triggers.without(names).with_packages(documents)
            self._state = replace(state, triggers=triggers)
            self._triggers_read.set()
        return True

    def encode(self, read: Read, encoder: Encoder, most: int) -> bool:
        """Give vectors to some documents that have none; returns False if no document lacks one.

        Texts are read and encoded beside queries and changes.
        """
        state = self._state
        names = state.engine.unencoded(most) if state else []
        if not names:
            return False
        with read() as connection:
            documents = list(read_documents(connection, names))
        vectors = encode_documents(encoder, documents)
        with self._turn:
            assert self._state is not None  # noqa: S101 - it was not, and none takes it away
            engine = self._state.engine
            current = {
                x.name: vectors[x.name]
                for x in documents
                if engine.number(x.name, FINGERPRINT) == x.numbers[FINGERPRINT]
            }
            self._state = replace(self._state, engine=engine.with_vectors(current))
        return bool(current)

    def _advance(
        self, connection: Connection, state: State, revision: int, most: int | None = None
    ) -> State:
        """Bring in the changed names, unless they are more than `most`. Needs the turn."""
        if state.revision >= revision:
            return state
        changed = _CHANGED.where(NAME_CHANGE.c.revision > state.revision)
        if most is not None:
            changed = changed.limit(most + 1)
        names = connection.execute(changed).scalars().all()
        if most is not None and len(names) > most:
            return state
        engine, triggers = state.engine, state.triggers
        if names:
            copies = read_copies(connection, names)
            documents = list(read_documents(connection, copies, copies))
            engine = engine.without(copies).add(documents)
            if triggers is not None:
                triggers = triggers.without(copies).with_packages(map(_triggers, documents))
        self._state = replace(state, engine=engine, triggers=triggers, revision=revision)
        return self._state

    def _build(
        self, connection: Connection, revision: int, key: bytes, progress: Progress
    ) -> State:
        pieces: list[tuple[WordSegment, None]] = []
        listed = connection.execute(select(LISTING.c.name)).scalars().all()
        copies, done, total = read_copies(connection, listed), 0, len(listed)
        for documents in read_all(connection, copies):
            pieces.append((WordSegment.build(documents), None))
            done += len(documents)
            self._done = done, total
            progress(done, total)
        engine = Engine([(merge(pieces), None)])
        identity = self.encoder.identity if self.encoder else None
        self._triggers_read.clear()
        self._state = State(engine, revision, key, identity)
        self._first.set()
        return self._state


def _triggers(document: Document) -> tuple[str, tuple[Trigger, ...]]:
    return document.name, document.triggers


_BITS: Final = 2**64 - 1


def _fingerprint(engine: Engine) -> int:
    """Return the sum of the fingerprints of all documents, modulo 2^64."""
    total = 0
    for part in engine.parts:
        numbers = part.segment.numbers.get(FINGERPRINT)
        if numbers is not None:
            live = numbers if part.live is None else numbers[part.live]
            total += int(np.nan_to_num(live).astype(np.uint64).sum(dtype=np.uint64))
    return total & _BITS


def _read(connection: Connection) -> tuple[int, bytes]:
    """Return the revision of the index, and its secret."""
    row = connection.execute(_DEPLOYMENT).first()
    return (0, b"") if row is None else (row.revision, bytes(row.secret))
