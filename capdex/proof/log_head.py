"""Proof of a contract's log slot at a block: the number of events, and their running hash.

Events that fold to the word of this slot are complete and unchanged (P13).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self

from capdex.proof.block_header import BlockHeader
from capdex.proof.document import AccountProof, ByteBudget, Slot, refused
from capdex.proof.storage_layout import WORD
from capdex.proof.verify import Anchor, open_storage, read_slot
from capdex.registry.logs import LogHead

SCHEMA: Final = "capdex.log-proof/1"
LOG_SLOT: Final = bytes(WORD)  # slot 0 of the registry and of the votes contract
MAX_PROOF_BYTES: Final = 256 * 1024  # twice the size of proofs with the largest possible nodes


@dataclass(frozen=True, slots=True)
class LogProof(AccountProof):
    """A parsed document of the right shape and size; it proves nothing before `verify_log`."""

    slot: Slot

    @classmethod
    def parse(cls, document: object) -> Self:
        """Parse any JSON value as a document; raises VerificationFailure BAD_PROOF."""
        budget = ByteBudget(MAX_PROOF_BYTES)
        try:
            given, shared = budget.document(document, SCHEMA, ("slot",))
            return cls(*shared, budget.slot(given["slot"]))
        except ValueError as error:
            raise refused("it is not a proof of a log head", str(error)) from None

    def to_json(self) -> dict[str, Any]:
        """Return the document as a JSON value."""
        return {"schema": SCHEMA, **self.shared_json(), "slot": self.slot.to_json()}


def verify_log(proof: LogProof, anchor: Anchor) -> tuple[BlockHeader, LogHead]:
    """Return the block and the log head of the contract there, given the trusted `anchor`.

    Raises VerificationFailure BAD_PROOF.
    """
    try:
        block, root = open_storage(proof, anchor)
        if proof.slot.key != LOG_SLOT:
            raise ValueError("it is of another slot than the log's")
        word = read_slot(root, proof.slot)
    except ValueError as error:
        raise refused("it does not lead from the block to what it claims", str(error)) from None
    return block, LogHead(word[:24], int.from_bytes(word[24:], "big"))
