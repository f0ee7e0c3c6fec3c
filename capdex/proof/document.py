"""Proof documents: the registry's state of a name at a block, proven by the block hash (P13, P15).

A document contains the block's header, the contract's account (EIP-1186) and the storage slots that
its claim needs, each with its Merkle proof.

kind exact   digest of name@version; if there is one, the release at `index`: version and flags
kind list    the name's record, then every release: word, long version, digest (nothing is left out)

This module only parses, within bounds; `capdex.proof.verify` checks what the document proves.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from capdex.encoding.abi import checksum_address
from capdex.encoding.hexadecimal import to_hex
from capdex.errors import Code, InvalidInput, VerificationFailure
from capdex.json import Json
from capdex.proof.block_header import MAX_HEADER_BYTES
from capdex.proof.storage_layout import WORD
from capdex.proof.trie import MAX_NODE_BYTES, MAX_NODES
from capdex.uri import check_name
from capdex.version import Version

SCHEMA: Final = "capdex.proof/1"
MAX_RELEASES: Final = 1000  # of one name in one list: 11 MB on a registry of a million slots
MAX_SLOTS: Final = 1 + 5 * MAX_RELEASES  # a release has its word, its digest, a long version (3)
MAX_PROOF_BYTES: Final = 8 * 1024 * 1024  # all data together, before any of it is decoded

LOG_SCHEMA: Final = "capdex.log-proof/1"
LOG_SLOT: Final = bytes(WORD)  # slot 0 of the registry and of the votes contract
MAX_LOG_PROOF_BYTES: Final = 256 * 1024  # twice the size of proofs with the largest possible nodes

_DATA: Final = re.compile(r"0x(?:[0-9a-f]{2})*")


class ProofKind(StrEnum):
    """The claim of a document: one exact release, or the whole list of a name."""

    EXACT = "exact"
    LIST = "list"


@dataclass(frozen=True, slots=True)
class Slot:
    """One storage slot: key, 32-byte word, and the trie nodes that prove it, root first."""

    key: bytes
    value: bytes
    proof: tuple[bytes, ...]

    def to_json(self) -> Json:
        """Return the slot as a JSON value."""
        nodes = list(map(to_hex, self.proof))
        return {"key": to_hex(self.key), "value": to_hex(self.value), "proof": nodes}


@dataclass(frozen=True, slots=True)
class AccountProof:
    """The part that all documents share: a block's header, and the contract's account in it."""

    chain_id: int
    contract: bytes
    block_number: int
    block_hash: bytes
    header: bytes
    account_proof: tuple[bytes, ...]

    def shared_json(self) -> Json:
        """Return this part as members of a JSON object."""
        return {
            "chain_id": self.chain_id,
            "contract": checksum_address(self.contract),
            "block_number": self.block_number,
            "block_hash": to_hex(self.block_hash),
            "header": to_hex(self.header),
            "account_proof": list(map(to_hex, self.account_proof)),
        }


@dataclass(frozen=True, slots=True)
class Proof(AccountProof):
    """A parsed document of the right shape and size; it proves nothing before `verify`.

    `semver` is set for kind exact only; `index` too, unless the version does not exist.
    """

    name: str
    semver: str | None
    index: int | None
    slots: tuple[Slot, ...]

    @property
    def kind(self) -> ProofKind:
        """The claim of the document."""
        return ProofKind.LIST if self.semver is None else ProofKind.EXACT

    @classmethod
    def parse(cls, document: object) -> Self:
        """Parse any JSON value as a document; raises VerificationFailure BAD_PROOF."""
        try:
            return cls._parse(document)
        except (ValueError, InvalidInput) as error:
            raise refused("it is not a proof document", str(error)) from None

    @classmethod
    def _parse(cls, document: object) -> Self:
        budget = ByteBudget(MAX_PROOF_BYTES)
        given, shared = budget.document(document, SCHEMA, _KEYS)
        semver, index, slots = given["semver"], given["index"], given["slots"]
        if (ProofKind(given["kind"]) is ProofKind.EXACT) != isinstance(semver, str):
            raise ValueError("kind exact has a version, and kind list has none")
        if not isinstance(slots, list) or not 0 < len(slots) <= MAX_SLOTS:
            raise ValueError("it has no slots, or too many")
        return cls(
            *shared,
            check_name(read_text(given["name"])),
            None if semver is None else str(Version.parse(read_text(semver))),
            None if index is None else read_number(index),
            tuple([budget.slot(x) for x in slots]),
        )

    def to_json(self) -> Json:
        """Return the document as a JSON value."""
        return {
            "schema": SCHEMA,
            "kind": str(self.kind),
            **self.shared_json(),
            "name": self.name,
            "semver": self.semver,
            "index": self.index,
            "slots": [slot.to_json() for slot in self.slots],
        }


@dataclass(frozen=True, slots=True)
class LogProof(AccountProof):
    """A parsed document of the right shape and size; it proves nothing before `verify_log`."""

    slot: Slot

    @classmethod
    def parse(cls, document: object) -> Self:
        """Parse any JSON value as a document; raises VerificationFailure BAD_PROOF."""
        budget = ByteBudget(MAX_LOG_PROOF_BYTES)
        try:
            given, shared = budget.document(document, LOG_SCHEMA, ("slot",))
            return cls(*shared, budget.slot(given["slot"]))
        except ValueError as error:
            raise refused("it is not a proof of a log head", str(error)) from None

    def to_json(self) -> Json:
        """Return the document as a JSON value."""
        return {"schema": LOG_SCHEMA, **self.shared_json(), "slot": self.slot.to_json()}


def refused(what: str, why: str = "", fix: str = "") -> VerificationFailure:
    """Return the error for a proof that proves nothing, or not the claim."""
    return VerificationFailure(
        f"the proof is refused: {what}",
        Code.BAD_PROOF,
        why=why or "the node that sent it is faulty or dishonest",
        fix=fix or "ask again, then another node; do not use anything of this answer",
    )


# reading JSON -------------------------------------------------------------------------------

_SLOT_KEYS: Final = ("key", "value", "proof")
_SHARED_KEYS: Final = ("schema", *AccountProof.__slots__)
_KEYS: Final = ("kind", "name", "semver", "index", "slots")


@dataclass(slots=True)
class ByteBudget:
    """Decoder of hex data that limits the sum of all bytes in one document; raises ValueError."""

    left: int

    def document(
        self, value: object, schema: str, own: tuple[str, ...]
    ) -> tuple[Json, tuple[int, bytes, int, bytes, bytes, tuple[bytes, ...]]]:
        """Decode a document of this schema with these own members: it, and its AccountProof."""
        given = read_object(value, (*_SHARED_KEYS, *own))
        if given["schema"] != schema:
            raise ValueError(f"its schema is not {schema}")
        return given, (
            read_number(given["chain_id"]),
            self.data(read_text(given["contract"]).lower(), 20),
            read_number(given["block_number"]),
            self.data(given["block_hash"], 32),
            self.upto(given["header"], MAX_HEADER_BYTES),
            self.nodes(given["account_proof"]),
        )

    def upto(self, value: object, limit: int) -> bytes:
        """Decode data of at most `limit` bytes."""
        text = read_text(value)
        self.left -= len(text) // 2
        if len(text) > 2 + 2 * limit or self.left < 0:
            raise ValueError("some data is too large")
        if not _DATA.fullmatch(text):
            raise ValueError("some data is not hexadecimal, in lower case")
        return bytes.fromhex(text[2:])

    def data(self, value: object, size: int) -> bytes:
        """Decode data of exactly `size` bytes."""
        decoded = self.upto(value, size)
        if len(decoded) != size:
            raise ValueError(f"some data has {len(decoded)} bytes, not {size}")
        return decoded

    def nodes(self, value: object) -> tuple[bytes, ...]:
        """Decode the trie nodes of one proof."""
        if not isinstance(value, list) or len(value) > MAX_NODES:
            raise ValueError("a proof is not a list of nodes, or is too long")
        return tuple([self.upto(node, MAX_NODE_BYTES) for node in value])

    def slot(self, value: object) -> Slot:
        """Decode a slot with its word and its proof."""
        given = read_object(value, _SLOT_KEYS)
        key, word = (self.data(given[x], WORD) for x in ("key", "value"))
        return Slot(key, word, self.nodes(given["proof"]))


def read_object(value: object, keys: tuple[str, ...]) -> Json:
    """Return `value` if it is an object with exactly these members; else raise ValueError."""
    if not isinstance(value, dict) or set(value) != set(keys):
        raise ValueError(f"an object does not have just {', '.join(keys)}")
    return value


def read_text(value: object) -> str:
    """Return `value` if it is a string; else raise ValueError."""
    if not isinstance(value, str):
        raise ValueError("a string is expected")
    return value


def read_number(value: object) -> int:
    """Return `value` if it is an unsigned 64-bit integer; else raise ValueError."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**64:
        raise ValueError("an unsigned 64-bit integer is expected")
    return value
