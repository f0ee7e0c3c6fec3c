"""The tables of the index, the same on SQLite and PostgreSQL (made by `db.revision`).

    deployment, cursor    one row per contract read: which it is, and the last block applied
    block                 the ring of newest applied blocks of each, to find where a fork begins
    event ─┬─ release ─┬─ package    every log; the release it announced; the verdict on its package
           │           ├─ schema_claim    the Schema URI and memory scope that the package uses
           │           └─ listing ── facet    the one release of a name that search answers with
           ├─ yank, deprecation      later changes of a release's or a name's status
           ├─ ownership              changes of who may publish a name
           └─ vote                   votes on a name
    name_change           the revision that last changed an answer about a name
    denial, instruction   the operator's decisions; in no digest
    heartbeat             the writer's state, for the other processes

Each contract numbers its events from 1. In the database (n - 1) * `SEQUENCES` is added to the
numbers of the n-th deployment, so one integer, ordered as the chain is, is the key of an event and
of every row that follows from it, and tells which deployment it belongs to.
"""

from __future__ import annotations

from typing import Any, Final, cast

from sqlalchemy import Column, Float, Index, Integer, LargeBinary, Table, Text, and_, select, text
from sqlmodel import Field, SQLModel

from capdex_indexer.db.columns import (
    BIG,
    JUDGED,
    JUDGED_AGAIN,
    NEW,
    NOT_YANKED,
    PARKED,
    PENDING,
    PLAIN,
    REJECTED,
    RETRIED,
    STANDS,
    IndexTable,
    Json,
    deployment_key,
    event_key,
    partial_index,
    release_key,
)

# Raised whenever the same logs would give other rows; part of the index digest (P14).
DECODER_VERSION: Final = 3

REGISTRY: Final = 1  # the deployment that packages are resolved from
VOTES: Final = 2  # the contract of votes beside it
SEQUENCES: Final = 1 << 40  # room for each deployment: more than any chain will emit


class DeploymentRow(IndexTable, table=True):
    """A contract whose events the database holds; `listing_rules` tell how the listing was built.

    `rules_version` is the version of the rules by which all packages are judged, or queued to be.
    `revision` changes with every transaction of the writer: it invalidates the readers' caches.
    `secret` is random: it signs cursors, and tells one database from another.
    """

    id: int = Field(default=1, primary_key=True)
    chain_id: int = Field(sa_type=BIG)
    contract: str = Field(sa_type=Text)
    start_block: int = Field(sa_type=BIG)
    genesis: bytes = Field(sa_type=LargeBinary)
    decoder_version: int
    rules_version: int
    listing_rules: str = Field(sa_type=Text)
    revision: int = Field(default=0, sa_type=BIG)
    secret: bytes = Field(sa_type=LargeBinary)


class CursorRow(IndexTable, table=True):
    """The last applied block, the log slot after it, and the chain's head and finalized block."""

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
    """A block among the newest applied ones of a deployment."""

    deployment_id: int = Field(sa_column=deployment_key())
    number: int = Field(sa_column=Column(BIG, primary_key=True, autoincrement=False))
    hash: bytes = Field(sa_type=LargeBinary)
    parent: bytes = Field(sa_type=LargeBinary)
    timestamp: int = Field(sa_type=BIG)


class EventRow(IndexTable, table=True):
    """One log with its raw topics and data, so that it can be hashed again without the chain.

    `sequence` is the log's number in its contract, from 1, plus `base(deployment)`; `log_head` is
    the contract's log head after it. `error` is the reason why it has no effect, if it has none.
    """

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

    __table_args__ = (Index("ix_yank_cap_uri", "cap_uri", "sequence"),)

    sequence: int = Field(sa_column=event_key(primary_key=True, autoincrement=False))
    cap_uri: str = Field(sa_type=PLAIN)
    yanked: bool
    reason: str = Field(sa_type=Text)


class DeprecationRow(IndexTable, table=True):
    """One deprecation, or the end of one, of a release or of a name, by its capability URI.

    The latest row of a `subject` counts. `replaced_by` is a name, or empty.
    """

    __table_args__ = (Index("ix_deprecation_subject", "subject", "sequence"),)

    sequence: int = Field(sa_column=event_key(primary_key=True, autoincrement=False))
    subject: str = Field(sa_type=PLAIN)
    deprecated: bool
    message: str = Field(sa_type=Text)
    replaced_by: str = Field(sa_type=Text)


class OwnershipRow(IndexTable, table=True):
    """One change of a name's ownership (`kind`), made by the account `by`.

    `account` is the other account concerned: the maintainer, the new owner that is offered the
    name, the former owner, or the sender of a publication that `by` signed. `name` is NULL for a
    commitment, which hides it. A name's first release, which claims it, has no row here.
    """

    __table_args__ = tuple(Index(None, x, "sequence") for x in ("name", "by", "account"))

    sequence: int = Field(sa_column=event_key(primary_key=True, autoincrement=False))
    name: str | None = Field(sa_type=PLAIN)
    kind: str = Field(sa_type=Text)
    by: str = Field(sa_type=Text)
    account: str | None = Field(sa_type=Text)


class VoteRow(IndexTable, table=True):
    """The vote of an account on a name from this event on: 1, -1, or 0 (withdrawn).

    `weight` is decimal text: the contract counts in 256 bits.
    """

    __table_args__ = (Index("ix_vote_name", "name", "voter", "sequence"),)

    sequence: int = Field(sa_column=event_key(primary_key=True, autoincrement=False))
    name: str = Field(sa_type=PLAIN)
    voter: str = Field(sa_type=Text)
    vote: int
    weight: str = Field(sa_type=Text)


