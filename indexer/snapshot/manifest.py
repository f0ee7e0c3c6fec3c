"""The manifest: the first block of a snapshot, with its contracts, digests and chunk CIDs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self

import orjson

from capdex.encoding.abi import checksum_address
from capdex.errors import InvalidInput
from capdex.ipld.cid import Cid
from capdex.ipld.unixfs import MAX_BLOCK_BYTES
from capdex.proof.document import Budget, read_number, read_object, read_text, show_hex
from capdex.proof.log_head import LogProof
from capdex.registry.logs import BlockRef, LogHead
from indexer.db.models import REGISTRY, SEQUENCES, VOTES
from indexer.snapshot.archive import damaged
from indexer.store.deployment import Deployment

SCHEMA: Final = "capdex.snapshot/1"
MAX_CHUNKS: Final = 16_384  # a manifest is one block: 16 GiB of events
MAX_INTEGER: Final = 2**63 - 1  # of either database

Json = dict[str, Any]

_KEYS: Final = (
    *("schema", "chain_id", "genesis", "block", "decoder_version", "rules_version"),
    *("registry", "votes", "packages"),
)
_BLOCK_KEYS: Final = ("number", "hash", "parent", "timestamp")
_PART_KEYS: Final = (
    *("contract", "start_block", "log_count", "log_head", "index_digest", "content_digest"),
    *("chunks", "proof"),
)


@dataclass(frozen=True, slots=True)
class LogPart:
    """The log of one contract (20 bytes) up to the block: its digests (P14) and chunks of events.

    `content_digest` is for comparison by people: a snapshot contains no verdicts to check it by.
    """

    contract: bytes
    start_block: int
    log: LogHead
    index_digest: bytes
    content_digest: bytes | None
    chunks: tuple[Cid, ...]
    proof: LogProof | None

    def to_json(self) -> Json:
        """Return the JSON of this log in the manifest."""
        content = self.content_digest
        return {
            "contract": checksum_address(self.contract),
            "start_block": self.start_block,
            "log_count": self.log.count,
            "log_head": show_hex(self.log.head),
            "index_digest": show_hex(self.index_digest),
            "content_digest": None if content is None else show_hex(content),
            "chunks": [cid.text for cid in self.chunks],
            "proof": None if self.proof is None else self.proof.to_json(),
        }

    @classmethod
    def parse(cls, value: Any, budget: Budget) -> Self:
        """Parse the JSON; raises ValueError, InvalidInput or VerificationFailure."""
        given = read_object(value, _PART_KEYS)
        chunks, content, proof = (given[x] for x in ("chunks", "content_digest", "proof"))
        if not isinstance(chunks, list) or len(chunks) > MAX_CHUNKS:
            raise ValueError("its chunks are no list, or too many")
        count = _number(given["log_count"])
        if count >= SEQUENCES:
            raise ValueError("it has more events than an index takes")
        return cls(
            budget.data(read_text(given["contract"]).lower(), 20),
            _number(given["start_block"]),
            LogHead(budget.data(given["log_head"], 24), count),
            budget.data(given["index_digest"], 32),
            None if content is None else budget.data(content, 32),
            tuple([Cid.parse(read_text(x)) for x in chunks]),
            None if proof is None else LogProof.parse(proof),
        )


@dataclass(frozen=True, slots=True)
class SnapshotManifest:
    """The claims of a snapshot about itself; `packages` is the number of its package blocks."""

    chain_id: int
    genesis: bytes
    block: BlockRef
    decoder_version: int
    rules_version: int
    registry: LogPart
    votes: LogPart | None
    packages: int

    @property
    def parts(self) -> dict[int, LogPart]:
        """The logs by deployment id, in the order of the file."""
        return {REGISTRY: self.registry} | ({VOTES: self.votes} if self.votes else {})

    def deployment(self, part: LogPart) -> Deployment:
        """Return the contract of a log as a deployment of an index."""
        contract = checksum_address(part.contract)
        return Deployment(self.chain_id, contract, part.start_block, self.genesis)

    def to_bytes(self) -> bytes:
        """Encode the manifest canonically; raises InvalidInput if it is too large for a block."""
        document = {
            "schema": SCHEMA,
            "chain_id": self.chain_id,
            "genesis": show_hex(self.genesis),
            "block": {
                "number": self.block.number,
                "hash": show_hex(self.block.hash),
                "parent": show_hex(self.block.parent),
                "timestamp": self.block.timestamp,
            },
            "decoder_version": self.decoder_version,
            "rules_version": self.rules_version,
            "registry": self.registry.to_json(),
            "votes": None if self.votes is None else self.votes.to_json(),
            "packages": self.packages,
        }
        data = orjson.dumps(document)
        if len(data) > MAX_BLOCK_BYTES:
            raise InvalidInput("the index has more events than a snapshot can list")
        return data

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """Parse the block; raises InvalidInput, or VerificationFailure for a malformed proof."""
        try:
            return cls._parse(orjson.loads(data))
        except (ValueError, InvalidInput) as error:
            raise damaged(f"its manifest is malformed: {error}") from None

    @classmethod
    def _parse(cls, document: Any) -> Self:
        given, budget = read_object(document, _KEYS), Budget(1 << 20)
        if given["schema"] != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        block, votes = read_object(given["block"], _BLOCK_KEYS), given["votes"]
        return cls(
            _number(given["chain_id"]),
            budget.data(given["genesis"], 32),
            BlockRef(
                _number(block["number"]),
                budget.data(block["hash"], 32),
                budget.data(block["parent"], 32),
                _number(block["timestamp"]),
            ),
            _number(given["decoder_version"]),
            _number(given["rules_version"]),
            LogPart.parse(given["registry"], budget),
            None if votes is None else LogPart.parse(votes, budget),
            _number(given["packages"]),
        )


def _number(value: Any) -> int:
    if (number := read_number(value)) > MAX_INTEGER:
        raise ValueError("a number is larger than an index takes")
    return number
