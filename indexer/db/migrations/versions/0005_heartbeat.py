"""Heartbeat: by which readers and a standby know that, and how, the writer is."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the table; the writer makes its row."""
    op.create_table(
        "heartbeat",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("beats", BIG, nullable=False),
        sa.Column("head", BIG, nullable=False),
        sa.Column("finalized", BIG, nullable=False),
        sa.Column("following", sa.Boolean(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_heartbeat"),
    )
