"""What a node is told before it opens."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from capdex.problems import Verdict


class Role(StrEnum):
    """What a node does: write the index, answer from it, or both."""

    WRITER = "writer"
    READER = "reader"
    BOTH = "both"

    @property
    def writes(self) -> bool:
        """Whether it would have the writer's seat."""
        return self is not Role.READER

    @property
    def serves(self) -> bool:
        """Whether it answers routers, and not its operator alone."""
        return self is not Role.WRITER


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """What a node needs to know; `start_block` None means: find the registry's first block.

    `votes` is the contract of votes beside the registry. A node with `standby` waits for the seat
    of the writer while another has it. A reader needs `db`, `blocks` and `serve` alone. `clock`
    gives seconds since the epoch; it may be wrong, and set right while the node runs.
    """

    rpc_urls: tuple[str, ...]
    chain_id: int
    registry: str
    db: str
    blocks: Path
    ipfs: tuple[str, ...]
    serve: frozenset[Verdict]
    start_block: int | None = None
    finality_depth: int = 64
    poll_interval_s: float = 1.0
    votes: str | None = None
    role: Role = Role.BOTH
    standby: bool = False
    clock: Callable[[], float] = time.time
