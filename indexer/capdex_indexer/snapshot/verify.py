"""Verify a snapshot against the chain before any of it is kept.

The trust anchor is one block hash, from an endpoint or from the operator. A storage proof leads
from it to each contract's log slot, and the events must fold to that slot: so none is missing,
changed or invented. The position of each event is compared with the endpoint's own logs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from capdex.encoding.abi import checksum_address
from capdex.errors import Code, InvalidInput, UsageError, VerificationFailure
from capdex.ipld.cid import RAW
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.proofs import prove_log
from capdex.net.verified_resolve import trusted_block
from capdex.proof.verify import Anchor, verify_log
from capdex.registry.events import Published
from capdex.registry.logs import RawLog
from capdex_indexer.chain.start_block import locate_registry
from capdex_indexer.db.models import DECODER_VERSION, REGISTRY
from capdex_indexer.projection import event_rows as rows
from capdex_indexer.snapshot.archive import (
    LogPart,
    SnapshotManifest,
    damaged,
    of_another_version,
)
from capdex_indexer.snapshot.reader import FoldedEvent, Progress, SnapshotReader, untrue

AT_ONCE: Final = 100  # blocks compared by one batch of headers and one of logs
MAX_ANNOUNCED: Final = 8  # releases of one digest that are tried for a package


@dataclass(frozen=True, slots=True)
class ExpectedIndex:
    """The index that a snapshot must contain; contracts have 20 bytes.

    Votes of another contract than `votes` are left out: anybody can deploy one. `start_block`, if
    given, must equal the snapshot's, because a node does not continue an index from another.
    """

    chain_id: int
    registry: bytes
    votes: bytes | None = None
    start_block: int | None = None


@dataclass(frozen=True, slots=True)
class TrustAnchor:
    """Source of trust for a verification: an endpoint, a 32-byte block hash, or both.

    `index_digest` (32 bytes, from an independent source), if given, must be the snapshot's.
    """

    rpc: Rpc | None = None
    block_hash: bytes | None = None
    index_digest: bytes | None = None


@dataclass(frozen=True, slots=True)
class VerifiedSnapshot:
    """A verified snapshot; `parts` are the logs to restore, by deployment.

    `announced` has the sequence numbers of the releases that announce a digest. `placed` is True if
    an endpoint confirmed the positions of the events, too.
    """

    manifest: SnapshotManifest
    parts: dict[int, LogPart]
    announced: dict[bytes, list[int]]
    placed: bool


async def verify_snapshot(
    path: Path, subject: ExpectedIndex, trust: TrustAnchor, *, progress: Progress = lambda *_: None
) -> VerifiedSnapshot:
    """Read a snapshot to its end, and compare it with the chain.

    Raises InvalidInput for a damaged file or another registry, VerificationFailure BAD_PROOF if it
    contradicts the chain, Refused, RpcError or Unavailable if an endpoint is wrong or unavailable.
    """
    with SnapshotReader.open(path) as snapshot:
        manifest = snapshot.manifest
        _check_subject(manifest, subject)
        if trust.index_digest not in (None, manifest.registry.index_digest):
            raise untrue("its index digest is not the one that is trusted")
        block_hash = await _trusted_hash(manifest, trust)
        announced: dict[bytes, list[int]] = {}
        ours = manifest.votes is not None and manifest.votes.contract == subject.votes
        parts = {x: part for x, part in manifest.parts.items() if x == REGISTRY or ours}
        total, done = sum(part.log.count for part in parts.values()), 0
        for deployment_id, part in manifest.parts.items():
            if deployment_id not in parts:
                snapshot.skip(part)
                continue
            await _check_slot(manifest, part, trust.rpc, block_hash)
            positions = _PositionCheck(trust.rpc, part.contract)
            for entries in snapshot.events(part):
                if deployment_id == REGISTRY:
                    _note_announced(announced, entries, subject.chain_id)
                await positions.add(entries)
                done += len(entries)
                progress("events", done, total)
            await positions.flush()
        for count, (cid, _) in enumerate(snapshot.packages(), 1):
            if cid.codec != RAW or cid.digest not in announced:
                raise damaged(f"no release announces the package {cid}")
            progress("packages", count, manifest.packages)
    return VerifiedSnapshot(manifest, parts, announced, trust.rpc is not None)


def _check_subject(manifest: SnapshotManifest, subject: ExpectedIndex) -> None:
    theirs = (manifest.chain_id, manifest.registry.contract)
    if theirs != (subject.chain_id, subject.registry):
        raise InvalidInput(
            "the snapshot is of another registry",
            why=f"of {checksum_address(theirs[1])} on chain {theirs[0]}, not of "
            f"{checksum_address(subject.registry)} on chain {subject.chain_id}",
            fix="choose its network with --network, or find a snapshot of this one",
        )
    start_block = manifest.registry.start_block
    if subject.start_block not in (None, start_block):
        raise InvalidInput(
            "the snapshot begins at another block than the network does",
            why=f"at {start_block}, and start-block is {subject.start_block}",
            fix="find a snapshot of a node with the same start-block",
        )
    if manifest.decoder_version != DECODER_VERSION:
        raise of_another_version(
            f"its decoder has version {manifest.decoder_version}, not {DECODER_VERSION}"
        )


async def _trusted_hash(manifest: SnapshotManifest, trust: TrustAnchor) -> bytes:
    number, trusted = manifest.block.number, trust.block_hash
    if trust.rpc is not None:
        block, _ = await trusted_block(trust.rpc, chain_id=manifest.chain_id, number=number)
        if trusted not in (None, block.hash):
            raise VerificationFailure(
                f"the endpoint has another block {number} than you trust",
                Code.BAD_PROOF,
                why=f"{trust.rpc.endpoint} says 0x{block.hash.hex()}",
                fix="find out which of the two is wrong",
            )
        registry = manifest.registry
        place = await locate_registry(
            trust.rpc,
            chain_id=manifest.chain_id,
            registry=registry.contract,
            start_block=registry.start_block,
        )
        if place.genesis != manifest.genesis:
            raise untrue("its chain has another first block")
        trusted = block.hash
    if trusted is None:
        raise UsageError(
            "the snapshot cannot be verified without a trusted block hash",
            why="its own claims prove nothing",
            fix=f"add --rpc-url URL, or --trust-block with the hash of block {number}",
        )
    if trusted != manifest.block.hash:
        said = manifest.block.hash.hex()
        raise untrue(f"block {number} is 0x{trusted.hex()}, in the snapshot it is 0x{said}")
    return trusted


async def _check_slot(
    manifest: SnapshotManifest, part: LogPart, rpc: Rpc | None, block_hash: bytes
) -> None:
    """Prove that the contract's log slot is the one in the manifest, to which the events fold."""
    proof, number = part.proof, manifest.block.number
    if proof is None and rpc is not None:
        proof = await prove_log(
            rpc, chain_id=manifest.chain_id, contract=part.contract, block=number
        )
    if proof is None:
        raise InvalidInput(
            "the snapshot holds no proof of its log",
            why="it was exported without an endpoint that could give one",
            fix="name an endpoint with --rpc-url that keeps the state of its block",
        )
    header, log = verify_log(proof, Anchor(manifest.chain_id, part.contract, block_hash))
    block = manifest.block
    claimed = (block.number, block.parent, block.timestamp)
    if claimed != (header.number, header.parent, header.timestamp):
        raise untrue(f"its block {number} does not match the header of its hash")
    if log != part.log:
        raise untrue(f"the contract counts {log.count} events at its block, with another log head")


