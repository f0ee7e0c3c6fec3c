"""The reader of an index: resolve a URI, search, list a name's releases, report the status.

An `Index` only reads; any number of them, in any number of processes and threads, can run beside
the one writer. Every answer is of one state of the index.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from sqlalchemy import Connection, Engine, text

from capdex.errors import InvalidInput
from capdex.problems import Verdict
from capdex.uri import PREFIX, CapabilityURI, check_name
from indexer.db import full_text
from indexer.db.denylist import DenialCache, Denials
from indexer.db.engine import open_reader, transaction
from indexer.db.heartbeat import Heartbeat, read_heartbeat
from indexer.projection.tokenizer import fold, query_tokens
from indexer.query import catalog, resolution
from indexer.query.catalog import BoundReleases
from indexer.query.changes import CommitWatch, NameChange, read_changes
from indexer.query.digest import Digest, DigestCache, read_digest, read_votes_digest
from indexer.query.filters import Filters, read_cursor, write_cursor
from indexer.query.name_state import NameState, read_name_state
from indexer.query.release import IndexedRelease, read_name, read_releases
from indexer.query.status import (
    POSITION,
    IndexStatus,
    Position,
    read_position,
    read_revision,
    read_status,
)

MAX_QUERY_CHARS: Final = 512  # longer than any question; bounds the words of one search
MAX_PAGE: Final = 50
MAX_FACETS: Final = 20  # values of each filter that are counted
SERVED: Final = frozenset({Verdict.VERIFIED})


@dataclass(frozen=True, slots=True)
class Hit:
    """A release found by a search, with the fields that contain its words (full_text.FIELDS)."""

    release: IndexedRelease
    score: float
    matched: list[str]


@dataclass(frozen=True, slots=True)
class Page:
    """One page of hits, best first; `total` and `facets` count all pages.

    `facets` are the commonest values of the filters that were asked for, with their numbers.
    """

    hits: list[Hit]
    next_cursor: str | None
    total: int
    facets: dict[str, list[tuple[str, int]]] = field(default_factory=dict)


class Index:
    """A reader of the index at a database URL (or over an engine that the caller closes).

    `status` counts again only after a pause, `recount_pause` times as long as it last took.
    """

    def __init__(
        self,
        database: str | Engine,
        *,
        clock: Callable[[], float] = time.time,
        recount_pause: float = 0.0,
    ) -> None:
        self._engine = open_reader(database) if isinstance(database, str) else database
        self._owned = isinstance(database, str)
        self._clock, self._recount_pause = clock, recount_pause
        self._recount_at = 0.0
        self._cached: tuple[int, float, IndexStatus] | None = None
        self.denial_cache, self.digest_cache = DenialCache(), DigestCache()

    def close(self) -> None:
        """Close the connections."""
        if self._owned:
            self._engine.dispose()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a transaction, which sees one state of the index."""
        with transaction(self._engine) as connection:
            yield connection

    def resolve(self, uri: CapabilityURI, *, serve: frozenset[Verdict] = SERVED) -> IndexedRelease:
        """Return the release that a URI means (P2): latest, exact or the highest in a range.

        Raises InvalidInput NOT_FOUND or YANKED, VerificationFailure UNVERIFIED, Unavailable
        PENDING (P16).
        """
        with self.read() as connection:
            return resolution.resolve(connection, uri, serve, self.denial_cache.read(connection))

    def at(self) -> tuple[int, Position]:
        """Return the revision of the index, which every commit raises, and its position."""
        with self.read() as connection:
            return read_revision(connection)

    def changes(self, after: tuple[int, str], limit: int) -> list[NameChange]:
        """Return the names whose answers changed after a (revision, name), in that order."""
        with self.read() as connection:
            return read_changes(connection, after, limit)

    def watch(self) -> CommitWatch:
        """Return a watch of the writer's commits; the caller closes it."""
        return CommitWatch(self._engine)

    def search(
        self,
        query: str,
        filters: Filters | None = None,
        *,
        limit: int = 20,
        cursor: str | None = None,
        facets: Sequence[str] = (),
    ) -> Page:
        """Find the listed releases with any word of `query`, best first; an exact name leads.

        An empty query lists names in order; `facets` are filters to count. Raises InvalidInput
        for a query that is too long, or an invalid filter, limit or cursor.
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
        tokens = query_tokens(_without_prefix(query))
        with self.read() as connection:
            if tokens:
                matches, total = full_text.find(
                    connection,
                    tokens,
                    where=where,
                    values=values,
                    exact=_as_name(query),
                    limit=limit,
                    offset=offset,
                )
            elif query.strip():
                matches, total = [], 0  # the query contains no word
            else:
                matches, total = _by_name(connection, where, values, limit, offset)
            hits = _hits(connection, matches, set(tokens))
            counts: dict[str, list[tuple[str, int]]] = {}
            if facets and (tokens or not query.strip()):
                counts = full_text.count_facets(
                    connection, tokens, where=where, values=values, keys=facets, limit=MAX_FACETS
                )
        after = offset + len(hits)
        more = bool(hits) and after < total
        return Page(hits, write_cursor(query, filters, after) if more else None, total, counts)

    def releases(self, name: str) -> list[IndexedRelease]:
        """Return every release of a name whatever its verdict, highest version first.

        Denied ones have `denied` set and lack the texts of their author. The list is empty for an
        unknown name.
        """
        if not _as_name(name):
            return []
        with self.read() as connection:
            denials = self.denial_cache.read(connection)
            return [x.redacted(denials) for x in read_name(connection, name)]

    def names(
        self, filters: Filters | None = None, *, after: str = "", limit: int = MAX_PAGE
    ) -> list[IndexedRelease]:
        """Return the listed releases of the names above `after` that match, in order of names."""
        with self.read() as connection:
            return catalog.read_names(connection, filters or Filters(), after, limit)

    def counts(self, facet: str) -> dict[str, int]:
        """Return how many listed releases have each value of a facet, one of `FILTER_NAMES`."""
        with self.read() as connection:
            return catalog.read_counts(connection, facet)

    def bound(
        self,
        wanted: BoundReleases,
        *,
        serve: frozenset[Verdict] = SERVED,
        after: tuple[str, str] = ("", ""),
        limit: int = MAX_PAGE,
    ) -> tuple[list[IndexedRelease], dict[str, int]]:
        """Return releases of names with a type of binding, and when each changed, by cap_uri.

        They are in order of names, then of versions as text; denied ones have `denied` set.
        """
        with self.read() as connection:
            found = catalog.read_bound(connection, wanted, serve, after, limit)
            denials = self.denial_cache.read(connection)
            changed = catalog.read_changed_at(connection, found)
            return [x.redacted(denials) for x in found], changed

    def changed_at(self, releases: Sequence[IndexedRelease]) -> dict[str, int]:
        """Return when the status of these releases last changed, in epoch seconds, by cap_uri."""
        with self.read() as connection:
            return catalog.read_changed_at(connection, releases)

    def denials(self) -> Denials:
        """Return what the operator of this node refuses to serve."""
        with self.read() as connection:
            return self.denial_cache.read(connection)

    def name_state(self, name: str) -> NameState:
        """Return the owner and maintainers of a name, and its votes."""
        with self.read() as connection:
            return read_name_state(connection, name)

    def position(self) -> Position:
        """Return the position of the index; much cheaper than `status`."""
        with self.read() as connection:
            return read_position(connection.execute(POSITION).one())

    def heartbeat(self) -> tuple[Position, Heartbeat | None]:
        """Return the position of the index with the writer's newest heartbeat."""
        with self.read() as connection:
            return read_position(connection.execute(POSITION).one()), read_heartbeat(connection)

    def status(self) -> IndexStatus:
        """Return the whole status; it may be of a moment ago while counting is paused."""
        now = self._clock()
        with self.read() as connection:
            row = connection.execute(POSITION).one()
            cached = self._cached
            started = time.monotonic()
            if cached is None or (cached[0] != row.revision and started >= self._recount_at):
                status = read_status(connection, row, now, self.digest_cache.read(connection))
                took_s = time.monotonic() - started
                self._recount_at = started + took_s * (1 + self._recount_pause)
                cached = self._cached = (row.revision, now, status)
        _, then, status = cached
        age = status.oldest_pending_s
        if age is None:
            return status
        return replace(status, oldest_pending_s=max(0.0, age + now - then))

    def digest(self, block: int | None = None) -> Digest:
        """Compute the digests at an indexed block (default: the newest) from all its events.

        Raises InvalidInput for a block that is not indexed, Unavailable before the first one.
        """
        with self.read() as connection:
            return read_digest(connection, block)

    def votes_digest(self, block: int | None = None) -> Digest | None:
        """Compute the digest of the votes contract; see `read_votes_digest`."""
        with self.read() as connection:
            return read_votes_digest(connection, block)