class NameChangeRow(IndexTable, table=True):
    """The revision that last changed an answer about a name; kept when its releases are gone."""

    __table_args__ = (Index("ix_name_change_revision", "revision", "name"),)

    name: str = Field(sa_column=Column(PLAIN, primary_key=True))
    revision: int = Field(sa_type=BIG)


class InstructionRow(IndexTable, table=True):
    """An instruction of the operator to the running node, and its epoch time; the newest counts."""

    __table_args__ = ({"sqlite_autoincrement": True},)

    id: int | None = Field(default=None, sa_column=Column(BIG, primary_key=True))
    kind: str = Field(sa_type=Text)
    value: str = Field(sa_type=Text)
    at: float = Field(sa_type=Float)


class DenialRow(IndexTable, table=True):
    """A CID or a name that the operator refuses to serve, since `at` (epoch seconds)."""

    subject: str = Field(sa_column=Column(PLAIN, primary_key=True))
    reason: str = Field(sa_type=Text)
    at: float = Field(sa_type=Float)


class HeartbeatRow(IndexTable, table=True):
    """The writer's state, in a single row."""

    id: int = Field(sa_column=Column(Integer, primary_key=True, autoincrement=False))
    beats: int = Field(sa_type=BIG)
    head: int = Field(sa_type=BIG)
    finalized: int = Field(sa_type=BIG)
    following: bool
    code: str = Field(sa_type=Text)
    message: str = Field(sa_type=Text)


_BY_TURN: Final = ("publisher", "due_at", "id")


class ReleaseRow(IndexTable, table=True):
    """The release that one `Published` event announced, and how far it has been judged.

    Ids are never used twice, sequences are (after a reorg): a verdict belongs to the id. `name` is
    NULL unless `cap_uri` is an exact URI of the name that was hashed into the event. The first such
    release of a version `stands`; further ones are kept for inspection. `precedence` orders
    versions as SemVer does. The queue is `availability = 'pending'`; its three lanes differ in
    `due_at` (0 before the first try) and in whether an earlier verdict is still in force.
    """

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
        Index("ix_release_publisher", "publisher", "sequence"),
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
    """The result of judging a release by its bytes, or by its event alone.

    `document` holds the words by field and the filter values for search, taken from the manifest
    by indexer/capdex_indexer/store/listing.py.
    """

    release_id: int = Field(sa_column=release_key(primary_key=True, autoincrement=False))
    acp_metadata: Any = Field(default=None, sa_type=Json, nullable=True)
    signer: str | None = Field(default=None, sa_type=Text)
    checks: Any = Field(default=None, sa_type=Json)
    problems: Any = Field(default=None, sa_type=Json)
    document: Any = Field(default=None, sa_type=Json, nullable=True)
    rules_version: int


class SchemaClaimRow(IndexTable, table=True):
    """The Schema URI (without version) and memory scope that a judged package uses.

    Only a verified release `claims` them; `sequence` is that of its event.
    """

    __table_args__ = tuple(
        Index(f"ix_schema_claim_{x}", x, "sequence") for x in ("schema_uri", "memory_scope")
    )

    release_id: int = Field(sa_column=release_key(primary_key=True, autoincrement=False))
    sequence: int = Field(sa_type=BIG)
    claims: bool
    schema_uri: str = Field(sa_type=PLAIN)
    memory_scope: str | None = Field(default=None, sa_type=PLAIN)


class ListingRow(IndexTable, table=True):
    """The latest served release of a name: the one that search answers with."""

    name: str = Field(sa_column=Column(PLAIN, primary_key=True))
    release_id: int = Field(sa_column=release_key(unique=True, nullable=False))


class FacetRow(IndexTable, table=True):
    """One value of a search filter that a listed release matches."""

    __table_args__ = (Index("ix_facet_value", "key", "value"),)

    release_id: int = Field(sa_column=release_key(primary_key=True, autoincrement=False))
    key: str = Field(sa_column=Column(PLAIN, primary_key=True))
    value: str = Field(sa_column=Column(PLAIN, primary_key=True))


def base(deployment_id: int) -> int:
    """The offset of a deployment's event numbers in the database."""
    return (deployment_id - 1) * SEQUENCES


def table(model: type[SQLModel]) -> Table:
    """The Core table of a model: bulk inserts bypass the ORM, thousands of rows a statement."""
    return cast(Table, vars(model)["__table__"])


DEPLOYMENT, CURSOR, BLOCK = table(DeploymentRow), table(CursorRow), table(BlockRow)
EVENT, RELEASE, PACKAGE = table(EventRow), table(ReleaseRow), table(PackageRow)
YANK, DEPRECATION = table(YankRow), table(DeprecationRow)
OWNERSHIP, VOTE = table(OwnershipRow), table(VoteRow)
LISTING, FACET, NAME_CHANGE = table(ListingRow), table(FacetRow), table(NameChangeRow)
SCHEMA_CLAIM, INSTRUCTION = table(SchemaClaimRow), table(InstructionRow)
DENIAL, HEARTBEAT = table(DenialRow), table(HeartbeatRow)

REVISION: Final = select(DEPLOYMENT.c.revision).where(DEPLOYMENT.c.id == REGISTRY)
