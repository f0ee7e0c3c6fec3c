"""The tables of the index, on SQLite and PostgreSQL alike (indexer/db/migrations keeps them so).

    deployment, cursor    a row for each contract read: which it is, and how far it is applied
    block                 their rings: the newest applied blocks, where a fork is looked for
    event ─┬─ release ─┬─ package    every log; what it announced; what was judged
           │           ├─ namespace    where the package keeps state
           │           └─ listing ── facet    the one release of a name that search answers with
           ├─ yank, deprecation      what was said later of a release, or of a name
           ├─ ownership              who may publish what: claims, maintainers, transfers
           └─ vote                   what accounts think of a name
    denial, instruction   what the operator of this node has said: no part of any digest
    heartbeat             how the writer is, for the processes that only read

The full-text documents stand beside them in one table a dialect (indexer/db/full_text.py).

A deployment numbers its events from 1, and so does the next: in the database those of the n-th have
(n - 1) * `SEQUENCES` added, so that one integer, in the order of the chain, is the key of an event
and of whatever follows from it, and says whose it is.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, cast

from sqlalchemy import Column, Float, Index, Integer, LargeBinary, MetaData, Table, Text, and_, text
from sqlmodel import Field, SQLModel

from indexer.db.columns import BIG, PLAIN, Json, deployment_key, event_key, release_key
from indexer.db.predicates import (
    JUDGED,
    JUDGED_AGAIN,
    NEW,
    NOT_YANKED,
    PARKED,
    PENDING,
    REJECTED,
    RETRIED,
    STANDS,
    partial_index,
)

# Raised whenever the same logs would give other rows; the rows of an older one are then made again
# from the logs (indexer/store/events.py). 2: all events; reasons that are not UTF-8. 3: ownership.
DECODER_VERSION: Final = 3

REGISTRY: Final = 1  # the deployment that packages are resolved from
VOTES: Final = 2  # the contract of votes beside it
SEQUENCES: Final = 1 << 40  # room for each deployment: more than any chain will emit


class IndexTable(SQLModel):
    """What every table shares: metadata of its own, and names for constraints."""

    metadata: ClassVar[MetaData] = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


class DeploymentRow(IndexTable, table=True):
    """Which contract the database is of; `listing_rules` say how its listing was built.

    `rules_version` is that of the rules by which all its packages are judged, or queued to be.
    `revision` changes with every transaction of the writer: readers know by it what they may keep.
    """

    __tablename__ = "deployment"

    id: int = Field(default=1, primary_key=True)
    chain_id: int = Field(sa_type=BIG)
    contract: str = Field(sa_type=Text)
    start_block: int = Field(sa_type=BIG)
    genesis: bytes = Field(sa_type=LargeBinary)
    decoder_version: int
    rules_version: int
    listing_rules: str = Field(sa_type=Text)
    revision: int = Field(default=0, sa_type=BIG)


class CursorRow(IndexTable, table=True):
    """The last applied block, the log slot after it, and what the chain said of its own head."""

    __tablename__ = "cursor"

    deployment_id: int = Field(sa_column=deployment_key())
    number: int = Field(sa_type=BIG)
    hash: bytes = Field(sa_type=LargeBinary)
    parent: bytes = Field(sa_type=LargeBinary)
    timestamp: int = Field(sa_type=BIG)
    log_head: bytes = Field(sa_type=LargeBinary)
    log_count: int = Field(sa_type=BIG)
    head: int = Field(sa_type=BIG)
    finalized: int = Field(sa_type=BIG)


class BlockRow(IndexTable, table=True):
    """One block of a ring."""

    __tablename__ = "block"

    deployment_id: int = Field(sa_column=deployment_key())
    number: int = Field(sa_column=Column(BIG, primary_key=True, autoincrement=False))
    hash: bytes = Field(sa_type=LargeBinary)
    parent: bytes = Field(sa_type=LargeBinary)
    timestamp: int = Field(sa_type=BIG)


class EventRow(IndexTable, table=True):
    """One log with its raw topics and data, so that it can be decoded again without the chain.

    `sequence` counts the logs of a contract from 1 as its log slot does, on top of what is the
    deployment's; `log_head` is the slot's hash after this one. `error` says why it is no event, or
    why it concerns nothing.
    """

    __tablename__ = "event"
    __table_args__ = (
        partial_index("ix_event_error", "sequence", where=text("event.error IS NOT NULL")),
    )

    sequence: int = Field(sa_column=Column(BIG, primary_key=True, autoincrement=False))
    block_number: int = Field(sa_type=BIG, index=True)
    block_hash: bytes = Field(sa_type=LargeBinary)
    timestamp: int = Field(sa_type=BIG)
    tx_hash: bytes = Field(sa_type=LargeBinary)
    log_index: int = Field(sa_type=BIG)
    topics: bytes = Field(sa_type=LargeBinary)
    data: bytes = Field(sa_type=LargeBinary)
    log_head: bytes = Field(sa_type=LargeBinary)
    error: str | None = Field(default=None, sa_type=Text)


class YankRow(IndexTable, table=True):
    """One yank (with its reason) or un-yank of a release, by its capability URI."""

    __tablename__ = "yank"
    __table_args__ = (Index("ix_yank_cap_uri", "cap_uri", "sequence"),)

    sequence: int = Field(sa_column=event_key(primary_key=True, autoincrement=False))
    cap_uri: str = Field(sa_type=PLAIN)
    yanked: bool
    reason: str = Field(sa_type=Text)


class DeprecationRow(IndexTable, table=True):
    """One deprecation, or the end of one, of a release or of a name, by its capability URI.

    What holds is the latest of its `subject`; nothing is derived from it, so nothing has to be
    taken back in a reorg but the row. `replaced_by` is a name, or empty.
    """

    __tablename__ = "deprecation"
    __table_args__ = (Index("ix_deprecation_subject", "subject", "sequence"),)

    sequence: int = Field(sa_column=event_key(primary_key=True, autoincrement=False))
    subject: str = Field(sa_type=PLAIN)
    deprecated: bool
    message: str = Field(sa_type=Text)
    replaced_by: str = Field(sa_type=Text)


class OwnershipRow(IndexTable, table=True):
    """What one event changed about who may publish a name, or promised to (`kind`).

    `by` made it happen; `account` is whom it names besides: the maintainer, whoever is offered the
    name, its former owner, who sent a publication that `by` has signed. A commitment is to a name
    that nobody knows yet. The first release of a name claims it, too, and has no row here.
    """

    __tablename__ = "ownership"
    __table_args__ = (Index("ix_ownership_name", "name", "sequence"),)

    sequence: int = Field(sa_column=event_key(primary_key=True, autoincrement=False))
    name: str | None = Field(sa_type=PLAIN)
    kind: str = Field(sa_type=Text)
    by: str = Field(sa_type=Text)
    account: str | None = Field(sa_type=Text)


class VoteRow(IndexTable, table=True):
    """What an account thinks of a name from this event on: 1, -1, or 0 where it takes that back.

    `weight` is decimal text: the contract counts in 256 bits.
    """

    __tablename__ = "vote"
    __table_args__ = (Index("ix_vote_name", "name", "voter", "sequence"),)

    sequence: int = Field(sa_column=event_key(primary_key=True, autoincrement=False))
    name: str = Field(sa_type=PLAIN)
    voter: str = Field(sa_type=Text)
    vote: int
    weight: str = Field(sa_type=Text)


class DenialRow(IndexTable, table=True):
    """A CID or a name that this node's operator refuses to serve, since when (epoch seconds)."""

    __tablename__ = "denial"

    subject: str = Field(sa_column=Column(PLAIN, primary_key=True))
    reason: str = Field(sa_type=Text)
    at: float = Field(sa_type=Float)


