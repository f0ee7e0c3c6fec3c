"""The engine of one reader, as new as the database: caught up by queries, or by a follower."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from typing import Final

import numpy as np
from sqlalchemy import Connection, select

from capdex.errors import Code, Unavailable
from capdex.routing.segment import merge as merge_triggers
from capdex.routing.triggers import TriggerSet
from capdex.search.engine import Engine
from capdex.search.segments.merging import merge as merge_words
from capdex.search.segments.vectors import Vector
from capdex.search.semantic import Encoder, encode_documents
from capdex_indexer.db.models import DEPLOYMENT, LISTING, NAME_CHANGE, REGISTRY
from capdex_indexer.query.search.copies import NearNames, read_copies
from capdex_indexer.query.search.documents import (
    FINGERPRINT,
    Copies,
    read_documents,
    read_fingerprint,
    read_range,
)
from capdex_indexer.query.search.processes import BuildRequest, Progress, SearchProcesses
from capdex_indexer.query.search.state import Segments, State, triggers_of

INLINE: Final = 32  # changed names that a query brings in by itself while there is a follower
FIRST_S: Final = 8.0  # how long a query waits for the first engine
TURN_S: Final = 0.5  # how long one query waits for a commit that is being brought in
PAGE: Final = 2_000  # names whose documents become one segment at first: some 10 MB of texts
MANY: Final = 10_000  # names that helpers build the segments of: one of them starts in a second
AT_ONCE: Final = 1024  # documents that are read and encoded together
SHARE: Final = 64  # a part of all packages of one over this has its vectors put in together

Read = Callable[[], AbstractContextManager[Connection]]  # opens a transaction

_DEPLOYMENT: Final = select(DEPLOYMENT.c.revision, DEPLOYMENT.c.secret).where(
    DEPLOYMENT.c.id == REGISTRY
)
_CHANGED: Final = select(NAME_CHANGE.c.name).order_by(NAME_CHANGE.c.revision)


class LiveSearch:
    """The engine of the listed releases. Any thread may ask for it.

    Without a follower each query brings in what changed. With one (`following`) a query waits for
    the first engine, brings in a few names at most, and waits for others that bring in a few. No
    query waits for a change of many names; of a few that take longer than TURN_S, one query waits.
    The first engine of many packages is built by helpers, which read the `database` of this URL.
    """

    def __init__(self, database: str) -> None:
        self.database = database
        self.following = False
        self.behind = threading.Event()  # a query has left names to the follower
        self.encoder: Encoder | None = None  # searches by meaning, too, if there is one
        self.state: State | None = None  # the newest; replaced as a whole, so reading needs no lock
        self._first = threading.Event()
        self._turn = threading.Lock()
        self._turn_is_long = False
        self._near = NearNames()
        self.done = (0, 0)  # packages that are in the first engine, and all

    def at(self, connection: Connection) -> State:
        """Return an engine of the state that a transaction sees, or of a later one.

        With a follower it is of an earlier state while many names are being brought in. Raises
        Unavailable PENDING while the follower takes longer than FIRST_S to build the first one.
        """
        revision, _ = _read(connection)
        if self.following and not self._first.wait(FIRST_S):
            done, total = self.done  # both 0 while it is loaded, or built by another process
            so_far = f"{done} of {total} packages are in it" if total else "no package is in it yet"
            raise Unavailable(
                "the search index is being built",
                Code.PENDING,
                why=so_far,
                fix="try again in a few seconds",
            )
        state = self.state
        if state is not None and state.revision >= revision:
            return state
        if state is None or not self.following:
            return self.catch_up(connection)
        self._turn_is_long = not self._turn.acquire(timeout=0 if self._turn_is_long else TURN_S)
        if not self._turn_is_long:
            try:
                state = self._advance(connection, self.state or state, revision, INLINE)
            finally:
                self._turn.release()
        if state.revision < revision:
            self.behind.set()
        return state

    def catch_up(self, connection: Connection, progress: Progress = lambda *_: None) -> State:
        """Bring in all that changed up to the state that a transaction sees; build at first."""
        with self._turn:
            revision, key = _read(connection)
            state = self.state
            if state is None or state.key != key:  # none yet, or the database is another one
                state = self._build(connection, revision, key, progress)
            else:
                state = self._advance(connection, state, revision)
        while not self.following and self.merge():
            pass
        return state

    def restore(self, connection: Connection, load: Callable[[bytes], State | None]) -> bool:
        """Take the state that `load` returns for the secret of this database, and catch up.

        It answers from then on. Returns False, and forgets it, unless it has exactly the listed
        releases; of 1 000 000 that takes twice as long to check as to load.
        """
        with self._turn:
            revision, key = _read(connection)
            state = load(key)
            if state is None or state.revision > revision:
                return False
            identity = self.encoder.identity if self.encoder else None
            if state.encoder != identity:
                state = replace(state, engine=state.engine.without_vectors(), encoder=identity)
            self.state = state = self._advance(connection, state, revision)
            self._first.set()
        if (
            _fingerprint(state.engine) == read_fingerprint(connection) & _BITS
            and state.triggers.packages == state.engine.packages
        ):
            return True
        with self._turn:
            self._first.clear()
            self.state = None
        return False

    def merge(self) -> bool:
        """Merge some segments, beside queries and changes; returns False if they are few enough."""
        if (state := self.state) is None:
            return False
        if words := state.engine.mergeable():
            of_words = merge_words(words)
            self._replace(lambda now: replace(now, engine=now.engine.merged(words, of_words)))
        elif triggers := state.triggers.mergeable():
            merged = merge_triggers(triggers)
            self._replace(lambda now: replace(now, triggers=now.triggers.merged(triggers, merged)))
        else:
            return False
        return True

    def _replace(self, change: Callable[[State], State]) -> None:
        with self._turn:
            if self.state is not None:
                self.state = change(self.state)

    def is_complete(self, revision: int) -> bool:
        """Return True if all of a revision is searched, by meaning too if there is an encoder."""
        state = self.state
        searched = state is not None and state.revision >= revision
        return searched and not (self.encoder is not None and self.lacks_vectors(1))

    def lacks_vectors(self, count: int) -> bool:
        """Return True if at least so many documents have no vector."""
        return self.state is not None and len(self.state.engine.unencoded(count)) == count

    def encode(self, read: Read, encoder: Encoder, stop: Callable[[], bool]) -> bool:
        """Give vectors to some documents that have none; returns False if no document lacks one.

        Texts are read and encoded beside queries and changes, AT_ONCE at a time until `stop`.
        """
        state = self.state
        names = (
            state.engine.unencoded(max(AT_ONCE, state.engine.packages // SHARE)) if state else []
        )
        vectors: dict[str, Vector] = {}
        fingerprints: dict[str, float] = {}
        for at in range(0, len(names), AT_ONCE):
            if stop():
                break
            with read() as connection:
                documents = list(read_documents(connection, names[at : at + AT_ONCE]))
            vectors |= encode_documents(encoder, documents)
            fingerprints |= {x.name: x.numbers[FINGERPRINT] for x in documents}

        def encoded(now: State) -> State:
            of = now.engine.number
            current = {x: y for x, y in vectors.items() if of(x, FINGERPRINT) == fingerprints[x]}
            return replace(now, engine=now.engine.with_vectors(current))

        if vectors:
            self._replace(encoded)
        return bool(vectors)

    def _advance(
        self, connection: Connection, state: State, revision: int, most: int | None = None
    ) -> State:
        """Bring in the changed names, unless they are more than `most`. Needs the turn."""
        if state.revision >= revision:
            return state
        names = _changed_since(connection, state, None if most is None else most + 1)
        if most is not None and len(names) > most:
            return state
        self._turn_is_long = len(names) > INLINE
        engine, triggers = state.engine, state.triggers
        if names:
            near = self._near.read(connection, engine, names)
            copies = read_copies(connection, names, near)
            documents = list(read_documents(connection, copies, copies))
            engine = engine.without(copies).add(documents)
            triggers = triggers.without(copies).with_packages(map(triggers_of, documents))
        self.state = replace(state, engine=engine, triggers=triggers, revision=revision)
        return self.state

    def _build(
        self, connection: Connection, revision: int, key: bytes, progress: Progress
    ) -> State:
        listed = connection.execute(select(LISTING.c.name).order_by(LISTING.c.name))
        names = listed.scalars().all()
        pages = [names[at : at + PAGE] for at in range(0, len(names), PAGE)]
        copies = {x: y for x, y in read_copies(connection, names).items() if y is not None}
        built: list[Segments] = []
        with closing(self._segments(connection, pages, copies)) as segments:
            for some in segments:
                built.append(some)
                self.done = min(len(built) * PAGE, len(names)), len(names)
                progress(*self.done)
        words, triggers = Segments.merge(built) if built else Segments.build([])
        identity = self.encoder.identity if self.encoder else None
        engine, of_triggers = Engine([(words, None)]), TriggerSet([(triggers, None)])
        self.state = State(engine, of_triggers, revision, key, identity)
        self._first.set()
        return self.state

    def _segments(
        self, connection: Connection, pages: Sequence[Sequence[str]], copies: Copies
    ) -> Generator[Segments]:
        """Yield the segments of each page of names; a name may be of a newer state of the index."""
        if len(pages) * PAGE < MANY:
            for page in pages:
                yield Segments.build(list(read_range(connection, page[0], page[-1], copies)))
            return
        requests = [
            BuildRequest(
                self.database, page[0], page[-1], {x: copies[x] for x in page if x in copies}
            )
            for page in pages
        ]
        with SearchProcesses() as helpers:
            for made in helpers.map(requests):
                yield Segments.from_bytes(*made)


def _changed_since(connection: Connection, state: State, limit: int | None = None) -> Sequence[str]:
    later = _CHANGED.where(NAME_CHANGE.c.revision > state.revision).limit(limit)
    return connection.execute(later).scalars().all()


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
