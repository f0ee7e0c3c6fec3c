"""All tables, made in one step; revisions 0001 to 0006 were of versions that are not upgraded."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0007"
down_revision = None

# Written out, not imported: a migration must not change when the models do.
BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
PLAIN = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
TEXT, INTEGER, FLOAT, BYTES, BOOLEAN = (
    *(sa.Text(), sa.Integer(), sa.Float()),
    *(sa.LargeBinary(), sa.Boolean()),
)
FULL_TEXT = ("name", "title", "description", "summary", "tags", "triggers", "tools")
BLOCK = {"hash": BYTES, "parent": BYTES, "timestamp": BIG}
PENDING = "availability = 'pending'"


def upgrade() -> None:
    """Make every table."""
    _chain()
    _events()
    _releases()
    _packages()
    _processes()
    if op.get_bind().dialect.name == "sqlite":
        # The tokens come from indexer/projection/tokenizer.py; ascii leaves them whole.
        columns = ", ".join(FULL_TEXT)
        op.execute(f"CREATE VIRTUAL TABLE document USING fts5({columns}, tokenize='ascii')")
        return
    document = dict.fromkeys(FULL_TEXT, TEXT) | {"length": INTEGER, "tokens": postgresql.TSVECTOR()}
    _table("document", _key("release_id", "release.id"), **document)
    op.create_index("ix_document_tokens", "document", ["tokens"], postgresql_using="gin")


def _chain() -> None:
    _table(
        "deployment",
        sa.Column("id", INTEGER, primary_key=True),
        chain_id=BIG,
        contract=TEXT,
        start_block=BIG,
        genesis=BYTES,
        decoder_version=INTEGER,
        rules_version=INTEGER,
        listing_rules=TEXT,
        revision=BIG,
    )
    log = {"log_head": BYTES, "log_count": BIG, "head": BIG, "finalized": BIG}
    _table("cursor", _deployment(), number=BIG, **BLOCK, **log)
    number = sa.Column("number", BIG, primary_key=True, autoincrement=False)
    _table("block", _deployment(), number, **BLOCK)


def _events() -> None:
    _table(
        "event",
        sa.Column("sequence", BIG, primary_key=True, autoincrement=False),
        block_number=BIG,
        block_hash=BYTES,
        timestamp=BIG,
        tx_hash=BYTES,
        log_index=BIG,
        topics=BYTES,
        data=BYTES,
        log_head=BYTES,
        error=None,
    )
    op.create_index("ix_event_block_number", "event", ["block_number"])
    _partial_index("ix_event_error", "event", ["sequence"], "error IS NOT NULL")
    _table("yank", _event(), cap_uri=PLAIN, yanked=BOOLEAN, reason=TEXT)
    op.create_index("ix_yank_cap_uri", "yank", ["cap_uri", "sequence"])
    words = {"message": TEXT, "replaced_by": TEXT}
    _table("deprecation", _event(), subject=PLAIN, deprecated=BOOLEAN, **words)
    op.create_index("ix_deprecation_subject", "deprecation", ["subject", "sequence"])
    name = sa.Column("name", PLAIN)
    _table("ownership", _event(), name, kind=TEXT, by=TEXT, account=None)
    op.create_index("ix_ownership_name", "ownership", ["name", "sequence"])
    _table("vote", _event(), name=PLAIN, voter=TEXT, vote=INTEGER, weight=TEXT)
    op.create_index("ix_vote_name", "vote", ["name", "voter", "sequence"])


def _releases() -> None:
    _table(
        "release",
        sa.Column("id", BIG, primary_key=True),
        sa.Column("sequence", BIG, _cascade("event.sequence"), nullable=False, unique=True),
        sa.Column("name", PLAIN),
        stands=BOOLEAN,
        cap_uri=PLAIN,
        semver=TEXT,
        stable=BOOLEAN,
        precedence=PLAIN,
        cid=TEXT,
        sha256=BYTES,
        publisher=TEXT,
        yanked=BOOLEAN,
        yank_reason=TEXT,
        availability=None,
        verdict=None,
        reason=None,
        message=TEXT,
        attempts=INTEGER,
        queued_at=FLOAT,
        due_at=FLOAT,
    )
    op.create_index("ix_release_name", "release", ["name", "precedence"])
    by_turn = ["publisher", "due_at", "id"]
    for name, columns, where in (
        (
            "latest",
            ["name", "stable", "precedence"],
            "stands AND NOT yanked AND verdict IS NOT NULL",
        ),
        ("queued", ["queued_at", "id"], PENDING),
        ("parked", ["queued_at", "id"], "availability = 'parked'"),
        ("new", ["publisher", "id"], f"{PENDING} AND due_at = 0"),
        ("retried", by_turn, f"{PENDING} AND due_at > 0 AND verdict IS NULL"),
        ("judged_again", by_turn, f"{PENDING} AND due_at > 0 AND verdict IS NOT NULL"),
        ("rejected", ["sequence"], "verdict <> 'verified'"),
    ):
        _partial_index(f"ix_release_{name}", "release", columns, where)
    _partial_index("uq_release_standing", "release", ["cap_uri"], "stands", unique=True)


def _packages() -> None:
    release = _key("release_id", "release.id")
    optional = sa.Column("document", TEXT)
    metadata = {"acp_metadata": None, "signer": None}
    judged = {"checks": TEXT, "problems": TEXT, "rules_version": INTEGER}
    _table("package", release, optional, **metadata, **judged)
    scope = sa.Column("memory_scope", PLAIN)
    uses = {"sequence": BIG, "claims": BOOLEAN, "schema_uri": PLAIN}
    _table("schema_claim", _key("release_id", "release.id"), scope, **uses)
    for column in ("schema_uri", "memory_scope"):
        name, columns = f"ix_schema_claim_{column}", [column, "sequence"]
        _partial_index(name, "schema_claim", columns, "claims")
    _table(
        "listing",
        sa.Column("name", PLAIN, primary_key=True),
        sa.Column("release_id", BIG, _cascade("release.id"), nullable=False, unique=True),
    )
    parts = (sa.Column(x, PLAIN, primary_key=True) for x in ("key", "value"))
    _table("facet", _key("release_id", "release.id"), *parts)
    op.create_index("ix_facet_value", "facet", ["key", "value"])


def _processes() -> None:
    _table("denial", sa.Column("subject", PLAIN, primary_key=True), reason=TEXT, at=FLOAT)
    number = sa.Column("id", BIG, primary_key=True)
    _table("instruction", number, kind=TEXT, value=TEXT, at=FLOAT)
    _table(
        "heartbeat",
        sa.Column("id", INTEGER, primary_key=True, autoincrement=False),
        beats=BIG,
        head=BIG,
        finalized=BIG,
        following=BOOLEAN,
        code=TEXT,
        message=TEXT,
    )


def _table(table: str, *columns: Any, **types: Any) -> None:
    """Create a table: whole columns first, then columns by type; None is a nullable text."""
    plain = [sa.Column(x, kind or TEXT, nullable=kind is None) for x, kind in types.items()]
    # Ids of releases and instructions are never used twice.
    reserved = {"sqlite_autoincrement": True} if table in ("release", "instruction") else {}
    op.create_table(table, *columns, *plain, **reserved)


def _cascade(target: str) -> sa.ForeignKey:
    return sa.ForeignKey(target, ondelete="CASCADE")


def _key(name: str, target: str) -> Any:
    return sa.Column(name, BIG, _cascade(target), primary_key=True, autoincrement=False)


def _event() -> Any:
    return _key("sequence", "event.sequence")


def _deployment() -> Any:
    owner = sa.ForeignKey("deployment.id")
    return sa.Column("deployment_id", INTEGER, owner, primary_key=True, autoincrement=False)


def _partial_index(
    name: str, table: str, columns: list[str], where: str, *, unique: bool = False
) -> None:
    clause = sa.text(where)
    op.create_index(
        name, table, columns, unique=unique, sqlite_where=clause, postgresql_where=clause
    )
