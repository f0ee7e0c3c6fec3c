"""Proof of a contract's log slot at a block: the number of events, and their running hash.

Events that fold to the word of this slot are complete and unchanged (P13).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self

from capdex.encoding.abi import checksum_address
from capdex.proof.block_header import MAX_HEADER_BYTES, BlockHeader, verify_header
from capdex.proof.document import (
    Budget,
    Slot,
    read_number,
    read_object,
    read_text,
    refused,
    show_hex,
)
from capdex.proof.storage_layout import WORD
from capdex.proof.verify import Anchor, read_account, read_slot
from capdex.registry.logs import LogHead

SCHEMA: Final = "capdex.log-proof/1"
LOG_SLOT: Final = bytes(WORD)  # slot 0 of the registry and of the votes contract
MAX_PROOF_BYTES: Final = 256 * 1024  # twice the size of proofs with the largest possible nodes

_KEYS: Final = (
    *("schema", "chain_id", "contract", "block_number", "block_hash"),
    *("header", "account_proof", "slot"),
)

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LogProof:
    """A parsed document of the right shape and size; it proves nothing before `verify_log`."""

    chain_id: int
    contract: bytes
    block_number: int
    block_hash: bytes
    header: bytes
    account_proof: tuple[bytes, ...]
    slot: Slot

    @classmethod
    def parse(cls, document: Any) -> Self:
        """Parse any JSON value as a document; raises VerificationFailure BAD_PROOF."""
        try:
            given = read_object(document, _KEYS)
            if given["schema"] != SCHEMA:
                raise ValueError(f"its schema is not {SCHEMA}")
            budget = Budget(MAX_PROOF_BYTES)
            return cls(
                read_number(given["chain_id"]),
                budget.data(read_text(given["contract"]).lower(), 20),
                read_number(given["block_number"]),
                budget.data(given["block_hash"], 32),
                budget.upto(given["header"], MAX_HEADER_BYTES),
                budget.nodes(given["account_proof"]),
                budget.slot(given["slot"]),
            )
        except ValueError as error:
            raise refused("it is not a proof of a log head", str(error)) from None

    def to_json(self) -> Json:
        """Return the document as a JSON value."""
        return {
            "schema": SCHEMA,
            "chain_id": self.chain_id,
            "contract": checksum_address(self.contract),
            "block_number": self.block_number,
            "block_hash": show_hex(self.block_hash),
            "header": show_hex(self.header),
            "account_proof": list(map(show_hex, self.account_proof)),
            "slot": {
                "key": show_hex(self.slot.key),
                "value": show_hex(self.slot.value),
                "proof": list(map(show_hex, self.slot.proof)),
            },
        }


def verify_log(proof: LogProof, anchor: Anchor) -> tuple[BlockHeader, LogHead]:
    """Return the block and the log head of the contract there, given the trusted `anchor`.

    Raises VerificationFailure BAD_PROOF.
    """
    if (proof.chain_id, proof.contract) != (anchor.chain_id, anchor.contract):
        raise refused("it is of another contract")
    block = verify_header(proof.header, anchor.block_hash)
    if (proof.block_number, proof.block_hash) != (block.number, block.hash):
        raise refused("it names another block than its header does")
    try:
        if proof.slot.key != LOG_SLOT:
            raise ValueError("it is of another slot than the log's")
        root, _ = read_account(block.state_root, proof.contract, proof.account_proof)
        word = read_slot(root, proof.slot)
    except ValueError as error:
        raise refused("it does not lead from the block to what it claims", str(error)) from None
    return block, LogHead(word[:24], int.from_bytes(word[24:], "big"))
