"""The events of a contract as rows: written in canonical order, and deleted back to a fork.

Rows that depend on an event (its release, yank flags of others, deprecations, ownership, votes)
change in the same transaction. `apply` and `undo` return the names that changed, and those of them
that the caller has to list again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, bindparam, delete, select, update
from sqlalchemy.exc import IntegrityError

from capdex.errors import InvalidInput
from capdex.registry.events import (
    DeprecationChanged,
    Event,
    NameDeprecationChanged,
    Published,
    Voted,
    YankChanged,
)
from capdex.registry.logs import LogHead
from capdex.uri import CapabilityURI
from capdex_indexer.db.bulk_insert import chunks, insert_columns, insert_rows
from capdex_indexer.db.columns import STANDS
from capdex_indexer.db.models import (
    DEPRECATION,
    EVENT,
    LISTING,
    OWNERSHIP,
    REGISTRY,
    RELEASE,
    SEQUENCES,
    VOTE,
    VOTES,
    YANK,
    base,
)
from capdex_indexer.projection import event_rows
from capdex_indexer.projection.block_range import LogRows
from capdex_indexer.projection.event_rows import MAX_REASON_CHARS, Claim, Row, storable
from capdex_indexer.projection.package_rows import Judgement
from capdex_indexer.store import listing
from capdex_indexer.store.changes import later_claimants
from capdex_indexer.store.fetch_queue import write_packages

# A yank concerns the release that stood before it.
_FLAGGED: Final = (
    update(RELEASE)
    .where(STANDS, RELEASE.c.cap_uri == bindparam("new_cap_uri"))
    .where(RELEASE.c.sequence < bindparam("new_sequence"))
    .values(yanked=bindparam("new_yanked"), yank_reason=bindparam("new_reason"))
)


@dataclass(slots=True)
class _DerivedRows:
    """The rows that follow from events of one deployment, whose keys are `sequences`."""

    deployment_id: int
    chain_id: int
    log_rows: LogRows
    sequences: Sequence[int]
    published: list[int] = field(default_factory=list)  # indexes of publications in `log_rows`
    yanks: list[Row] = field(default_factory=list)
    deprecations: list[Row] = field(default_factory=list)
    ownerships: list[Row] = field(default_factory=list)
    votes: list[Row] = field(default_factory=list)
    yanked: set[str] = field(default_factory=set)  # names
    changed: set[str] = field(default_factory=set)  # names, without those of new releases

    def derive(self) -> list[str | None]:
        """Collect the rows; return per event the error why it has no effect, or None."""
        errors: list[str | None] = [None] * len(self.log_rows)
        for at, release in enumerate(self.log_rows.releases):
            if release is not None and self.deployment_id == REGISTRY:  # nearly always
                self.published.append(at)
            elif (error := self._derive_other(at)) is not None:
                errors[at] = storable(error, MAX_REASON_CHARS)
        return errors

    def write(self, connection: Connection, now: float) -> None:
        """Insert the rows; those of their events are there already."""
        self.changed |= self._write_releases(connection, now)
        if self.yanks:
            insert_rows(connection, YANK, self.yanks)
            names = ("new_sequence", "new_cap_uri", "new_yanked", "new_reason")
            connection.execute(_FLAGGED, [dict(zip(names, x, strict=True)) for x in self.yanks])
        insert_rows(connection, DEPRECATION, self.deprecations)
        insert_rows(connection, OWNERSHIP, self.ownerships)
        insert_rows(connection, VOTE, self.votes)

    def _derive_other(self, at: int) -> str | None:
        event, sequence = self._event(at), self.sequences[at]
        if isinstance(event, InvalidInput):
            return event.message
        of_votes = self.deployment_id == VOTES
        if isinstance(event, Voted) != of_votes:
            return "it is not an event of this contract"
        if isinstance(event, Published):
            self.published.append(at)
            return None
        if isinstance(event, YankChanged | DeprecationChanged | NameDeprecationChanged):
            return self._derive_flag(event, sequence)
        if isinstance(event, Voted):
            row, derived = event_rows.vote_row(event, sequence), self.votes
        else:  # the contract has checked who may change a name
            row, derived = event_rows.ownership_row(event, sequence), self.ownerships
        if row is None:
            return f"it concerns no name: {getattr(event, 'name', '')!r}"
        derived.append(row)
        if row[1] is not None:
            self.changed.add(row[1])
        return None

    def _derive_flag(
        self, event: YankChanged | DeprecationChanged | NameDeprecationChanged, sequence: int
    ) -> str | None:
        uri = event_rows.concerned(event)
        if uri is None:
            return f"it concerns no release and no name: {event.name!r}"
        if isinstance(event, YankChanged):
            self.yanks.append(event_rows.yank_row(event, uri, sequence))
            self.yanked.add(uri.name)
        else:
            self.deprecations.append(event_rows.deprecation_row(event, uri, sequence))
        self.changed.add(uri.name)
        return None

    def _event(self, at: int) -> Event | InvalidInput:
        return event_rows.read_event(self.log_rows.logs[at], self.chain_id)

    def _write_releases(self, connection: Connection, now: float) -> set[str]:
        """Queue or reject what was announced; return the names.

        Only the first release of a version stands.
        """
        keys = [self.sequences[at] for at in self.published]
        releases = map(self.log_rows.releases.__getitem__, self.published)
        sound = [release for release in releases if release is not None]
        if len(sound) == len(keys):
            try:
                # Our contract announces no version twice: look only if the unique index fails.
                with connection.begin_nested():
                    columns = [keys, *zip(*sound, strict=True)]
                    insert_columns(
                        connection, RELEASE, columns, event_rows.ANNOUNCED, event_rows.queued(now)
                    )
            except IntegrityError:
                pass
            else:
                return {release[0] for release in sound}
        events = [
            (sequence, self._event(at)) for sequence, at in zip(keys, self.published, strict=True)
        ]
        claims = _one_stands(
            connection,
            [(n, event_rows.claim(event)) for n, event in events if isinstance(event, Published)],
        )
        rows = [event_rows.release_row(claim, n, now) for n, claim in claims]
        insert_rows(connection, RELEASE, rows, (*event_rows.ANNOUNCED, *event_rows.queued(now)))
        rejected = {n: x.rejected for n, x in claims if x.rejected is not None}
        for sequences in chunks(list(rejected)):
            ids = select(RELEASE.c.id, RELEASE.c.sequence).where(RELEASE.c.sequence.in_(sequences))
            at = {row.id: Judgement.of(rejected[row.sequence]) for row in connection.execute(ids)}
            write_packages(connection, at)
        return {claim.uri.name for _, claim in claims if claim.uri is not None}


def apply(
    connection: Connection,
    deployment_id: int,
    log_rows: LogRows,
    heads: Sequence[LogHead],
    *,
    times: Mapping[int, int],
    chain_id: int,
    now: float,
) -> tuple[set[str], set[str]]:
    """Write the events that follow, each with the log head after it; return changed names.

    The second set has the names to list again: those of yanked releases. `times` are the
    timestamps of the blocks in seconds, by number.
    """
    if not log_rows:
        return set(), set()
    hashes, counts = zip(*heads, strict=True)
    sequences = [base(deployment_id) + count for count in counts]
    derived = _DerivedRows(deployment_id, chain_id, log_rows, sequences)
    errors, logs = derived.derive(), log_rows.logs
    columns = (
        *(sequences, logs.block_numbers, logs.block_hashes),
        list(map(times.__getitem__, logs.block_numbers)),
        *(logs.tx_hashes, logs.log_indexes, logs.topics, logs.data, hashes, errors),
    )
    insert_columns(connection, EVENT, columns)
    derived.write(connection, now)
    return derived.changed, derived.yanked


def undo(
    connection: Connection, deployment_id: int, above: int
) -> tuple[LogHead, set[str], set[str]]:
    """Delete the events above a block; return the log head before them and the changed names.

    The second set has the names to list again.
    """
    ours = EVENT.c.sequence.between(base(deployment_id) + 1, base(deployment_id + 1))
    gone = ours & (EVENT.c.block_number > above)
    yanked = set(_scalars(connection, select(YANK.c.cap_uri).join(EVENT).where(gone)))
    of_gone = select(RELEASE.c.name).join(EVENT).where(gone, RELEASE.c.name.is_not(None))
    names = set(_scalars(connection, of_gone))
    changed = _named(connection, gone)
    tables = LISTING.join(RELEASE).join(EVENT)
    listed = select(LISTING.c.release_id).select_from(tables).where(gone)
    listing.unlist(connection, _scalars(connection, listed))
    connection.execute(delete(EVENT).where(gone))  # derived rows are deleted with them
    names |= _flag_again(connection, yanked)
    last = select(EVENT.c.sequence, EVENT.c.log_head).where(ours)
    row = connection.execute(last.order_by(EVENT.c.sequence.desc()).limit(1)).first()
    log = LogHead(row.log_head, row.sequence % SEQUENCES) if row else LogHead()
    return log, changed | names, names


def _named(connection: Connection, gone: ColumnElement[bool]) -> set[str]:
    """Return the names, beside those of releases, about which an undone event said something."""
    ids = _scalars(connection, select(RELEASE.c.id).join(EVENT).where(gone))
    names = later_claimants(connection, ids)
    for table in (OWNERSHIP, VOTE):
        of_table = select(table.c.name).join(EVENT).where(gone, table.c.name.is_not(None))
        names.update(_scalars(connection, of_table))
    subjects = _scalars(connection, select(DEPRECATION.c.subject).join(EVENT).where(gone))
    return names | {CapabilityURI.parse(subject).name for subject in subjects}


def _one_stands(
    connection: Connection, claims: Sequence[tuple[int, Claim]]
) -> list[tuple[int, Claim]]:
    taken: set[str] = set()
    for some in chunks([x.event.announcement.cap_uri for _, x in claims if x.stands]):
        standing = select(RELEASE.c.cap_uri).where(STANDS, RELEASE.c.cap_uri.in_(some))
        taken.update(_scalars(connection, standing))
    settled = []
    for sequence, claim in claims:
        cap_uri = claim.event.announcement.cap_uri
        if claim.stands and cap_uri in taken:
            claim = event_rows.repeated(claim)
        elif claim.stands:
            taken.add(cap_uri)
        settled.append((sequence, claim))
    return settled


def _flag_again(connection: Connection, cap_uris: set[str]) -> set[str]:
    """Set the yank flags of these releases by the latest yank left; return the names concerned."""
    names: set[str] = set()
    for cap_uri in sorted(cap_uris):
        standing = select(RELEASE.c.id, RELEASE.c.name, RELEASE.c.sequence)
        release = connection.execute(standing.where(STANDS, RELEASE.c.cap_uri == cap_uri)).first()
        if release is None:
            continue
        latest = connection.execute(
            select(YANK.c.yanked, YANK.c.reason)
            .where(YANK.c.cap_uri == cap_uri, YANK.c.sequence > release.sequence)
            .order_by(YANK.c.sequence.desc())
            .limit(1)
        ).first()
        yanked, reason = (latest.yanked, latest.reason) if latest else (False, "")
        connection.execute(
            update(RELEASE)
            .where(RELEASE.c.id == release.id)
            .values(yanked=yanked, yank_reason=reason)
        )
        names.add(release.name)
    return names


def _scalars(connection: Connection, query: Any) -> list[Any]:
    return list(connection.execute(query).scalars())
