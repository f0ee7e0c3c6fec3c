"""Reading the index: resolve a URI, search by words, list a name's releases, say the state.

An `Index` only reads; any number of them, in any number of processes and threads, stand beside the
one writer. Every answer is of one state of the index.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import Connection, Engine, text

from capdex.errors import InvalidInput
from capdex.problems import Verdict
from capdex.uri import PREFIX, CapabilityURI, check_name
from indexer.db import full_text as fulltext
from indexer.db.denylist import Denials, Policy
from indexer.db.engine import open_reader, transaction
from indexer.db.heartbeat import Beat, read_beat
from indexer.mirror import content as mirror
from indexer.projection.tokenizer import fold, query_tokens
from indexer.query import release as releases
from indexer.query import resolution
from indexer.query.digest import Digest, Digests, read_digest, read_votes_digest
from indexer.query.filters import FILTER_NAMES, Filters, read_cursor, write_cursor
from indexer.query.name_state import NameStanding, read_standing
from indexer.query.release import Found
from indexer.query.status import PLACE, Position, State, read_position, read_state

__all__ = [
    "FILTER_NAMES",
    "MAX_PAGE",
    "MAX_QUERY_CHARS",
    "Digest",
    "Filters",
    "Found",
    "Hit",
    "Index",
    "Page",
    "Position",
    "State",
]

MAX_QUERY_CHARS: Final = 512  # longer than any question; bounds the words of one search
MAX_PAGE: Final = 50
SERVED: Final = frozenset({Verdict.VERIFIED})


@dataclass(frozen=True, slots=True)
class Hit:
    """A release that a search found, with the fields its words stand in (fulltext.FIELDS)."""

    found: Found
    score: float
    matched: list[str]


@dataclass(frozen=True, slots=True)
class Page:
    """One page of hits, best first; `total` counts all pages."""

    hits: list[Hit]
    next_cursor: str | None
    total: int


class Index:
    """A reader of the index at a database URL (or over an engine that the caller closes).

    `state` counts again no sooner than `recount_s` after it last did.
    """

    def __init__(
        self,
        database: str | Engine,
        *,
        clock: Callable[[], float] = time.time,
        recount_s: float = 0.0,
    ) -> None:
        self._engine = open_reader(database) if isinstance(database, str) else database
        self._owned = isinstance(database, str)
        self._clock, self._recount_s = clock, recount_s
        self._counted_at = 0.0
        self._held: tuple[int, float, State] | None = None
        self._policy = Policy()
        self._digests = Digests()

    def close(self) -> None:
        """Let go of the database."""
        if self._owned:
            self._engine.dispose()

    def resolve(self, uri: CapabilityURI, *, serve: frozenset[Verdict] = SERVED) -> Found:
        """The release that a URI means (P2): latest, exact or the highest in a range.

        Raises InvalidInput NOT_FOUND or YANKED, VerificationFailure UNVERIFIED, Unavailable
        PENDING (P16).
        """
        with self._read() as connection:
            return resolution.resolve(connection, uri, serve, self._policy.read(connection))

    def search(
        self,
        query: str,
        filters: Filters | None = None,
        *,
        limit: int = 20,
        cursor: str | None = None,
    ) -> Page:
        """The listed releases that hold any word of `query`, best first; the exact name leads.

        An empty query lists names in order. Raises InvalidInput for a query, filter, limit or
        cursor that cannot be.
        """
        filters = filters or Filters()
        if len(query) > MAX_QUERY_CHARS:
            raise InvalidInput(
                f"the query has {len(query)} characters, at most {MAX_QUERY_CHARS} are read",
                fix="say it in fewer words",
            )
        if not 1 <= limit <= MAX_PAGE:
            raise InvalidInput(f"a page has 1 to {MAX_PAGE} hits, not {limit}")
        offset = read_cursor(cursor, query, filters)
        where, values = filters.condition()
        tokens = query_tokens(_bare(query))
        with self._read() as connection:
            if tokens:
                matches, total = fulltext.find(
                    connection,
                    tokens,
                    where=where,
                    values=values,
                    exact=_name(query),
                    limit=limit,
                    offset=offset,
                )
            elif query.strip():
                matches, total = [], 0  # it holds no word at all
            else:
                matches, total = _by_name(connection, where, values, limit, offset)
            hits = _hits(connection, matches, set(tokens))
        after = offset + len(hits)
        more = bool(hits) and after < total
        return Page(hits, write_cursor(query, filters, after) if more else None, total)

    def releases(self, name: str) -> list[Found]:
        """Every release of a name whatever its verdict, highest version first; [] for no name.

        Of what the operator denies `denied` says so, and what its author wrote is left out.
        """
        if not _name(name):
            return []
        with self._read() as connection:
            denials = self._policy.read(connection)
            return [x.under(denials) for x in releases.read_name(connection, name)]

    def denials(self) -> Denials:
        """What the operator of this node refuses to serve."""
        with self._read() as connection:
            return self._policy.read(connection)

    def mirror_config(self, gateway: str | None) -> bytes:
        """The `config.json` of a mirror of this index, as it is now."""
        with self._read() as connection:
            digest = self._digests.read(connection)
            return mirror.config(digest, self._policy.read(connection), gateway)

    def mirror_file(self, name: str) -> bytes | None:
        """The file of a name in a mirror of this index; None where it has none."""
        with self._read() as connection:
            return mirror.read_file(connection, self._policy.read(connection), name)

    def standing(self, name: str) -> NameStanding:
        """Who owns and maintains a name, and how it was voted on."""
        with self._read() as connection:
            return read_standing(connection, name)

    def position(self) -> Position:
        """How far the index is: the cheap part of `state`."""
        with self._read() as connection:
            return read_position(connection.execute(PLACE).one())

    def pulse(self) -> tuple[Position, Beat | None]:
        """How far the index is, and how its writer was when it last said so."""
        with self._read() as connection:
            return read_position(connection.execute(PLACE).one()), read_beat(connection)

    def state(self) -> State:
        """The whole state; it is counted again only when the index has changed, and not at once."""
        now = self._clock()
        with self._read() as connection:
            row = connection.execute(PLACE).one()
            held = self._held
            due = time.monotonic() >= self._counted_at + self._recount_s
            if held is None or (held[0] != row.revision and due):
                self._counted_at = time.monotonic()
                state = read_state(connection, row, now, self._digests.read(connection))
                held = self._held = (row.revision, now, state)
        _, then, state = held
        age = state.oldest_pending_s
        return state if age is None else replace(state, oldest_pending_s=max(0.0, age + now - then))

    def digest(self, block: int | None = None) -> Digest:
        """The digests at an indexed block (the newest, if none is named), of every event anew.

        Raises InvalidInput for a block that is not indexed, Unavailable before the first one.
        """
        with self._read() as connection:
            return read_digest(connection, block)

    def votes_digest(self, block: int | None = None) -> Digest | None:
        """That of the votes contract at a block, or where its own log ends before; None without."""
        with self._read() as connection:
            return read_votes_digest(connection, block)

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with transaction(self._engine) as connection:
            yield connection


def _hits(connection: Connection, matches: list[fulltext.Match], tokens: set[str]) -> list[Hit]:
    ids = [match.release_id for match in matches]
    if not ids:
        return []
    found = releases.read_ids(connection, ids)
    fields = fulltext.read(connection, ids) if tokens else {}
    return [
        Hit(
            found[match.release_id],
            match.score,
            [x for x, held in fields.get(match.release_id, {}).items() if held & tokens],
        )
        for match in matches
    ]


def _by_name(
    connection: Connection, where: str, values: dict[str, str], limit: int, offset: int
) -> tuple[list[fulltext.Match], int]:
    body = f"FROM listing WHERE {where}"
    total = connection.execute(text(f"SELECT count(*) {body}"), values).scalar_one()
    page = text(f"SELECT listing.release_id {body} ORDER BY name LIMIT :limit OFFSET :offset")
    rows = connection.execute(page, {**values, "limit": limit, "offset": offset})
    return [fulltext.Match(row.release_id, 0.0) for row in rows], total


def _bare(query: str) -> str:
    """The query without what only says that it is a capability URI."""
    query = query.strip()
    return query[len(PREFIX) :].partition("@")[0] if query.startswith(PREFIX) else query


def _name(query: str) -> str:
    """The name that a query would be if it were one, else nothing."""
    try:
        return check_name("-".join(fold(_bare(query)).split()))
    except InvalidInput:
        return ""
