"""Deprecate: what was said of releases and names that nobody should start to use."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
PLAIN = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the table; the store fills it from events that are there (`journal.decode_again`)."""
    op.create_table(
        "deprecation",
        sa.Column("sequence", BIG, autoincrement=False, nullable=False),
        sa.Column("subject", PLAIN, nullable=False),
        sa.Column("deprecated", sa.Boolean(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("replaced_by", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["sequence"], ["event.sequence"], name="fk_deprecation_sequence", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("sequence", name="pk_deprecation"),
    )
    op.create_index("ix_deprecation_subject", "deprecation", ["subject", "sequence"])
