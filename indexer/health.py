"""Whether the node is well: what each of its loops last said."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from capdex.errors import CapdexError


DEPTHS: Final = {"1": 1, "2-12": 12, "13-64": 64, "65+": 1 << 62}  # buckets of reorg depth


@dataclass(slots=True)
class Health:
    """The node's state of mind, written by its loops and read by `/ready` and `/status`.

    `clock` gives seconds since the epoch.
    """

    clock: Callable[[], float] = time.time
    following: bool = False
    block_number: int | None = None
    head: int | None = None
    block_time: int | None = None
    reorgs: dict[str, int] = field(default_factory=lambda: dict.fromkeys(DEPTHS, 0))
    trouble: dict[str, CapdexError] = field(default_factory=dict)

    def progressed(self, block_number: int, block_time: int, head: int) -> None:
        """The index committed up to this block, while the chain's head was at `head`."""
        self.block_number, self.block_time, self.head = block_number, block_time, head
        self.following = self.following or block_number >= head
        self.trouble.pop("chain", None)

    def reorganised(self, depth: int) -> None:
        """A reorg of `depth` blocks was undone."""
        bucket = next(key for key, limit in DEPTHS.items() if depth <= limit)
        self.reorgs[bucket] += 1

    def troubled(self, loop: str, error: CapdexError) -> None:
        """A loop waits because of `error`; it clears when the loop next succeeds."""
        self.trouble[loop] = error

    def faults(self) -> list[dict[str, str]]:
        """Why the node is not ready; empty when it is."""
        faults = [
            {"loop": loop, "code": str(error.code), "message": error.message}
            for loop, error in self.trouble.items()
        ]
        if not self.following and not faults:
            faults.append({"loop": "chain", "code": "BACKFILL", "message": self.position()})
        return faults

    def position(self) -> str:
        """Where the backfill stands, for people."""
        if self.block_number is None:
            return "starting"
        return f"at block {self.block_number} of {self.head}"

    def lag_s(self) -> float | None:
        """Seconds the index is behind the chain: 0 at the head, None before the first block."""
        if self.block_number is None or self.head is None or self.block_time is None:
            return None
        if self.block_number >= self.head and "chain" not in self.trouble:
            return 0.0
        return max(0.0, self.clock() - self.block_time)
