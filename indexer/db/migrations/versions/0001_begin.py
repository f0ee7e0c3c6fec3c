"""Begin: deployment, cursor, ring, events, releases, packages and the listing that is searched."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None

# Written out, not imported: a step of the past must not change with the models of today.
BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
PLAIN = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Make every table."""
    _chain()
    _releases()
    _listing()
    if op.get_bind().dialect.name == "sqlite":
        fields = "name, title, description, summary, tags, triggers, tools"
        # The tokens come from indexer/projection/tokenizer.py; ascii leaves them whole.
        op.execute(f"CREATE VIRTUAL TABLE document USING fts5({fields}, tokenize='ascii')")
    else:
        _documents()


def _chain() -> None:
    op.create_table(
        "deployment",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("chain_id", BIG, nullable=False),
        sa.Column("contract", sa.Text(), nullable=False),
        sa.Column("start_block", BIG, nullable=False),
        sa.Column("genesis", sa.LargeBinary(), nullable=False),
        sa.Column("decoder_version", sa.Integer(), nullable=False),
        sa.Column("listing_rules", sa.Text(), nullable=False),
        sa.Column("revision", BIG, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_deployment"),
    )
    op.create_table(
        "cursor",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("number", BIG, nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("parent", sa.LargeBinary(), nullable=False),
        sa.Column("timestamp", BIG, nullable=False),
        sa.Column("log_head", sa.LargeBinary(), nullable=False),
        sa.Column("log_count", BIG, nullable=False),
        sa.Column("head", BIG, nullable=False),
        sa.Column("finalized", BIG, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_cursor"),
    )
    op.create_table(
        "block",
        sa.Column("number", BIG, autoincrement=False, nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("parent", sa.LargeBinary(), nullable=False),
        sa.Column("timestamp", BIG, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_block"),
    )
    op.create_table(
        "event",
        sa.Column("sequence", BIG, autoincrement=False, nullable=False),
        sa.Column("block_number", BIG, nullable=False),
        sa.Column("block_hash", sa.LargeBinary(), nullable=False),
        sa.Column("timestamp", BIG, nullable=False),
        sa.Column("tx_hash", sa.LargeBinary(), nullable=False),
        sa.Column("log_index", BIG, nullable=False),
        sa.Column("topics", sa.LargeBinary(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("log_head", sa.LargeBinary(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("sequence", name="pk_event"),
    )
    op.create_index("ix_event_block_number", "event", ["block_number"])
    _partial_index("ix_event_error", "event", ["sequence"], "error IS NOT NULL")


def _releases() -> None:
    op.create_table(
        "yank",
        sa.Column("sequence", BIG, autoincrement=False, nullable=False),
        sa.Column("cap_uri", PLAIN, nullable=False),
        sa.Column("yanked", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["sequence"], ["event.sequence"], name="fk_yank_sequence", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("sequence", name="pk_yank"),
    )
    op.create_index("ix_yank_cap_uri", "yank", ["cap_uri", "sequence"])
    op.create_table(
        "release",
        sa.Column("id", BIG, nullable=False),
        sa.Column("sequence", BIG, nullable=False),
        sa.Column("name", PLAIN, nullable=True),
        sa.Column("stands", sa.Boolean(), nullable=False),
        sa.Column("cap_uri", PLAIN, nullable=False),
        sa.Column("semver", sa.Text(), nullable=False),
        sa.Column("stable", sa.Boolean(), nullable=False),
        sa.Column("precedence", PLAIN, nullable=False),
        sa.Column("cid", sa.Text(), nullable=False),
        sa.Column("sha256", sa.LargeBinary(), nullable=False),
        sa.Column("publisher", sa.Text(), nullable=False),
        sa.Column("yanked", sa.Boolean(), nullable=False),
        sa.Column("yank_reason", sa.Text(), nullable=False),
        sa.Column("availability", sa.Text(), nullable=True),
        sa.Column("verdict", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("queued_at", sa.Float(), nullable=False),
        sa.Column("due_at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(
            ["sequence"], ["event.sequence"], name="fk_release_sequence", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_release"),
        sa.UniqueConstraint("sequence", name="uq_release_sequence"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_release_name", "release", ["name", "precedence"])
    _partial_index(
        "ix_release_latest",
        "release",
        ["name", "stable", "precedence"],
        "stands AND NOT yanked AND verdict IS NOT NULL",
    )
    _partial_index(
        "ix_release_due", "release", ["publisher", "due_at", "id"], "availability = 'pending'"
    )
    _partial_index("ix_release_rejected", "release", ["sequence"], "verdict <> 'verified'")
    _partial_index("uq_release_standing", "release", ["cap_uri"], "stands", unique=True)
    op.create_table(
        "package",
        sa.Column("release_id", BIG, autoincrement=False, nullable=False),
        sa.Column("acp_metadata", sa.Text(), nullable=True),
        sa.Column("signer", sa.Text(), nullable=True),
        sa.Column("checks", sa.Text(), nullable=False),
        sa.Column("problems", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=True),
        sa.Column("rules_version", sa.Integer(), nullable=False),
        _release_key("package"),
        sa.PrimaryKeyConstraint("release_id", name="pk_package"),
    )


def _listing() -> None:
    op.create_table(
        "listing",
        sa.Column("name", PLAIN, nullable=False),
        sa.Column("release_id", BIG, nullable=False),
        _release_key("listing"),
        sa.PrimaryKeyConstraint("name", name="pk_listing"),
        sa.UniqueConstraint("release_id", name="uq_listing_release_id"),
    )
    op.create_table(
        "facet",
        sa.Column("release_id", BIG, autoincrement=False, nullable=False),
        sa.Column("key", PLAIN, nullable=False),
        sa.Column("value", PLAIN, nullable=False),
        _release_key("facet"),
        sa.PrimaryKeyConstraint("release_id", "key", "value", name="pk_facet"),
    )
    op.create_index("ix_facet_value", "facet", ["key", "value"])


def _documents() -> None:
    fields = ("name", "title", "description", "summary", "tags", "triggers", "tools")
    op.create_table(
        "document",
        sa.Column("release_id", BIG, autoincrement=False, nullable=False),
        *(sa.Column(field, sa.Text(), nullable=False) for field in fields),
        sa.Column("length", sa.Integer(), nullable=False),
        sa.Column("tokens", postgresql.TSVECTOR(), nullable=False),
        _release_key("document"),
        sa.PrimaryKeyConstraint("release_id", name="pk_document"),
    )
    op.create_index("ix_document_tokens", "document", ["tokens"], postgresql_using="gin")


def _release_key(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["release_id"], ["release.id"], name=f"fk_{table}_release_id", ondelete="CASCADE"
    )


def _partial_index(
    name: str, table: str, columns: list[str], where: str, *, unique: bool = False
) -> None:
    clause = sa.text(where)
    op.create_index(
        name, table, columns, unique=unique, sqlite_where=clause, postgresql_where=clause
    )
