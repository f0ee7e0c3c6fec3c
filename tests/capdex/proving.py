"""Chains with a registry, built in memory: their tries, headers and honest proof documents."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import rlp
from eth_hash.auto import keccak
from trie import HexaryTrie

from capdex.ipld.cid import Cid
from capdex.proof import storage_layout as slots
from capdex.proof.block_header import encode_header
from capdex.proof.document import Proof, Slot
from capdex.proof.verify import Anchor
from capdex.version import Version, latest

CHAIN_ID = 31337
CONTRACT = bytes.fromhex("5fbdb2315678afecb367f032d93f642f64180aa3")
OTHER_CONTRACT = bytes.fromhex("e7f1725e7734ce288f8367e1bb143e90bb3f0512")
OWNER = bytes.fromhex("f39fd6e51aad88f6f4ce6ab8827279cfffb92266")
CODE_HASH = keccak(b"the code of a registry")
Json = dict[str, Any]


@dataclass(frozen=True)
class Release:
    """A release as the registry keeps it; the digest is that of its name and version."""

    semver: str
    yanked: bool = False
    deprecated: bool = False

    def sha256(self, name: str) -> bytes:
        return hashlib.sha256(f"{name}@{self.semver}".encode()).digest()

    def word(self) -> bytes:
        text = self.semver.encode()
        flags = self.yanked | self.deprecated << 1
        return bytes([flags, len(text)]) + (text if len(text) <= 30 else b"").ljust(30, b"\0")


def solidity_string(text: bytes, count: int) -> list[bytes]:
    """The words of a Solidity string that takes `count` slots."""
    if count == 1:
        return [text.ljust(31, b"\0") + bytes([2 * len(text)])]
    padded = text.ljust(32 * (count - 1), b"\0")
    tail = [padded[i : i + 32] for i in range(0, len(padded), 32)]
    return [(2 * len(text) + 1).to_bytes(32, "big"), *tail]


@dataclass
class World:
    """One block of a chain: what a registry keeps there, by hand and by raw slots."""

    names: dict[str, list[Release]] = field(default_factory=dict)
    raw: dict[bytes, bytes] = field(default_factory=dict)  # slots said otherwise
    number: int = 7
    chain_id: int = CHAIN_ID
    code_hash: bytes = CODE_HASH

    def __post_init__(self) -> None:
        self.slots: dict[bytes, bytes] = {bytes(32): b"\x01" * 32}
        for name, releases in self.names.items():
            count = len(releases).to_bytes(4, "big")
            self.slots[slots.record_slot(name)] = bytes(8) + count + OWNER
            for index, release in enumerate(releases):
                self._keep(name, index, release)
        self.slots |= self.raw
        self.storage = trie_of({key: _integer(word) for key, word in self.slots.items()})
        accounts = {bytes([i]) * 20: _account(HexaryTrie.BLANK_NODE_HASH) for i in range(1, 40)}
        accounts[CONTRACT] = _account(self.storage.root_hash, self.code_hash)
        accounts[OTHER_CONTRACT] = _account(trie_of({b"\1": b"\1"}).root_hash, self.code_hash)
        self.state = trie_of(accounts)
        self.header = encode_header(block_json(self.number, self.state.root_hash))
        self.hash = keccak(self.header)

    @property
    def anchor(self) -> Anchor:
        return Anchor(self.chain_id, CONTRACT, self.hash)

    def document(self, name: str, semver: str | None = None) -> Json:
        """An honest document: of one version, or of all releases."""
        releases = self.names.get(name, [])
        index: int | None = None
        if semver is None:
            keys = [slots.record_slot(name)]
            for at, release in enumerate(releases):
                keys += [*_listed(name, at, release), slots.digest_slot(name, release.semver)]
        else:
            keys = [slots.digest_slot(name, semver)]
            versions = [release.semver for release in releases]
            if semver in versions:
                index = versions.index(semver)
                keys += _listed(name, index, releases[index])
        return self.document_of(keys, name, semver, index)

    def document_of(
        self, keys: Sequence[bytes], name: str, semver: str | None, index: int | None
    ) -> Json:
        """A document with these very slots."""
        return Proof(
            self.chain_id, CONTRACT, self.number, self.hash, self.header,
            proof_of(self.state, CONTRACT), name, semver, index,
            tuple(
                Slot(key, self.slots.get(key, bytes(32)), proof_of(self.storage, key))
                for key in keys
            ),
        ).to_json()  # fmt: skip

    def answer(self, name: str, semver: str | None = None) -> Json:
        """What an honest node answers to the latest, or to this version."""
        live = [x for x in self.names[name] if semver == x.semver or not (semver or x.yanked)]
        chosen = semver or str(latest(Version.parse(x.semver) for x in live))
        (release,) = [x for x in live if x.semver == chosen]
        return answer_of(name, release)

    def _keep(self, name: str, index: int, release: Release) -> None:
        first, *others = _listed(name, index, release)
        self.slots[first] = release.word()
        words = solidity_string(release.semver.encode(), len(others)) if others else []
        self.slots |= dict(zip(others, words, strict=True))
        self.slots[slots.digest_slot(name, release.semver)] = release.sha256(name)


def answer_of(name: str, release: Release) -> Json:
    """What a node answers with this release, as far as a proof can check it."""
    digest = release.sha256(name)
    return {
        "cap_uri": f"did:nuwa:cap:{name}@{release.semver}",
        "semver": release.semver,
        "sha256": digest.hex(),
        "ipfs_cid": str(Cid.raw(digest)),
        "status": {
            "yanked": release.yanked,
            "deprecated": release.deprecated,
            "name_deprecated": False,
        },
    }


def trie_of(values: dict[bytes, bytes]) -> HexaryTrie:
    """The secure trie of these values; an empty one is left out, as the EVM does."""
    trie = HexaryTrie({})
    for key, value in values.items():
        if value:
            trie.set(keccak(key), value)
    return trie


def proof_of(trie: HexaryTrie, key: bytes) -> tuple[bytes, ...]:
    """The nodes on the way to a key that have a hash of their own."""
    nodes = [rlp.encode(node) for node in trie.get_proof(keccak(key))]
    return tuple(node for i, node in enumerate(nodes) if i == 0 or len(node) >= 32)


def block_json(number: int, state_root: bytes, **more: str) -> Json:
    """A block as `eth_getBlockByNumber` gives it."""
    return {
        "parentHash": "0x" + "11" * 32,
        "sha3Uncles": "0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347",
        "miner": "0x" + "22" * 20,
        "stateRoot": "0x" + state_root.hex(),
        "transactionsRoot": "0x" + "33" * 32,
        "receiptsRoot": "0x" + "44" * 32,
        "logsBloom": "0x" + "00" * 256,
        "difficulty": "0x0",
        "number": hex(number),
        "gasLimit": "0x1c9c380",
        "gasUsed": "0x5208",
        "timestamp": hex(1_700_000_000 + 12 * number),
        "extraData": "0x",
        "mixHash": "0x" + "55" * 32,
        "nonce": "0x" + "00" * 8,
        "baseFeePerGas": "0x7",
        **more,
    }


def _listed(name: str, index: int, release: Release) -> list[bytes]:
    length = len(release.semver)
    longer = slots.long_semver_slots(name, index, length) if length > 30 else []
    return [slots.release_slot(name, index), *longer]


def _integer(word: bytes) -> bytes:
    stripped = word.lstrip(b"\0")
    return rlp.encode(stripped) if stripped else b""


def _account(storage_root: bytes, code_hash: bytes = keccak(b"")) -> bytes:
    return rlp.encode([b"\1", b"", storage_root, code_hash])
