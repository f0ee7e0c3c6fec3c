"""An Anvil of its own, filled with publications to the real contract, many in a transaction.

Anvil keeps a copy of the whole state for each recent block, so it is told to keep few of them: 500
copies of 100 000 releases would be tens of gigabytes. Blocks, transactions and logs are all kept.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from typing import Any

from eth_abi import encode

from capdex.encoding.keccak import keccak
from capdex.ipld.cid import Cid

ROOT = Path(__file__).resolve().parents[2]
ARTIFACT = ROOT / "capdex" / "abi" / "CapabilityRegistry.json"
TUPLES = "(string,string,string,bytes32,bytes32)[]"
PUBLISH_BATCH = keccak(f"publishBatch({TUPLES})".encode())[:4]
KEPT_STATES = 4
VERSIONS = 10  # releases a name
BURIED = 64  # empty blocks on top, so that every event is final for whoever reads


@dataclass(frozen=True, slots=True)
class Chain:
    """Where a filled chain is, what registry to read, and what must be found there."""

    url: str
    registry: str
    first: int
    last: int
    events: int
    per_block: int


def call(url: str, method: str, *params: Any) -> Any:
    """One JSON-RPC call."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=120) as reply:  # noqa: S310 - loopback
        answer = json.load(reply)
    assert "error" not in answer, answer
    return answer["result"]


@contextmanager
def anvil(*options: str) -> Iterator[str]:
    """The URL of a chain that ends with the block."""
    binary = next(ROOT.glob("node_modules/@foundry-rs/anvil-*/bin/anvil*"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    command = [str(binary), "--host", "127.0.0.1", "--port", port, "--silent", "--no-cors"]
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory(prefix="anvil-") as home:
        env = {**os.environ, "HOME": home}
        process = Popen([*command, "--gas-limit", "1000000000", *options], env=env)
        try:
            while process.poll() is None:
                try:
                    call(url, "eth_chainId")
                    break
                except urllib.error.URLError:
                    time.sleep(0.01)
            yield url
        finally:
            process.terminate()
            process.wait()


@contextmanager
def filled(events: int, per_block: int) -> Iterator[Chain]:
    """A chain with that many publications, `per_block` in the one transaction of each block."""
    with anvil("--prune-history", str(KEPT_STATES)) as url:
        yield fill(url, events, per_block)


def deploy(url: str) -> tuple[str, str, int]:
    """The first account, and the address and block of a new registry."""
    account: str = call(url, "eth_accounts")[0]
    bytecode = json.loads(ARTIFACT.read_text())["bytecode"]
    # Two zeros for the constructor: names are claimed without commitments.
    sent = call(url, "eth_sendTransaction", {"from": account, "data": bytecode + "00" * 64})
    receipt = mined(url, sent)
    return account, receipt["contractAddress"], int(receipt["blockNumber"], 16)


def fill(url: str, events: int, per_block: int) -> Chain:
    """Deploy a registry and publish; each transaction is mined into a block of its own."""
    account, registry, first = deploy(url)
    for start in range(0, events, per_block):
        numbers = range(start, min(start + per_block, events))
        sent = call(url, "eth_sendTransaction", publication(account, registry, numbers))
        receipt = mined(url, sent)
        assert len(receipt["logs"]) == len(numbers), receipt["status"]
    call(url, "anvil_mine", hex(BURIED))
    last = int(call(url, "eth_blockNumber"), 16)
    return Chain(url, registry, first, last, events, per_block)


def publication(account: str, registry: str, numbers: range) -> dict[str, str]:
    """The transaction that publishes these releases, VERSIONS of each name."""
    releases = []
    for number in numbers:
        sha256 = keccak(number.to_bytes(8, "big"))
        name, version = f"bench-{number // VERSIONS}", f"1.{number % VERSIONS}.0"
        releases.append((name, version, Cid.raw(sha256).text, sha256, bytes(32)))
    data = PUBLISH_BATCH + encode([TUPLES], [releases])
    return {"from": account, "to": registry, "gas": hex(900_000_000), "data": "0x" + data.hex()}


def mined(url: str, sent: str) -> dict[str, Any]:
    while not (receipt := call(url, "eth_getTransactionReceipt", sent)):
        time.sleep(0.001)
    assert receipt["status"] == "0x1", receipt["status"]
    found: dict[str, Any] = receipt
    return found