def _note_announced(
    announced: dict[bytes, list[int]], entries: Sequence[FoldedEvent], chain_id: int
) -> None:
    for entry, _ in entries:
        event = rows.read_event(entry.log, chain_id)
        if isinstance(event, Published):
            releases = announced.setdefault(event.announcement.sha256, [])
            if len(releases) < MAX_ANNOUNCED:
                releases.append(entry.sequence)


class _PositionCheck:
    """Compare the positions of events with an endpoint's logs, some whole blocks at a time."""

    def __init__(self, rpc: Rpc | None, contract: bytes) -> None:
        self._rpc, self._contract = rpc, contract
        self._blocks: dict[int, tuple[int, list[RawLog]]] = {}  # time and logs, by number

    async def add(self, entries: Sequence[FoldedEvent]) -> None:
        """Add the next events."""
        if self._rpc is None:
            return
        for entry, _ in entries:
            number = entry.log.position.block_number
            if number not in self._blocks and len(self._blocks) == AT_ONCE:
                await self.flush()  # all of these blocks are complete
            self._blocks.setdefault(number, (entry.timestamp, []))[1].append(entry.log)

    async def flush(self) -> None:
        """Compare the added blocks; raises VerificationFailure if they differ."""
        blocks, self._blocks = self._blocks, {}
        if self._rpc is None or not blocks:
            return
        headers = []
        for number, block in zip(blocks, await self._rpc.blocks(list(blocks)), strict=True):
            timestamp, logs = blocks[number]
            if block is None:
                raise self._rpc.blame(f"it has no block {number}, below its own head")
            claimed = (number, logs[0].position.block_hash, timestamp)
            if claimed != (block.number, block.hash, block.timestamp):
                raise untrue(f"the chain has another block {number}")
            headers.append(block)
        chain = await self._rpc.logs_at(self._contract, headers)
        for (_, ours), theirs in zip(blocks.values(), chain, strict=True):
            if ours != list(theirs):
                number = ours[0].position.block_number
                raise untrue(f"the chain has other events in block {number}, or at other positions")
