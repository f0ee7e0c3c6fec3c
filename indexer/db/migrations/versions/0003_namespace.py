"""Namespace: the Schema URIs and memory scopes that judged packages use."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
PLAIN = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the table, and have the store judge again what was judged (`judgements.judge_again`).

    No row of an older index tells a package's Schema URI, nor what the lint finds in it; its bytes
    do, and those of verified packages are kept.
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
    op.add_column(
        "deployment", sa.Column("rules_version", sa.Integer(), server_default="0", nullable=False)
    )
