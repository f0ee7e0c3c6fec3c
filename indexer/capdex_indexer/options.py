"""The options of an index node."""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

import msgspec

from capdex.problems import Verdict


class Role(StrEnum):
    """The role of a node: write the index, answer from it, or both."""

    WRITER = "writer"
    READER = "reader"
    BOTH = "both"

    @property
    def writes(self) -> bool:
        """True if the node takes the writer lease."""
        return self is not Role.READER

    @property
    def serves(self) -> bool:
        """True if the node answers clients, not only its operator."""
        return self is not Role.WRITER


class NodeOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """The options of a node; with `start_block` None the registry's first block is searched for.

    `votes` is the contract of votes beside the registry. With `standby` the node waits for the
    writer lease while another node holds it. A reader needs only `db`, `blocks` and `serve`.
    With `semantic` it searches by meaning, too, which needs the extra of this name.
    `keep_files` are the bytes on disk for files that packages name (P10c); 0 keeps none.
    `clock` returns seconds since the epoch; it may be wrong, and be corrected while the node runs.
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
    semantic: bool = False
    keep_files: int = 0
    clock: Callable[[], float] = time.time
