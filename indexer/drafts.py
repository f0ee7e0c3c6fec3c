"""What one log says by itself: all of its rows but for its place among the other logs.

A draft is a function of its log alone, so any process may make it. What the log before it decides
(its place in the log slot, whether a version was announced before) the writer adds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from capdex.errors import InvalidInput
from capdex.events import Event, LogPosition, Published, RawLog, decode
from capdex.logs import entry
from capdex.net.wire import read_logs, read_times
from indexer import rows
from indexer.rows import Announced

# Drafts as plain tuples, which go from process to process in a fifth of the time, and the times of
# their blocks (seconds, by number).
Reading = tuple[list[tuple[Any, ...]], dict[int, int]]


class Draft(NamedTuple):
    """A log with its topics joined, its `entry` in the log head, and the release it announces.

    `release` is None for everything that is not a publication to be judged by its bytes.
    """

    address: bytes
    block_number: int
    block_hash: bytes
    tx_hash: bytes
    log_index: int
    topics: bytes
    data: bytes
    entry: bytes
    release: Announced | None

    @property
    def log(self) -> RawLog:
        """The log itself."""
        topics = tuple(self.topics[i : i + 32] for i in range(0, len(self.topics), 32))
        at = LogPosition(self.block_number, self.block_hash, self.tx_hash, self.log_index)
        return RawLog(self.address, topics, self.data, at)

    @property
    def sequence(self) -> int:
        """The sequence number that it claims: the first word of its data (P13)."""
        return int.from_bytes(self.data[:32], "big")


def draft(log: RawLog, chain_id: int) -> Draft:
    """All that follows from one log of a chain."""
    event, release = read_event(log, chain_id), None
    if isinstance(event, Published):
        claim = rows.claim(event)
        if claim.rejected is None:
            release = rows.announced(claim)
    address, topics, data, at = log
    return Draft(address, *at, b"".join(topics), data, entry(log), release)


def read_event(log: RawLog, chain_id: int) -> Event | InvalidInput:
    """What a log says, or why it says nothing."""
    try:
        return decode(log, chain_id)
    except InvalidInput as error:
        return error


def read_drafts(value: Any, address: bytes, first: int, last: int, chain_id: int) -> Reading:
    """The drafts of an `eth_getLogs` reply, and what it says of its blocks' times.

    Raises ValueError as `capdex.net.wire.read_logs` does.
    """
    logs = read_logs(value, address, first, last)
    return [tuple(draft(log, chain_id)) for log in logs], read_times(value)
