"""Whose a name is, and what accounts think of it: folded from the rows of its events.

The rows are few and go with their events, so nothing derived has to be taken back in a reorg.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import BindParameter, Connection, and_, bindparam, func, select

from indexer.db.models import OwnershipRow, ReleaseRow, VoteRow, table

RELEASE: Final = table(ReleaseRow)
OWNERSHIP: Final = table(OwnershipRow)
VOTE: Final = table(VoteRow)


@dataclass(slots=True)
class NameStanding:
    """Who owns and maintains a name (EIP-55 accounts), and the weights for and against it.

    `owner` is None of a name that nobody has claimed yet, and of one that its owner `renounced`.
    """

    owner: str | None = None
    pending_owner: str | None = None
    maintainers: set[str] = field(default_factory=set)
    renounced: bool = False
    upvotes: int = 0
    downvotes: int = 0


_NAMED: Final[BindParameter[str]] = bindparam("name")
_CHANGES: Final = (
    select(OWNERSHIP.c.kind, OWNERSHIP.c.by, OWNERSHIP.c.account)
    .where(OWNERSHIP.c.name == _NAMED)
    .order_by(OWNERSHIP.c.sequence)
)
_FIRST: Final = (
    select(RELEASE.c.publisher)
    .where(RELEASE.c.name == _NAMED)
    .order_by(RELEASE.c.sequence)
    .limit(1)
)
_LAST: Final = (
    select(VOTE.c.voter, func.max(VOTE.c.sequence).label("sequence"))
    .where(VOTE.c.name == _NAMED)
    .group_by(VOTE.c.voter)
    .subquery()
)
_CAST: Final = select(VOTE.c.vote, VOTE.c.weight).join(
    _LAST, and_(VOTE.c.voter == _LAST.c.voter, VOTE.c.sequence == _LAST.c.sequence)
)


def read_standing(connection: Connection, name: str) -> NameStanding:
    """What the events up to the cursor say of a name."""
    standing = NameStanding()
    changes = connection.execute(_CHANGES, {"name": name}).all()
    if not any(change.kind == "claimed" for change in changes):
        # who published first has claimed it by that
        standing.owner = connection.execute(_FIRST, {"name": name}).scalar()
    for change in changes:
        _take(standing, change)
    for vote, weight in connection.execute(_CAST, {"name": name}):
        standing.upvotes += int(weight) * (vote == 1)
        standing.downvotes += int(weight) * (vote == -1)
    return standing


def _take(standing: NameStanding, change: Any) -> None:
    match change.kind:
        case "maintainer_added":
            standing.maintainers.add(change.account)
        case "maintainer_removed":
            standing.maintainers.discard(change.account)
        case "transfer_offered":
            standing.pending_owner = change.account
        case "transfer_cancelled":
            standing.pending_owner = None
        case "claimed" | "transferred" | "renounced":
            standing.renounced = change.kind == "renounced"
            standing.owner = None if standing.renounced else change.by
            standing.pending_owner = None
            standing.maintainers.clear()
