"""What users pay: the receipts of a real chain, beside forge's snapshots and the budgets."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak
from web3 import HTTPProvider, Web3

REPOSITORY = Path(__file__).resolve().parents[2]
SNAPSHOTS: dict[str, str] = json.loads(
    (REPOSITORY / "contracts/snapshots/CapabilityRegistry.json").read_text("utf-8")
)
BUDGETS = {
    "publish_first": 145_000,
    "publish_first_revealed": 145_000,
    "publish_further": 95_000,
    "publish_batch_each": 65_000,
    "yank": 45_000,
}
CODE_BUDGET = 20_000
NAME = "weather-reporter-by-nuwa"
SECRET = keccak(text="a secret")
BATCH = 20
Publication = tuple[str, str, str, bytes, bytes]


class Registry:
    """A registry in use, whose calls return the gas that their receipts say."""

    def __init__(self, w3: Web3, min_age: int, max_age: int) -> None:
        artifact = json.loads((REPOSITORY / "capdex/abi/CapabilityRegistry.json").read_text())
        factory = w3.eth.contract(abi=artifact["abi"], bytecode=artifact["bytecode"])
        self.w3, self.account = w3, w3.eth.accounts[0]
        sent = factory.constructor(min_age, max_age).transact({"from": self.account})
        address = w3.eth.wait_for_transaction_receipt(sent)["contractAddress"]
        self.contract: Any = w3.eth.contract(address=address, abi=artifact["abi"])
        if min_age:
            self.commit("first-name")
            self.wait(min_age)
        digest = hashlib.sha256(b"x").digest()
        self.spend("claimAndPublish", "first-name", "1.0.0", raw_cid(digest), digest, SECRET)

    def spend(self, function: str, *arguments: Any) -> int:
        call = self.contract.functions[function](*arguments)
        sent = call.transact({"from": self.account, "gas": 10_000_000})
        receipt = self.w3.eth.wait_for_transaction_receipt(sent)
        assert receipt["status"] == 1
        return int(receipt["gasUsed"])

    def publish(self, number: int, name: str = NAME) -> int:
        return self.spend("publish", *publication(number, name)[:4])

    def commit(self, name: str) -> int:
        commitment = self.contract.functions.commitmentOf(name, self.account, SECRET).call()
        return self.spend("commit", commitment)

    def wait(self, seconds: int) -> None:
        self.w3.provider.make_request("evm_increaseTime", [seconds])  # type: ignore[arg-type]


def raw_cid(digest: bytes) -> str:
    return "b" + base64.b32encode(b"\x01\x55\x12\x20" + digest).decode().lower().rstrip("=")


def publication(number: int, name: str = NAME) -> Publication:
    """The same as in `Gas.t.sol`, byte for byte: zeros in calldata are cheaper than other bytes."""
    digest = keccak(encode(["string", "uint256"], [name, number]))
    return name, f"10.200.{3000 + number}", raw_cid(digest), digest, bytes(32)


@pytest.fixture
def w3(anvil: Any) -> Web3:
    return Web3(HTTPProvider(anvil.url))


@pytest.fixture
def registry(w3: Web3) -> Registry:
    return Registry(w3, 0, 0)


def assert_spent(entry: str, gas: int) -> None:
    assert gas == int(SNAPSHOTS[entry]), f"{entry} costs otherwise than forge says"
    assert gas <= BUDGETS[entry]


def test_the_code_is_within_its_budget(registry: Registry) -> None:
    code = registry.w3.eth.get_code(registry.contract.address)
    assert len(code) <= CODE_BUDGET


def test_publishing_costs_on_a_chain_what_forge_says(registry: Registry) -> None:
    assert_spent("publish_first", registry.publish(0))
    assert_spent("publish_further", registry.publish(1))


def test_each_of_a_batch_costs_on_a_chain_what_forge_says(registry: Registry) -> None:
    registry.publish(0)
    gas = registry.spend("publishBatch", [publication(n + 1) for n in range(BATCH)])
    assert_spent("publish_batch_each", gas // BATCH)


def test_a_yank_costs_on_a_chain_what_forge_says(registry: Registry) -> None:
    registry.publish(0)
    semver, reason = publication(0)[1], "broken: leaks the user's token"
    assert_spent("yank", registry.spend("yank", NAME, semver, 0, reason))


def test_a_claim_revealed_with_its_first_release_is_within_the_budget_of_one(w3: Web3) -> None:
    registry = Registry(w3, 60, 86_400)
    registry.commit(NAME)
    registry.wait(60)
    gas = registry.spend("claimAndPublish", *publication(0)[:4], SECRET)
    assert_spent("publish_first_revealed", gas)
