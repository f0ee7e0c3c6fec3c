"""Namespace: the Schema URIs and memory scopes that judged packages use."""

import time

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
PLAIN = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the table, and have judged again whatever may be served.

    No row of an older index tells a package's Schema URI, nor what the lint finds in it; its bytes
    do, and they are kept. Until then the verdicts stand.
    """
    op.create_table(
        "namespace",
        sa.Column("release_id", BIG, autoincrement=False, nullable=False),
        sa.Column("sequence", BIG, nullable=False),
        sa.Column("claims", sa.Boolean(), nullable=False),
        sa.Column("schema_uri", PLAIN, nullable=False),
        sa.Column("memory_scope", PLAIN, nullable=True),
        sa.ForeignKeyConstraint(
            ["release_id"], ["release.id"], name="fk_namespace_release_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("release_id", name="pk_namespace"),
    )
    for column in ("schema_uri", "memory_scope"):
        op.create_index(
            f"ix_namespace_{column}",
            "namespace",
            [column, "sequence"],
            sqlite_where=sa.text("claims"),
            postgresql_where=sa.text("claims"),
        )
    again = sa.text(
        "UPDATE release SET availability = 'pending', attempts = 0, due_at = 0, queued_at = :now "
        "WHERE availability = 'available' AND verdict IN ('verified', 'signed')"
    )
    op.execute(again.bindparams(now=time.time()))
