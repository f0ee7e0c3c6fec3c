"""The writer's heartbeat: one row by which every other process knows that, and how, it is.

`beats` goes up with each beat. Whoever watches compares it by its own monotonic clock, so that no
two machines' clocks are ever compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, insert, select, update

from indexer.db.models import HeartbeatRow, table
from indexer.projection.event_rows import MAX_REASON_CHARS, visible

BEAT_S: Final = 2.0  # a standby takes over within 10 s: a few of these

HEARTBEAT = table(HeartbeatRow)


@dataclass(frozen=True, slots=True)
class Beat:
    """What a writer says of itself: the chain's head, whether it follows it, and its trouble.

    `code` is empty while there is no trouble; `message` is all that the writer's own `/ready` says
    of it. `beats` is the database's to set.
    """

    head: int
    finalized: int
    following: bool
    code: str = ""
    message: str = ""
    beats: int = 0


def write_beat(connection: Connection, beat: Beat) -> None:
    """Put a beat in place of the one before."""
    values = {
        "head": beat.head,
        "finalized": beat.finalized,
        "following": beat.following,
        "code": beat.code,
        "message": visible(beat.message, MAX_REASON_CHARS),
    }
    if not connection.execute(
        update(HEARTBEAT).values(beats=HEARTBEAT.c.beats + 1, **values)
    ).rowcount:
        connection.execute(insert(HEARTBEAT), {"id": 1, "beats": 1, **values})


def read_beat(connection: Connection) -> Beat | None:
    """The newest beat; None before the first."""
    row = connection.execute(select(HEARTBEAT)).first()
    if row is None:
        return None
    return Beat(row.head, row.finalized, row.following, row.code, row.message, row.beats)
