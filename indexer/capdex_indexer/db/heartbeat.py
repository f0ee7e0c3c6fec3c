"""The writer's heartbeat: one row from which readers and standbys see that the writer is alive.

`beats` goes up with each beat. Observers time its changes by their own monotonic clock, so the
clocks of two machines are never compared.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

from sqlalchemy import Connection, insert, select, update

from capdex_indexer.db.models import HEARTBEAT
from capdex_indexer.projection.event_rows import MAX_REASON_CHARS, storable

BEAT_S: Final = 2.0  # a standby takes over within 10 s: a few of these


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The chain's head, whether the writer follows it, and the writer's error if it has one.

    `code` is empty without an error; `message` is its meaning, never the error's own text.
    The database counts `beats`.
    """

    head: int
    finalized: int
    following: bool
    code: str = ""
    message: str = ""
    beats: int = 0


def write_heartbeat(connection: Connection, beat: Heartbeat) -> None:
    """Replace the previous beat and count it."""
    values = asdict(beat) | {"message": storable(beat.message, MAX_REASON_CHARS)}
    counted = values | {"beats": HEARTBEAT.c.beats + 1}
    if not connection.execute(update(HEARTBEAT).values(counted)).rowcount:
        connection.execute(insert(HEARTBEAT), values | {"id": 1, "beats": 1})


def read_heartbeat(connection: Connection) -> Heartbeat | None:
    """The newest beat; None before the first."""
    row = connection.execute(select(HEARTBEAT)).first()
    if row is None:
        return None
    return Heartbeat(row.head, row.finalized, row.following, row.code, row.message, row.beats)
