"""Recovery of the chain loop from failures: a pure state machine without I/O, clock or chance.

State: the checkpoint, the failures in a row, and how often logs were missing since the contract
last confirmed a log head.

| event                                      | action                      | next state          |
|--------------------------------------------|-----------------------------|---------------------|
| applied, log head confirmed by contract    |                             | checkpoint here,    |
|                                            |                             | failures, missing 0 |
| applied, log head not served               |                             | failures 0          |
| resumed or applied below the checkpoint    |                             | checkpoint here     |
| missing logs for the 1st, 3rd, 5th … time  | blame, pause                | both counters + 1   |
| missing logs for the 2nd, 4th, 6th … time  | blame, pause, recheck rows  | both counters + 1   |
|                                            | after the checkpoint        |                     |
| missing logs for the 16th, 32nd … time     | blame, pause, recheck all   | both counters + 1   |
| refused by one endpoint of several         | blame, pause                | failures + 1        |
| any other failure                          | pause                       | failures + 1        |

The pause is a random part of 0.25 s × 2^failures, of 5 s at most.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from capdex.errors import Unavailable
from capdex.net.rpc.errors import ELSEWHERE, RpcError
from capdex.registry.logs import BlockRef, LogHead
from capdex_indexer.sync.log_completeness import Checkpoint, MissingLogs

PAUSE_BASE_S = 0.25
PAUSE_CAP_S = 5.0  # a node is to be back within a minute of its endpoints
RECHECK_EVERY = 2  # times that logs are missing: the stored rows may be the wrong ones
RECHECK_ALL_EVERY = 16  # times: then confirmed rows may be wrong, too


@dataclass(frozen=True, slots=True)
class Action:
    """Wait `pause_s`; before that, `blame` the endpoint; after it, `recheck` rows from there."""

    pause_s: float
    blame: bool = False
    recheck: Checkpoint | None = None


@dataclass(frozen=True, slots=True)
class Recovery:
    """The state of the table above; each event returns the next one."""

    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    failures: int = 0
    missing: int = 0

    def resumed(self, block: BlockRef | None, log_head: LogHead) -> Recovery:
        """The loop starts again at the stored `block`, or before the first one (None)."""
        verified = self.checkpoint.block
        if verified and (block is None or block.number < verified.number):
            return replace(self, checkpoint=Checkpoint(block, log_head))
        return self

    def applied(self, block: BlockRef | None, log_head: LogHead, confirmed: bool) -> Recovery:
        """A step up to `block` was stored; `confirmed` if the contract gave `log_head` there."""
        if confirmed:
            return Recovery(Checkpoint(block, log_head))
        return replace(self.resumed(block, log_head), failures=0)

    def failed(
        self, error: Unavailable, *, has_other_endpoints: bool, jitter: float
    ) -> tuple[Recovery, Action]:
        """The loop was interrupted; `jitter` (0 to 1) is the part of the longest pause to wait."""
        failures = self.failures + 1
        pause_s = jitter * min(PAUSE_CAP_S, PAUSE_BASE_S * 2 ** min(failures, 16))
        if not isinstance(error, MissingLogs):
            refused = isinstance(error, RpcError) and error.fault not in ELSEWHERE
            return replace(self, failures=failures), Action(
                pause_s, refused and has_other_endpoints
            )
        missing = self.missing + 1
        recheck = None
        if missing % RECHECK_EVERY == 0:
            recheck = self.checkpoint if missing % RECHECK_ALL_EVERY else Checkpoint()
        state = replace(self, failures=failures, missing=missing)
        return state, Action(pause_s, blame=True, recheck=recheck)
