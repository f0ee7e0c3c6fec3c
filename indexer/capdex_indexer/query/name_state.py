"""The state of a name: owner, maintainers and votes, folded from the rows of its events.

The rows are few and are deleted with their events, so a reorg has nothing derived to undo.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import BindParameter, Connection, and_, bindparam, func, select

from capdex_indexer.db.models import OWNERSHIP, RELEASE, VOTE


@dataclass(slots=True)
class NameRecord:
    """The owner and maintainers of a name (EIP-55 accounts), and the weights for and against it.

    `owner` is None for a name without a claim, and for one that its owner `renounced`.
    """

    owner: str | None = None
    pending_owner: str | None = None
    maintainers: set[str] = field(default_factory=set)
    renounced: bool = False
    upvotes: int = 0
    downvotes: int = 0


_NAME_PARAM: Final[BindParameter[str]] = bindparam("name")
_CHANGES: Final = (
    select(OWNERSHIP.c.kind, OWNERSHIP.c.by, OWNERSHIP.c.account)
    .where(OWNERSHIP.c.name == _NAME_PARAM)
    .order_by(OWNERSHIP.c.sequence)
)
_FIRST_PUBLISHER: Final = (
    select(RELEASE.c.publisher)
    .where(RELEASE.c.name == _NAME_PARAM)
    .order_by(RELEASE.c.sequence)
    .limit(1)
)
_LAST_VOTES: Final = (
    select(VOTE.c.voter, func.max(VOTE.c.sequence).label("sequence"))
    .where(VOTE.c.name == _NAME_PARAM)
    .group_by(VOTE.c.voter)
    .subquery()
)
_VOTES: Final = select(VOTE.c.vote, VOTE.c.weight).join(
    _LAST_VOTES,
    and_(VOTE.c.voter == _LAST_VOTES.c.voter, VOTE.c.sequence == _LAST_VOTES.c.sequence),
)


def read_name_state(connection: Connection, name: str) -> NameRecord:
    """Return the state of a name at the cursor."""
    state = NameRecord()
    changes = connection.execute(_CHANGES, {"name": name}).all()
    if not any(change.kind == "claimed" for change in changes):
        # the first release claimed it
        state.owner = connection.execute(_FIRST_PUBLISHER, {"name": name}).scalar()
    for change in changes:
        _apply(state, change)
    for vote, weight in connection.execute(_VOTES, {"name": name}):
        state.upvotes += int(weight) * (vote == 1)
        state.downvotes += int(weight) * (vote == -1)
    return state


def _apply(state: NameRecord, change: Any) -> None:
    match change.kind:
        case "maintainer_added":
            state.maintainers.add(change.account)
        case "maintainer_removed":
            state.maintainers.discard(change.account)
        case "transfer_offered":
            state.pending_owner = change.account
        case "transfer_cancelled":
            state.pending_owner = None
        case "claimed" | "transferred" | "renounced":
            state.renounced = change.kind == "renounced"
            state.owner = None if state.renounced else change.by
            state.pending_owner = None
            state.maintainers.clear()
