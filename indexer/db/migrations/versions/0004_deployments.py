"""Deployments: several contracts in one database; ownership, votes, and what the operator says."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
PLAIN = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Make the tables; the store fills `ownership` from events that are there."""
    block = "number, hash, parent, timestamp"
    cursor = f"{block}, log_head, log_count, head, finalized"
    _places(_rows("cursor", cursor), _rows("block", block))
    _consequences()
    _operator()


def _rows(name: str, columns: str) -> list[Any]:
    found = op.get_bind().execute(sa.text(f"SELECT {columns} FROM {name}"))  # noqa: S608
    return list(found.mappings())


def _places(cursor: list[Any], block: list[Any]) -> None:
    """Cursor and ring of each deployment; the registry was the first."""
    op.drop_table("cursor")
    op.drop_table("block")
    made = op.create_table(
        "cursor",
        sa.Column("deployment_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("number", BIG, nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("parent", sa.LargeBinary(), nullable=False),
        sa.Column("timestamp", BIG, nullable=False),
        sa.Column("log_head", sa.LargeBinary(), nullable=False),
        sa.Column("log_count", BIG, nullable=False),
        sa.Column("head", BIG, nullable=False),
        sa.Column("finalized", BIG, nullable=False),
        _deployment("cursor"),
        sa.PrimaryKeyConstraint("deployment_id", name="pk_cursor"),
    )
    op.bulk_insert(made, [{**row, "deployment_id": 1} for row in cursor])
    made = op.create_table(
        "block",
        sa.Column("deployment_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("number", BIG, autoincrement=False, nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("parent", sa.LargeBinary(), nullable=False),
        sa.Column("timestamp", BIG, nullable=False),
        _deployment("block"),
        sa.PrimaryKeyConstraint("deployment_id", "number", name="pk_block"),
    )
    op.bulk_insert(made, [{**row, "deployment_id": 1} for row in block])


def _deployment(name: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["deployment_id"], ["deployment.id"], name=f"fk_{name}_deployment_id"
    )


def _consequences() -> None:
    op.create_table(
        "ownership",
        sa.Column("sequence", BIG, autoincrement=False, nullable=False),
        sa.Column("name", PLAIN, nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=True),
        _event("ownership"),
        sa.PrimaryKeyConstraint("sequence", name="pk_ownership"),
    )
    op.create_index("ix_ownership_name", "ownership", ["name", "sequence"])
    op.create_table(
        "vote",
        sa.Column("sequence", BIG, autoincrement=False, nullable=False),
        sa.Column("name", PLAIN, nullable=False),
        sa.Column("voter", sa.Text(), nullable=False),
        sa.Column("vote", sa.Integer(), nullable=False),
        sa.Column("weight", sa.Text(), nullable=False),
        _event("vote"),
        sa.PrimaryKeyConstraint("sequence", name="pk_vote"),
    )
    op.create_index("ix_vote_name", "vote", ["name", "voter", "sequence"])


def _event(name: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["sequence"], ["event.sequence"], name=f"fk_{name}_sequence", ondelete="CASCADE"
    )


def _operator() -> None:
    op.create_table(
        "denial",
        sa.Column("subject", PLAIN, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("subject", name="pk_denial"),
    )
    op.create_table(
        "instruction",
        sa.Column("id", BIG, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_instruction"),
        sqlite_autoincrement=True,
    )
