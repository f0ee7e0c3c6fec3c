"""Lanes: an index for each kind of work in the queue, and the order in which people look at it."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

PENDING = "availability = 'pending'"
BY_TURN = ["publisher", "due_at", "id"]


def upgrade() -> None:
    """Make the indexes; what was tried before, or is judged again, is no longer new."""
    op.drop_index("ix_release_due", "release")
    _index("ix_release_queued", ["queued_at", "id"], PENDING)
    _index("ix_release_parked", ["queued_at", "id"], "availability = 'parked'")
    _index("ix_release_new", ["publisher", "id"], f"{PENDING} AND due_at = 0")
    _index("ix_release_retried", BY_TURN, f"{PENDING} AND due_at > 0 AND verdict IS NULL")
    _index("ix_release_judged_again", BY_TURN, f"{PENDING} AND due_at > 0 AND verdict IS NOT NULL")
    op.execute(
        f"UPDATE release SET due_at = 1 WHERE {PENDING} AND due_at = 0 "  # noqa: S608
        "AND (attempts > 0 OR verdict IS NOT NULL)"
    )


def _index(name: str, columns: list[str], where: str) -> None:
    clause = sa.text(where)
    op.create_index(name, "release", columns, sqlite_where=clause, postgresql_where=clause)
