"""Read a snapshot file once from its beginning: events, folded to a log head, then packages.

Every block is checked by its CID, and must be the one that the manifest lists. `verify` compares
the events with the chain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from capdex.errors import Code, UsageError, VerificationFailure
from capdex.ipld.cid import Cid
from capdex.limits import MAX_PACKAGE_BYTES
from capdex.registry.logs import LogHead
from capdex_indexer.snapshot.archive import (
    EventRecord,
    LogPart,
    SnapshotManifest,
    damaged,
    read_blocks,
    read_root,
    unpack,
)

Progress = Callable[[str, int, int], None]  # unit, done, total
FoldedEvent = tuple[EventRecord, LogHead]  # with the contract's log slot after it


@dataclass(slots=True)
class SnapshotReader:
    """An open snapshot; read the events of each log in the manifest's order, then the packages."""

    manifest: SnapshotManifest
    _blocks: Iterator[tuple[Cid, bytes]]

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[Self]:
        """Open a file and read its manifest; raises InvalidInput, or UsageError if unreadable."""
        try:
            if path.is_fifo():
                raise OSError(0, "it is a pipe, and a snapshot is read twice")
            file = path.open("rb")
        except OSError as error:
            raise UsageError(
                f"cannot read {path}", Code.UNREADABLE, error.strerror or "", "name a file"
            ) from None
        with file:
            root, blocks = read_root(file), read_blocks(file)
            cid, first = next(blocks, (None, b""))
            if cid != root:
                raise damaged("its first block is not the root")
            yield cls(SnapshotManifest.parse(first), blocks)

    def events(self, part: LogPart) -> Iterator[list[FoldedEvent]]:
        """Iterate over the events of a log, chunk by chunk.

        Raises InvalidInput if the file is damaged, VerificationFailure if the events are out of
        order, or do not fold to the log slot in the manifest.
        """
        log, before = LogHead(), None
        for expected in part.chunks:
            entries = []
            for record in unpack(self._take(expected), part.contract):
                self._check_position(part, record, before, log.count + 1)
                log, before = log.fold(record.log), record
                entries.append((record, log))
            yield entries
        if log != part.log:
            raise untrue(f"its {log.count} events do not fold to its log head")

    def skip(self, part: LogPart) -> None:
        """Skip the events of a log."""
        for expected in part.chunks:
            self._take(expected)

    def packages(self) -> Iterator[tuple[Cid, bytes]]:
        """Iterate over the packages; raises InvalidInput if their number or a size is wrong."""
        count = 0
        for cid, data in self._blocks:
            count += 1
            if len(data) > MAX_PACKAGE_BYTES:
                raise damaged(f"the block {cid} is too large for a package")
            yield cid, data
        if count != self.manifest.packages:
            raise damaged(f"it holds {count} packages, not {self.manifest.packages}")

    def _take(self, expected: Cid) -> bytes:
        cid, block = next(self._blocks, (None, b""))
        if cid != expected:
            raise damaged(f"the block {expected} is missing or in another place")
        return block

    def _check_position(
        self, part: LogPart, record: EventRecord, before: EventRecord | None, sequence: int
    ) -> None:
        at, block = record.log.position, self.manifest.block
        if record.sequence != sequence:
            raise untrue(f"event {record.sequence} is in the place of event {sequence}")
        if not part.start_block <= at.block_number <= block.number:
            raise untrue(f"event {sequence} is of block {at.block_number}, outside of its range")
        here = (at.block_number, at.block_hash, record.timestamp)
        newest = (block.number, block.hash, block.timestamp)
        if (here[0] == newest[0] and here != newest) or here[2] > newest[2]:
            raise untrue(f"the block of event {sequence} contradicts block {block.number}")
        if before is None:
            return
        last = before.log.position
        if (at.block_number, at.log_index) <= (last.block_number, last.log_index):
            raise untrue(f"event {sequence} is not after the one before it")
        there = (last.block_number, last.block_hash, before.timestamp)
        if (here[0] == there[0] and here != there) or here[2] < there[2]:
            raise untrue(f"the block of event {sequence} contradicts the event before it")


def untrue(why: str) -> VerificationFailure:
    """Return the error for a complete snapshot that does not agree with the chain or itself."""
    return VerificationFailure(
        "the snapshot is not true",
        Code.BAD_PROOF,
        why=why,
        fix="do not trust its source; index from the chain, or use another snapshot",
    )
