"""Health of a node: from its own progress along the chain, or from the writer's heartbeat."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Final

from capdex.errors import CapdexError, Code, Unavailable
from capdex.net.rpc.endpoint import EndpointState
from capdex.net.rpc.errors import RpcError
from capdex.registry.logs import BlockRef
from capdex_indexer.db.heartbeat import Heartbeat
from capdex_indexer.query.status import Position
from capdex_indexer.sync.loop import SyncProgress

DEPTHS: Final = {"1": 1, "2-12": 12, "13-64": 64, "65+": 1 << 62}  # buckets of reorg depth
# A standby takes over within 10 s: readers stay ready meanwhile.
WRITER_SILENT_S: Final = 30.0
HEAD_SEEN_S: Final = 30.0  # an endpoint that hangs is found out after fifty
MAX_SKEW_S: Final = 900.0  # clocks are set to a second; blocks may come minutes late

NO_JUDGE: Final = "the processes that judge packages are killed or do not start"
NO_ROOM: Final = "the directory of packages takes no new one"

HealthFault = dict[str, str]


@dataclass(slots=True)
class Health:
    """State behind `/ready`, `/status` and `/metrics`.

    `clock` gives epoch seconds and may be wrong; `timer` is monotonic.
    """

    clock: Callable[[], float] = time.time
    timer: Callable[[], float] = time.monotonic
    at: SyncProgress = field(default_factory=SyncProgress)
    following: bool = False
    writes: bool = False  # this node is the index's writer
    refused: Unavailable | None = None  # why the database cannot be written
    unread: CapdexError | None = None  # why it cannot be read
    kept_out: Unavailable | None = None  # why this node cannot become the writer
    reorgs: dict[str, int] = field(default_factory=lambda: dict.fromkeys(DEPTHS, 0))
    skew_s: float | None = None  # the clock less the chain's, if over MAX_SKEW_S
    judging_fails: Callable[[], bool] = lambda: False
    keeping_fails: Callable[[], bool] = lambda: False
    endpoints: Callable[[], Sequence[EndpointState]] = tuple
    followed: asyncio.Event = field(default_factory=asyncio.Event)  # this writer was at the head
    _watching: bool = False
    _at_head_at: float | None = None
    _beat: Heartbeat | None = None
    _last_beat_at: float | None = None

    def report(self, progress: SyncProgress) -> None:
        """Record one progress report of the sync loop."""
        before, self.at, self._watching = self.at, progress, False
        if progress.undone:
            self.reorgs[next(k for k, limit in DEPTHS.items() if progress.undone <= limit)] += 1
        if progress.trouble is not None:
            self.following = False  # the chain may have advanced meanwhile
        elif self._at_head:
            self._compare_clock(before)
            self.following, self._at_head_at = True, self.timer()
            self.followed.set()

    def observe(self, position: Position, beat: Heartbeat | None) -> None:
        """Record the database's position and heartbeat while another process writes it."""
        if beat is not None and self._beat is not None and beat.beats != self._beat.beats:
            self._last_beat_at = self.timer()
        self._beat, self._watching, self.refused, self.unread = beat, True, None, None
        trouble = None
        if beat and beat.code:
            code = Code(beat.code) if beat.code in set(Code) else Code.INTERNAL  # a newer version's
            trouble = Unavailable(beat.message, code)
        head, finalized = (beat.head, beat.finalized) if beat else (0, 0)
        block = None
        if position.block_number is not None:
            digest = bytes.fromhex(str(position.block_hash)[2:])
            block = BlockRef(position.block_number, digest, b"", position.timestamp or 0)
        self.at = SyncProgress(block, max(head, position.head or 0), finalized, trouble=trouble)
        self.following = beat is not None and beat.following
        if self._at_head and not self._writer_silence():
            self._at_head_at = self.timer()

    def written(self) -> None:
        """Record that the database took a heartbeat of this node."""
        self.refused, self._last_beat_at = None, self.timer()

    def beat(self) -> Heartbeat:
        """Return the heartbeat for the other processes."""
        trouble = self._trouble()
        code, message = (str(trouble.code), trouble.kind.meaning) if trouble else ("", "")
        return Heartbeat(self.at.head, self.at.finalized, self.following, code, message)

    def faults(self) -> list[HealthFault]:
        """Return why the node is not ready; empty if it is.

        Everyone may read this: a code and its meaning. The text of an error may contain an
        endpoint's address and what the endpoint says, and with them an API key: it is only logged.
        """
        faults = [{"code": str(x.code), "message": self._meaning(x)} for x in self._errors()]
        if self.judging_fails():
            faults.append({"code": "NO_JUDGE", "message": NO_JUDGE})
        if self.keeping_fails():
            faults.append({"code": "NO_ROOM", "message": NO_ROOM})
        silence = self._writer_silence()
        if silence and not faults:
            code = "DATABASE_UNAVAILABLE" if self.writes else "NO_WRITER"
            faults = [{"code": code, "message": silence}]
        if not faults and not self.following:
            faults = [{"code": "BACKFILL", "message": self.position()}]
        return faults

    def warning(self) -> str | None:
        """Return a warning for answers: only codes, since endpoints choose their own messages."""
        codes = ", ".join(fault["code"] for fault in self.faults())
        return f"this node may not be up to date ({codes}): see its /ready" if codes else None

    def warnings(self) -> list[HealthFault]:
        """Return what an operator should repair although the node works."""
        if self.skew_s is None:
            return []
        way = "ahead of" if self.skew_s > 0 else "behind"
        words = f"this machine's clock is {abs(self.skew_s):.0f} s {way} the chain's"
        return [{"code": "CLOCK", "message": words}]

    def position(self) -> str:
        """Return the position along the chain as text."""
        if self.at.block is None:
            return "the chain is not read yet"
        return f"at block {self.at.block.number} of {self.at.head}"

    def lag_s(self) -> float | None:
        """Return the seconds the index is behind the chain: 0 at its head, None if unknown.

        The time since it was last at the head, or the age of its newest block if that is less. A
        negative age is ignored: the clock is wrong.
        """
        if self.at.block is None:
            return None
        since_s = [] if self._at_head_at is None else [self.timer() - self._at_head_at]
        well = self._at_head and not self._writer_silence() and not self._errors()
        if well and min(since_s, default=0.0) < HEAD_SEEN_S:
            return 0.0
        age_s = self.clock() - self.at.block.timestamp
        return min([*since_s, *([age_s] if age_s >= 0 else [])], default=None)

    def _errors(self) -> list[CapdexError]:
        """Return what hinders this node, one error of each code."""
        known = (self._trouble(), self.refused, self.kept_out, self.unread)
        return [*{x.code: x for x in known if x is not None}.values()]

    def _trouble(self) -> Unavailable | None:
        """Return what stops the reading; until the chain is known, why no endpoint tells of it."""
        errors = [x.error for x in self.endpoints() if not (self.following or self.at.head)]
        return self.at.trouble or (errors[0] if errors and all(errors) else None)

    def _meaning(self, error: CapdexError) -> str:
        waits = [x.cooldown_s for x in self.endpoints()] if isinstance(error, RpcError) else []
        again = f"; asked again in {max(1, ceil(min(waits)))} s" if waits else ""
        return f"{error.kind.meaning}{again}"

    def _writer_silence(self) -> str:
        """Return since when the writer, this node or a watched one, sent no heartbeat, or empty."""
        if not (self._watching or self.writes):
            return ""
        if self._last_beat_at is None:
            return "" if self.writes else "no node is known to write this index"
        silent_s = self.timer() - self._last_beat_at
        if silent_s < WRITER_SILENT_S:
            return ""
        if self.writes:
            return f"the database has taken no write for {silent_s:.0f} s"
        return f"the last heartbeat of the node that writes this index was {silent_s:.0f} s ago"

    def _compare_clock(self, before: SyncProgress) -> None:
        """Compare the clock with a new block's timestamp."""
        at = self.at.block
        if at is None or at == before.block:
            return
        skew_s = self.clock() - at.timestamp
        if skew_s < -MAX_SKEW_S or self.following:
            self.skew_s = skew_s if abs(skew_s) > MAX_SKEW_S else None

    @property
    def _at_head(self) -> bool:
        at = self.at
        return at.trouble is None and at.block is not None and at.block.number >= at.head
