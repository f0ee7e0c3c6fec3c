"""Whether the node is well: what its walk along the chain last said."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from indexer.sync import Progress

DEPTHS: Final = {"1": 1, "2-12": 12, "13-64": 64, "65+": 1 << 62}  # buckets of reorg depth


@dataclass(slots=True)
class Health:
    """What `/ready`, `/status` and `/metrics` say of the node; `clock` gives epoch seconds."""

    clock: Callable[[], float] = time.time
    at: Progress = field(default_factory=Progress)
    following: bool = False
    reorgs: dict[str, int] = field(default_factory=lambda: dict.fromkeys(DEPTHS, 0))

    def report(self, progress: Progress) -> None:
        """Take in one report of `indexer.sync.index`."""
        self.at = progress
        if progress.undone:
            self.reorgs[next(k for k, limit in DEPTHS.items() if progress.undone <= limit)] += 1
        if progress.trouble is not None:
            self.following = False  # who knows how far the chain went on meanwhile
        elif self._at_head:
            self.following = True

    def faults(self) -> list[dict[str, str]]:
        """Why the node is not ready; empty when it is."""
        trouble = self.at.trouble
        if trouble is not None:
            why = f"{trouble.message}: {trouble.why}".removesuffix(": ")
            return [{"code": str(trouble.code), "message": why}]
        if not self.following:
            return [{"code": "BACKFILL", "message": self.position()}]
        return []

    def position(self) -> str:
        """Where the walk is, for people."""
        if self.at.block is None:
            return "before the first block"
        return f"at block {self.at.block.number} of {self.at.head}"

    def lag_s(self) -> float | None:
        """Seconds the index is behind the chain: 0 at its head, None before the first block."""
        if self.at.block is None:
            return None
        if self._at_head:
            return 0.0
        return max(0.0, self.clock() - self.at.block.timestamp)

    @property
    def _at_head(self) -> bool:
        at = self.at
        return at.trouble is None and at.block is not None and at.block.number >= at.head
