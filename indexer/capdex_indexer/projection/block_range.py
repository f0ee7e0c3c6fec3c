"""Block ranges of the chain, with the rows of their logs as far as each log decides them alone.

Any process may make these rows, so replies are decoded in the workers. The parts that earlier logs
decide (the log head, whether a version was announced before) are added by the writer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from capdex.encoding.abi import account, publication
from capdex.errors import InvalidInput
from capdex.net.rpc.types import read_logs, read_times
from capdex.package import fast_name
from capdex.registry.events import PUBLISHED
from capdex.registry.logs import BlockRef, LogColumns, LogHead, RawLog
from capdex.uri import name_id
from capdex_indexer.projection.event_rows import Announced, announced


@dataclass(frozen=True, slots=True)
class LogRows:
    """Logs by column; beside each its `entry` in the log head and the release it announces.

    A release is None for everything but a well-formed publication.
    """

    logs: LogColumns = field(default_factory=LogColumns)
    entries: list[bytes] = field(default_factory=list)
    releases: list[Announced | None] = field(default_factory=list)

    @classmethod
    def of(cls, logs: LogColumns | Iterable[RawLog]) -> LogRows:
        """Return the rows of these logs."""
        if not isinstance(logs, LogColumns):
            logs = LogColumns.of(logs)
        return cls(logs, logs.entries(), list(map(_release, logs.topics, logs.data)))

    def __len__(self) -> int:
        return len(self.entries)

    def __add__(self, more: LogRows) -> LogRows:
        entries, releases = self.entries + more.entries, self.releases + more.releases
        return LogRows(self.logs + more.logs, entries, releases)


@dataclass(frozen=True, slots=True)
class LogReader:
    """Reader of `eth_getLogs` replies about one contract and a range of blocks."""

    address: bytes
    first: int
    last: int

    def __call__(self, value: Any) -> tuple[LogRows, dict[int, int]]:
        """Return the rows of a reply, and the times of its blocks (seconds) by number.

        Raises ValueError as `capdex.net.rpc.types.read_logs` does.
        """
        logs = read_logs(value, self.address, self.first, self.last)
        return LogRows.of(logs), read_times(value)


class ChainChanged(Exception):
    """The chain changed, or the endpoint contradicted itself, between two calls: read again."""


@dataclass(frozen=True, slots=True)
class BlockRange:
    """A contiguous range of the canonical chain after the cursor, up to and including `upto`.

    `log_rows` are of its logs in canonical order (block, log index); `times` are the timestamps of
    their blocks in seconds, by number. `blocks` are those whose headers were read, with `upto`.
    `head` and `finalized` are the block numbers that the endpoint reported.
    """

    log_rows: LogRows
    times: Mapping[int, int]
    blocks: tuple[BlockRef, ...]
    upto: BlockRef
    head: int
    finalized: int
    log_head: LogHead | None = None  # the contract's own after `upto`; None where not served

    def then(self, more: BlockRange) -> BlockRange:
        """Return this range joined with the one that follows it."""
        log_rows, times = self.log_rows + more.log_rows, {**self.times, **more.times}
        blocks = self.blocks + more.blocks
        return BlockRange(
            log_rows, times, blocks, more.upto, more.head, more.finalized, more.log_head
        )


@dataclass(frozen=True, slots=True)
class Reorg:
    """Everything above `fork` is gone from the canonical chain."""

    fork: BlockRef


def _release(topics: bytes, data: bytes) -> Announced | None:
    if len(topics) != 96 or not topics.startswith(PUBLISHED):
        return None
    try:
        publisher, fields = account(topics[64:]), publication(data)
    except InvalidInput:
        return None
    _, cap_uri, semver, cid, sha256 = fields
    name = fast_name(cap_uri, semver, cid, sha256)
    if name is None or name_id(name) != topics[32:64]:
        return None
    return announced(name, publisher, cap_uri, semver, cid, sha256)
