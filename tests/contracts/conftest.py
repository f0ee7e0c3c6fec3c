import json
from pathlib import Path
from typing import Any

import pytest
from eth_tester import EthereumTester, PyEVMBackend
from web3 import EthereumTesterProvider, Web3
from web3.contract import Contract

REPOSITORY = Path(__file__).resolve().parents[2]


def read_artifact(path: str) -> dict[str, Any]:
    artifact: dict[str, Any] = json.loads((REPOSITORY / path).read_text())
    return artifact


def deploy(w3: Web3, artifact: dict[str, Any], *arguments: int) -> Contract:
    factory = w3.eth.contract(abi=artifact["abi"], bytecode=artifact["bytecode"])
    sent = factory.constructor(*arguments).transact({"from": w3.eth.accounts[0]})
    receipt = w3.eth.wait_for_transaction_receipt(sent)
    deployed: Contract = factory(address=receipt["contractAddress"])
    return deployed


@pytest.fixture
def w3() -> Web3:
    """A chain of its own for each test, in process."""
    return Web3(EthereumTesterProvider(EthereumTester(PyEVMBackend())))


@pytest.fixture
def registry(w3: Web3) -> Contract:
    return deploy(w3, read_artifact("capdex/abi/CapabilityRegistry.json"), 0, 0)


@pytest.fixture
def lax(w3: Web3) -> Contract:
    return deploy(w3, read_artifact("tests/contracts/LaxRegistry.json"))