class InstructionRow(IndexTable, table=True):
    """What an operator has told the running node, and when (epoch seconds); the newest counts."""

    __tablename__ = "instruction"
    __table_args__ = ({"sqlite_autoincrement": True},)

    id: int | None = Field(default=None, sa_column=Column(BIG, primary_key=True))
    kind: str = Field(sa_type=Text)
    value: str = Field(sa_type=Text)
    at: float = Field(sa_type=Float)


class HeartbeatRow(IndexTable, table=True):
    """How the writer is, in one row; `beats` goes up every two seconds
    (indexer/db/heartbeat.py).
    """

    __tablename__ = "heartbeat"

    id: int = Field(sa_column=Column(Integer, primary_key=True, autoincrement=False))
    beats: int = Field(sa_type=BIG)
    head: int = Field(sa_type=BIG)
    finalized: int = Field(sa_type=BIG)
    following: bool
    code: str = Field(sa_type=Text)
    message: str = Field(sa_type=Text)


_BY_TURN: Final = ("publisher", "due_at", "id")


class ReleaseRow(IndexTable, table=True):
    """What one `Published` event announced, and how far it has been judged.

    Ids are never used twice, sequences are (after a reorg): a verdict belongs to the id. `name` is
    NULL unless `cap_uri` is one exact URI of the name that was hashed into the event; the first
    such release of a version `stands`, any other is kept for people to see. `precedence` orders
    versions as SemVer does. The queue is `availability = 'pending'`; it has three lanes, told apart
    by `due_at` (0 before the first try) and by a verdict that stands until there is another.
    """

    __tablename__ = "release"
    __table_args__ = (
        partial_index("uq_release_standing", "cap_uri", where=STANDS, unique=True),
        partial_index("ix_release_queued", "queued_at", "id", where=PENDING),
        partial_index("ix_release_parked", "queued_at", "id", where=PARKED),
        partial_index("ix_release_new", "publisher", "id", where=NEW),
        partial_index("ix_release_retried", *_BY_TURN, where=RETRIED),
        partial_index("ix_release_judged_again", *_BY_TURN, where=JUDGED_AGAIN),
        partial_index("ix_release_rejected", "sequence", where=REJECTED),
        partial_index(
            "ix_release_latest",
            *("name", "stable", "precedence"),
            where=and_(STANDS, NOT_YANKED, JUDGED),
        ),
        Index("ix_release_name", "name", "precedence"),
        {"sqlite_autoincrement": True},
    )

    id: int | None = Field(default=None, sa_column=Column(BIG, primary_key=True))
    sequence: int = Field(sa_column=event_key(unique=True, nullable=False))
    name: str | None = Field(sa_type=PLAIN)
    stands: bool
    cap_uri: str = Field(sa_type=PLAIN)
    semver: str = Field(sa_type=Text)
    stable: bool
    precedence: str = Field(sa_type=PLAIN)
    cid: str = Field(sa_type=Text)
    sha256: bytes = Field(sa_type=LargeBinary)
    publisher: str = Field(sa_type=Text)
    yanked: bool
    yank_reason: str = Field(sa_type=Text)
    availability: str | None = Field(sa_type=Text)
    verdict: str | None = Field(sa_type=Text)
    reason: str | None = Field(sa_type=Text)
    message: str = Field(sa_type=Text)
    attempts: int
    queued_at: float = Field(sa_type=Float)
    due_at: float = Field(sa_type=Float)


