"""Export an index as one file from its database (a node may be writing it) and block directory.

Everything is read in one transaction, so it is of one state of the index. Rows are read twice: the
manifest comes first in the file and needs the CIDs of all chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, select

from capdex.encoding.abi import raw_address
from capdex.errors import Code, InvalidInput, Unavailable
from capdex.ipld.car import write_block, write_header
from capdex.ipld.cid import Cid
from capdex.net.files import overwriting
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.problems import Verdict
from capdex.proof.document import LogProof
from capdex.proof.verify import Anchor, verify_log
from capdex.registry.logs import BlockRef
from capdex_indexer.chain.reader import DEV_CHAIN_ID
from capdex_indexer.db import denylist
from capdex_indexer.db.columns import PENDING
from capdex_indexer.db.engine import reading
from capdex_indexer.db.models import BLOCK, CURSOR, REGISTRY, RELEASE, VOTES
from capdex_indexer.query.digest import (
    AT_CURSOR,
    Digest,
    check_indexed,
    read_digest,
    read_leaves,
    read_votes_digest,
)
from capdex_indexer.query.release import LINTED
from capdex_indexer.snapshot.archive import LogPart, SnapshotManifest, pack
from capdex_indexer.snapshot.reader import Progress


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """The block of a snapshot to be made, and its contracts (20 bytes) by deployment.

    `final` is False if a reorg can still replace the block.
    """

    chain_id: int
    block_number: int
    final: bool
    contracts: dict[int, bytes]


def plan_export(db: str, block: int | None = None) -> ExportPlan:
    """Plan an export at `block` (default: the newest final one; on a development chain the newest).

    Raises InvalidInput for a block that is not indexed, Unavailable if no block is.
    """
    with reading(db) as connection:
        rows = {row.id: row for row in connection.execute(AT_CURSOR)}
        if (registry := rows.get(REGISTRY)) is None:
            raise Unavailable(
                "the index holds no block yet", fix="wait until the node has read some"
            )
        number = registry.number if block is None else block
        check_indexed(number, registry.start_block, registry.number)
        final = min(registry.finalized, registry.number)
        if block is None and registry.chain_id != DEV_CHAIN_ID and final >= registry.start_block:
            number = final
        parts = [REGISTRY, *([VOTES] if _votes(connection, number) else [])]
    contracts = {x: raw_address(rows[x].contract) for x in parts}
    return ExportPlan(registry.chain_id, number, number <= final, contracts)


def export_snapshot(
    db: str,
    blocks: BlockDirectory,
    out: Path,
    block: int,
    *,
    proofs: Mapping[int, LogProof],
    progress: Progress = lambda *_: None,
    with_packages: bool = True,
    on_missing: Callable[[int], None] = lambda count: None,
) -> SnapshotManifest:
    """Write the index at an indexed block to a file, replacing it; return the manifest.

    `proofs` are storage proofs of the contracts' log slots by deployment, if an endpoint gave any.
    `on_missing` gets how many packages `blocks` lacks, but for signed ones: few nodes keep those.
    Raises InvalidInput for a block that is not indexed or whose hash is unknown, or if `blocks` has
    none of the packages that are wanted; Unavailable if the index changed since the proofs were
    made.
    """
    with reading(db) as connection, overwriting(out) as file:
        digests = {REGISTRY: read_digest(connection, block)}
        if (votes := _votes(connection, block)) is not None:
            digests[VOTES] = votes
        digest = digests[REGISTRY]
        parts = {x: _part(connection, x, digests[x], proofs.get(x)) for x in digests}
        wanted = _packages(connection, digest.log.count) if with_packages else {}
        packages = [cid for cid in wanted if blocks.read(cid) is not None]
        manifest = SnapshotManifest(
            digest.chain_id,
            digest.genesis,
            _block(connection, digest, proofs.get(REGISTRY)),
            digest.decoder_version,
            digest.rules_version,
            parts[REGISTRY],
            parts.get(VOTES),
            len(packages),
        )
        verified = sum(verdict == Verdict.VERIFIED for verdict in wanted.values())
        if verified and not packages:
            raise InvalidInput(
                f"{verified} package{'s are' if verified > 1 else ' is'} missing",
                why=f"{blocks.path} has none of those that the index lists",
                fix="name the node's directory with --blocks, or add --without-packages",
            )
        if missing := sum(wanted[cid] != Verdict.SIGNED for cid in wanted.keys() - packages):
            on_missing(missing)
        first = manifest.to_bytes()
        file.write(write_header(Cid.of(first).to_bytes()) + write_block(Cid.of(first), first))
        for deployment_id, part_digest in digests.items():
            chunks = parts[deployment_id].chunks
            pieces = pack(read_leaves(connection, part_digest, deployment_id))
            for count, (cid, chunk) in enumerate(zip(chunks, pieces, strict=True), 1):
                file.write(write_block(cid, chunk))
                progress("chunks of events", count, len(chunks))
        for count, cid in enumerate(packages, 1):
            data = blocks.read(cid)
            if data is None:
                raise _changed(f"the package {cid} is no longer in the block directory")
            file.write(write_block(cid, data))
            progress("packages", count, len(packages))
    return manifest


def _votes(connection: Connection, block: int) -> Digest | None:
    """Return the digest of the votes at a block, if they are indexed that far and not empty.

    Without votes the contract may not exist yet, so its log slot could not be proven.
    """
    digest = read_votes_digest(connection, block)
    if digest is None or digest.block_number != block or not digest.log.count:
        return None
    return digest


def _part(
    connection: Connection, deployment_id: int, digest: Digest, proof: LogProof | None
) -> LogPart:
    contract = raw_address(digest.contract)
    pieces = pack(read_leaves(connection, digest, deployment_id))
    if proof is not None:
        anchor = Anchor(digest.chain_id, contract, proof.block_hash)
        block, log = verify_log(proof, anchor)
        known = digest.block_hash in (None, block.hash)
        if not known or (block.number, log) != (digest.block_number, digest.log):
            raise _changed("the endpoint and the index do not have the same block, or its events")
    return LogPart(
        contract,
        digest.start_block,
        digest.log,
        digest.index,
        digest.content,
        tuple([Cid.of(piece) for piece in pieces]),
        proof,
    )


def _block(connection: Connection, digest: Digest, proof: LogProof | None) -> BlockRef:
    """Return the block with parent and timestamp: from a ring, a cursor, or the proven header."""
    number = digest.block_number
    for table_ in (BLOCK, CURSOR):
        row = connection.execute(select(table_).where(table_.c.number == number)).first()
        if row is not None:
            return BlockRef(number, bytes(row.hash), bytes(row.parent), row.timestamp)
    if proof is None:
        raise InvalidInput(
            f"the index no longer knows the hash of block {number}",
            why="it keeps those of the newest blocks",
            fix="leave --block out, or use an endpoint that keeps the state of that block",
        )
    header, _ = verify_log(proof, Anchor(proof.chain_id, proof.contract, proof.block_hash))
    return BlockRef(number, header.hash, header.parent, header.timestamp)


def _packages(connection: Connection, count: int) -> dict[Cid, str | None]:
    """Return the packages of releases up to an event, without denied ones, and their verdicts.

    Those that wait to be judged belong to them: after an import, these are all.
    """
    denials = denylist.read_with_digests(connection)
    query = select(RELEASE.c.name, RELEASE.c.cid, RELEASE.c.sha256, RELEASE.c.verdict).where(
        RELEASE.c.verdict.in_(sorted(LINTED)) | PENDING, RELEASE.c.sequence <= count
    )
    packages: dict[Cid, str | None] = {}
    for name, cid, digest, verdict in connection.execute(query.order_by(RELEASE.c.sequence)):
        package, denial = Cid.raw(bytes(digest)), denials.of_release(name, cid, bytes(digest))
        if denial is None and packages.get(package) != Verdict.VERIFIED:
            packages[package] = verdict
    return packages


def _changed(why: str) -> Unavailable:
    return Unavailable("the index changed while it was read", Code.STALLED, why, "export it again")
