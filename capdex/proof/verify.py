"""Verify a proof document, or a proof of a contract's log, against a trusted block hash (P13).

Nothing in a document is trusted: every slot key is computed here, and every word is read from the
trie below the state root of the block with the trusted hash.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from capdex.encoding.abi import checksum_address
from capdex.encoding.keccak import keccak
from capdex.errors import InvalidInput
from capdex.proof.block_header import BlockHeader, verify_header
from capdex.proof.document import (
    LOG_SLOT,
    MAX_RELEASES,
    AccountProof,
    LogProof,
    Proof,
    ProofKind,
    Slot,
    refused,
)
from capdex.proof.storage_layout import (
    WORD,
    ZERO,
    NameWord,
    ReleaseWord,
    digest_slot,
    long_semver_slots,
    read_long_semver,
    record_slot,
    release_slot,
)
from capdex.proof.trie import decode_rlp, read_value
from capdex.registry.logs import LogHead
from capdex.version import Version

NO_CODE: Final = keccak(b"")


@dataclass(frozen=True, slots=True)
class Anchor:
    """The trusted values of a verification: chain, contract (20 bytes) and the hash of a block."""

    chain_id: int
    contract: bytes
    block_hash: bytes


@dataclass(frozen=True, slots=True)
class ProvenRelease:
    """One release as stored on chain; `sha256` is 32 bytes."""

    version: Version
    index: int
    sha256: bytes
    yanked: bool
    deprecated: bool


@dataclass(frozen=True, slots=True)
class Proven:
    """The proven state of a name at a block.

    Kind list: `record`, and all `releases` in order of publication. Kind exact: `releases` has that
    release, or is empty if it does not exist.
    """

    kind: ProofKind
    block: BlockHeader
    record: NameWord | None
    releases: tuple[ProvenRelease, ...]


def verify(proof: Proof, anchor: Anchor) -> Proven:
    """Verify `proof` against the trusted `anchor`; raises VerificationFailure BAD_PROOF."""
    try:
        block, storage_root = open_storage(proof, anchor)
        words = _Words(storage_root, proof.slots)
        read = _read_exact if proof.kind is ProofKind.EXACT else _read_list
        record, releases = read(proof, words)
        words.end()
    except (ValueError, InvalidInput) as error:
        raise refused("it does not lead from the block to what it claims", str(error)) from None
    return Proven(proof.kind, block, record, releases)


def open_storage(proof: AccountProof, anchor: Anchor) -> tuple[BlockHeader, bytes]:
    """Return the proven block, and the storage root of the contract there.

    Raises VerificationFailure BAD_PROOF, or ValueError for an account that is not proven.
    """
    if (proof.chain_id, proof.contract) != (anchor.chain_id, anchor.contract):
        raise refused(
            "it is of another contract",
            f"of {checksum_address(proof.contract)} on chain {proof.chain_id}, not of "
            f"{checksum_address(anchor.contract)} on chain {anchor.chain_id}",
        )
    block = verify_header(proof.header, anchor.block_hash)
    if (proof.block_number, proof.block_hash) != (block.number, block.hash):
        raise refused("it names another block than its header does")
    encoded = read_value(block.state_root, proof.contract, proof.account_proof)
    if not encoded:
        raise ValueError("there is no contract at the address")
    account = decode_rlp(encoded)
    if not isinstance(account, list) or len(account) != 4:
        raise ValueError("the account is malformed")
    _, _, storage_root, code_hash = account
    for part in (storage_root, code_hash):
        if not isinstance(part, bytes) or len(part) != 32:
            raise ValueError("the account is malformed")
    if code_hash == NO_CODE:
        raise ValueError("there is no code at the address")
    return block, storage_root


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


# decoding of slots -------------------------------------------------------------------------


class _Words:
    """The words of a document's slots in order, each verified before it is returned."""

    def __init__(self, root: bytes, slots: Iterable[Slot]) -> None:
        self._root = root
        self._slots: Iterator[Slot] = iter(slots)

    def at(self, key: bytes) -> bytes:
        """Return the word of slot `key`, which must be the next slot of the document."""
        slot = next(self._slots, None)
        if slot is None or slot.key != key:
            raise ValueError(f"slot 0x{key.hex()} must be proven next")
        return read_slot(self._root, slot)

    def end(self) -> None:
        """Raise ValueError if slots are left over."""
        if next(self._slots, None) is not None:
            raise ValueError("it has more slots than its claim needs")


def _read_exact(proof: Proof, words: _Words) -> tuple[None, tuple[ProvenRelease, ...]]:
    semver = proof.semver or ""
    digest = words.at(digest_slot(proof.name, semver))
    if digest == ZERO:
        if proof.index is not None:
            raise ValueError("a release that does not exist has no index")
        return None, ()
    if proof.index is None:
        raise ValueError("the index of the release is missing")
    # Any index with this version is the right one: the registry accepts a version once.
    word, version = _listed(proof.name, proof.index, words)
    if version != semver:
        raise ValueError(f"the release at index {proof.index} is {version}")
    return None, (_release(version, proof.index, digest, word),)


def _read_list(proof: Proof, words: _Words) -> tuple[NameWord, tuple[ProvenRelease, ...]]:
    if proof.index is not None:
        raise ValueError("a list has no index")
    record = NameWord.read(words.at(record_slot(proof.name)))
    if record.release_count > MAX_RELEASES:
        raise ValueError(f"the name has more than {MAX_RELEASES} releases")
    releases = []
    for index in range(record.release_count):
        word, semver = _listed(proof.name, index, words)
        digest = words.at(digest_slot(proof.name, semver))
        releases.append(_release(semver, index, digest, word))
    return record, tuple(releases)


def _listed(name: str, index: int, words: _Words) -> tuple[ReleaseWord, str]:
    """Return the entry of a name's list at an index, and its version text."""
    word = ReleaseWord.read(words.at(release_slot(name, index)))
    if word.semver is not None:
        return word, word.semver
    slots = long_semver_slots(name, index, word.length)
    return word, read_long_semver([words.at(slot) for slot in slots], word.length)


def _release(semver: str, index: int, digest: bytes, word: ReleaseWord) -> ProvenRelease:
    if digest == ZERO:
        raise ValueError(f"the release {semver} has no digest")
    return ProvenRelease(Version.parse(semver), index, digest, word.yanked, word.deprecated)


def read_slot(root: bytes, slot: Slot) -> bytes:
    """Return the word of a slot under a storage root; raises ValueError if it is not the claim."""
    word = _word(read_value(root, slot.key, slot.proof))
    if word != slot.value:
        raise ValueError(f"slot 0x{slot.key.hex()} holds another value than is claimed")
    return word


def _word(value: bytes) -> bytes:
    """Decode a storage value: RLP of the number without leading zeros; absent means zero."""
    if not value:
        return ZERO
    number = decode_rlp(value)
    if not isinstance(number, bytes) or not 0 < len(number) <= WORD or number[0] == 0:
        raise ValueError("a slot's value is not a word")
    return number.rjust(WORD, b"\0")
