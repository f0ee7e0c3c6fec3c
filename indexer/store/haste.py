"""Retries that a wrong clock has put off: due at once, since they could wait for a day."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, func, select, update

from indexer.db.models import ReleaseRow, table
from indexer.db.predicates import PENDING

RELEASE = table(ReleaseRow)


def hasten(connection: Connection, now: float, latest_s: Callable[[int], float]) -> None:
    """Make due whatever is to wait longer than `latest_s` (of its tries) from `now` on."""
    latest = func.max(RELEASE.c.due_at)
    tries = select(RELEASE.c.attempts, latest).where(PENDING).group_by(RELEASE.c.attempts)
    for attempts, due_at in connection.execute(tries).all():
        limit = now + latest_s(attempts)
        if due_at > limit:
            late = RELEASE.c.due_at > limit
            connection.execute(
                update(RELEASE)
                .where(PENDING, RELEASE.c.attempts == attempts, late)
                .values(due_at=now)
            )