def _hits(connection: Connection, matches: list[full_text.Match], tokens: set[str]) -> list[Hit]:
    ids = [match.release_id for match in matches]
    if not ids:
        return []
    releases = read_releases(connection, ids)
    fields = full_text.read(connection, ids) if tokens else {}
    return [
        Hit(
            releases[match.release_id],
            match.score,
            [x for x, words in fields.get(match.release_id, {}).items() if words & tokens],
        )
        for match in matches
    ]


def _by_name(
    connection: Connection, where: str, values: dict[str, str], limit: int, offset: int
) -> tuple[list[full_text.Match], int]:
    body = f"FROM listing WHERE {where}"
    total = connection.execute(text(f"SELECT count(*) {body}"), values).scalar_one()
    page = text(f"SELECT listing.release_id {body} ORDER BY name LIMIT :limit OFFSET :offset")
    rows = connection.execute(page, {**values, "limit": limit, "offset": offset})
    return [full_text.Match(row.release_id, 0.0) for row in rows], total


def _without_prefix(query: str) -> str:
    """Return the bare name if the query is a capability URI, else the query."""
    query = query.strip()
    return query[len(PREFIX) :].partition("@")[0] if query.startswith(PREFIX) else query


def _as_name(query: str) -> str:
    """Return the query written as a capability name; empty if it cannot be one."""
    try:
        return check_name("-".join(fold(_without_prefix(query)).split()))
    except InvalidInput:
        return ""
