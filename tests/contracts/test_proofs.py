"""Proofs out of the state of py-evm: another EVM and another trie than Anvil's, and the same words.

eth-tester has no `eth_getProof`, so the tries are read where py-evm keeps them.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest
import rlp
from trie import HexaryTrie
from web3 import Web3
from web3.contract import Contract

from capdex.encoding.keccak import keccak
from capdex.proof import storage_layout as slots
from capdex.proof.block_header import encode_header
from capdex.proof.document import Proof, Slot
from capdex.proof.verify import Anchor, Proven, verify

LONG = "2.0.0-" + "x" * 27
VERSIONS = ("1.0.0", "1.1.0", LONG, "1.2.0-" + "y" * 25)


def nodes(trie: HexaryTrie, key: bytes) -> tuple[bytes, ...]:
    """The nodes with a hash of their own on the way to a key."""
    encoded = [rlp.encode(node) for node in trie.get_proof(keccak(key))]
    return tuple(node for i, node in enumerate(encoded) if i == 0 or len(node) >= 32)


class Chain:
    """The newest block of py-evm's chain, with its tries."""

    def __init__(self, registry: Contract) -> None:
        provider: Any = registry.w3.provider
        backend = provider.ethereum_tester.backend
        self.header = backend.chain.get_canonical_head()
        database = backend.chain.chaindb.db
        self.contract = bytes.fromhex(registry.address[2:])
        self.state = HexaryTrie(database, self.header.state_root)
        account = rlp.decode(self.state.get(keccak(self.contract)))
        self.storage = HexaryTrie(database, account[2])

    def prove(self, name: str, semver: str | None, index: int | None, *keys: bytes) -> Proven:
        """What a document of these slots proves."""
        proof = Proof(
            31337,
            self.contract,
            self.header.block_number,
            self.header.hash,
            rlp.encode(self.header),
            nodes(self.state, self.contract),
            name,
            semver,
            index,
            tuple(Slot(key, self.word(key), nodes(self.storage, key)) for key in keys),
        )
        read = Proof.parse(proof.to_json())
        return verify(read, Anchor(31337, self.contract, self.header.hash))

    def word(self, key: bytes) -> bytes:
        value = self.storage.get(keccak(key))
        return rlp.decode(value).rjust(32, b"\0") if value else bytes(32)


@pytest.fixture
def chain(registry: Contract) -> Chain:
    """A registry with four releases of one name, one yanked, one deprecated, and the name too."""
    name, calls = "weather", registry.functions
    for semver in VERSIONS:
        digest = hashlib.sha256(semver.encode()).digest()
        encoded = base64.b32encode(b"\x01\x55\x12\x20" + digest).decode().lower().rstrip("=")
        calls.publish(name, semver, f"b{encoded}", digest).transact()
    calls.yank(name, "1.0.0", 0, "why").transact()
    calls.deprecate(name, LONG, 2, "why").transact()
    calls.deprecateName(name, "why", "note").transact()
    return Chain(registry)


def entry(index: int) -> list[bytes]:
    length = len(VERSIONS[index])
    longer = slots.long_semver_slots("weather", index, length) if length > 30 else []
    return [slots.release_slot("weather", index), *longer]


def test_the_whole_list_is_proven(chain: Chain, w3: Web3) -> None:
    keys = [slots.record_slot("weather")]
    for index, semver in enumerate(VERSIONS):
        keys += [*entry(index), slots.digest_slot("weather", semver)]
    proven = chain.prove("weather", None, None, *keys)
    assert [str(x.version) for x in proven.releases] == list(VERSIONS)
    assert [x.sha256 for x in proven.releases] == [
        hashlib.sha256(semver.encode()).digest() for semver in VERSIONS
    ]
    assert [x.yanked for x in proven.releases] == [True, False, False, False]
    assert [x.deprecated for x in proven.releases] == [False, False, True, False]
    assert proven.record is not None
    assert proven.record.deprecated
    assert proven.record.owner == bytes.fromhex(w3.eth.accounts[0][2:])


def test_one_release_and_one_absence_are_proven(chain: Chain) -> None:
    digest = slots.digest_slot("weather", LONG)
    (release,) = chain.prove("weather", LONG, 2, digest, *entry(2)).releases
    assert (str(release.version), release.deprecated) == (LONG, True)
    absent = slots.digest_slot("weather", "3.0.0")
    assert chain.prove("weather", "3.0.0", None, absent).releases == ()
    free = chain.prove("nobody", None, None, slots.record_slot("nobody"))
    assert free.record is not None
    assert not free.record.claimed


def test_the_header_made_of_its_fields_is_py_evms(chain: Chain) -> None:
    """Fields by name, as clients give them, against py-evm's own encoding."""
    header = chain.header
    numbers = {
        "difficulty": header.difficulty,
        "number": header.block_number,
        "gasLimit": header.gas_limit,
        "gasUsed": header.gas_used,
        "timestamp": header.timestamp,
        "baseFeePerGas": header.base_fee_per_gas,
        "blobGasUsed": header.blob_gas_used,
        "excessBlobGas": header.excess_blob_gas,
    }
    data = {
        "parentHash": header.parent_hash,
        "sha3Uncles": header.uncles_hash,
        "miner": header.coinbase,
        "stateRoot": header.state_root,
        "transactionsRoot": header.transaction_root,
        "receiptsRoot": header.receipt_root,
        "logsBloom": header.bloom.to_bytes(256, "big"),
        "extraData": header.extra_data,
        "mixHash": header.mix_hash,
        "nonce": header.nonce,
        "withdrawalsRoot": header.withdrawals_root,
        "parentBeaconBlockRoot": header.parent_beacon_block_root,
        "requestsHash": header.requests_hash,
    }
    block = {key: hex(value) for key, value in numbers.items()}
    block |= {key: "0x" + value.hex() for key, value in data.items()}
    assert keccak(encode_header(block)) == header.hash