class PackageRow(IndexTable, table=True):
    """What judging a release's bytes (or its event alone) brought to light.

    `document` is what search needs of it: words by field and filter values, as
    indexer/store/listing.py
    takes them from the manifest.
    """

    __tablename__ = "package"

    release_id: int = Field(sa_column=release_key(primary_key=True, autoincrement=False))
    acp_metadata: Any = Field(default=None, sa_type=Json, nullable=True)
    signer: str | None = Field(default=None, sa_type=Text)
    checks: Any = Field(default=None, sa_type=Json)
    problems: Any = Field(default=None, sa_type=Json)
    document: Any = Field(default=None, sa_type=Json, nullable=True)
    rules_version: int


class NamespaceRow(IndexTable, table=True):
    """Where a judged package keeps state: its Schema URI without version, its memory scope.

    Only a verified release `claims` them; `sequence` is that of its event.
    """

    __tablename__ = "namespace"
    __table_args__ = (
        partial_index(
            "ix_namespace_schema_uri", "schema_uri", "sequence", where=text("namespace.claims")
        ),
        partial_index(
            "ix_namespace_memory_scope", "memory_scope", "sequence", where=text("namespace.claims")
        ),
    )

    release_id: int = Field(sa_column=release_key(primary_key=True, autoincrement=False))
    sequence: int = Field(sa_type=BIG)
    claims: bool
    schema_uri: str = Field(sa_type=PLAIN)
    memory_scope: str | None = Field(default=None, sa_type=PLAIN)


class ListingRow(IndexTable, table=True):
    """The latest served release of a name: what search answers with."""

    __tablename__ = "listing"

    name: str = Field(sa_column=Column(PLAIN, primary_key=True))
    release_id: int = Field(sa_column=release_key(unique=True, nullable=False))


class FacetRow(IndexTable, table=True):
    """One value of one filter that a listed release answers to."""

    __tablename__ = "facet"
    __table_args__ = (Index("ix_facet_value", "key", "value"),)

    release_id: int = Field(sa_column=release_key(primary_key=True, autoincrement=False))
    key: str = Field(sa_column=Column(PLAIN, primary_key=True))
    value: str = Field(sa_column=Column(PLAIN, primary_key=True))


def base(deployment_id: int) -> int:
    """What is added to the sequence numbers of a deployment's events."""
    return (deployment_id - 1) * SEQUENCES


def table(model: type[SQLModel]) -> Table:
    """The Core table of a model: the write path inserts by it, thousands of rows a statement."""
    return cast(Table, vars(model)["__table__"])
