"""A registry on an Anvil, filled by plain JSON-RPC: many publications a block, any announcement."""

from __future__ import annotations

import hashlib
import json
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eth_abi import encode
from eth_hash.auto import keccak

from capdex.ipld.cid import Cid

REPOSITORY = Path(__file__).resolve().parents[2]
REGISTRY = REPOSITORY / "capdex" / "abi" / "CapabilityRegistry.json"
LAX = REPOSITORY / "tests" / "contracts" / "LaxRegistry.json"
PER_BLOCK = 100  # 130 000 gas each, far below the 30 million of a block
STRING, BYTES32 = "string", "bytes32"


def call_data(name: str, types: Sequence[str], values: Sequence[Any]) -> str:
    """The input of a call to `name(types…)`."""
    selector = keccak(f"{name}({','.join(types)})".encode())[:4]
    return "0x" + (selector + encode(types, values)).hex()


@dataclass
class Registry:
    """A deployed contract; every call comes from the first account Anvil keeps unlocked."""

    url: str
    address: str = ""
    account: str = ""
    start_block: int = 0

    @classmethod
    def deploy(cls, url: str, artifact: Path = REGISTRY) -> Registry:
        self = cls(url)
        self.account = self.call("eth_accounts")[0]
        bytecode = json.loads(artifact.read_text())["bytecode"]
        # Two zeros for the constructor: names are claimed without commitments.
        transaction = {"data": bytecode + "00" * 64, **self._payer()}
        receipt = self.receipt(self.call("eth_sendTransaction", transaction))
        self.address, self.start_block = receipt["contractAddress"], int(receipt["blockNumber"], 16)
        return self

    @property
    def publisher(self) -> bytes:
        """The account's address."""
        return bytes.fromhex(self.account[2:])

    def publish_now(self, name: str, version: str, data: bytes) -> None:
        """Publish one package in a block of its own; returns as soon as there is a receipt."""
        types = (STRING, STRING, STRING, BYTES32)
        call = call_data("publish", types, self._release(name, version, data))
        sent = self.call("eth_sendTransaction", {"to": self.address, "data": call, **self._payer()})
        assert self.receipt(sent)["status"] == "0x1"

    def publish(self, packages: Sequence[tuple[str, str, bytes]]) -> None:
        """Publish (name, version, bytes) in as few blocks as may be."""
        types = (STRING, STRING, STRING, BYTES32)
        self.send([call_data("publish", types, self._release(*x)) for x in packages])

    def yank(self, name: str, semver: str, index: int, reason: str) -> None:
        types = (STRING, STRING, "uint256", STRING)
        self.send([call_data("yank", types, (name, semver, index, reason))])

    def announce(self, name: str, version: str, data: bytes, **claims: Any) -> None:
        """Let a lax registry announce these bytes; `claims` replace what is true of them."""
        _, _, cid, sha256 = self._release(name, version, data)
        said = {
            "name_id": keccak(name.encode()),
            "publisher": self.publisher,
            "cap_uri": f"did:nuwa:cap:{name}@{version}",
            "semver": version,
            "cid": cid,
            "sha256": sha256,
            **claims,
        }
        types = (BYTES32, "address", STRING, STRING, STRING, BYTES32)
        self.send([call_data("announce", types, list(said.values()))])

    def send(self, calls: Sequence[str]) -> None:
        """Send these calls and mine them, PER_BLOCK to a block."""
        self.call("evm_setAutomine", False)
        for i in range(0, len(calls), PER_BLOCK):
            sent = self.batch(
                [
                    ("eth_sendTransaction", [{"to": self.address, "data": x, **self._payer()}])
                    for x in calls[i : i + PER_BLOCK]
                ]
            )
            self.call("evm_mine")
            assert self.receipt(sent[-1])["status"] == "0x1"
        self.call("evm_setAutomine", True)

    def receipt(self, hash_: str) -> dict[str, Any]:
        while not (found := self.call("eth_getTransactionReceipt", hash_)):
            pass
        return dict(found)

    def call(self, method: str, *params: Any) -> Any:
        return self.batch([(method, params)])[0]

    def batch(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        body = [
            {"jsonrpc": "2.0", "id": i, "method": method, "params": params}
            for i, (method, params) in enumerate(calls)
        ]
        request = urllib.request.Request(  # noqa: S310 - loopback
            self.url, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=120) as reply:  # noqa: S310
            answers = sorted(json.load(reply), key=lambda x: x["id"])
        assert not [x for x in answers if "error" in x], answers
        return [x["result"] for x in answers]

    def _payer(self) -> dict[str, str]:
        return {"from": self.account, "gas": hex(5_000_000)}

    @staticmethod
    def _release(name: str, semver: str, data: bytes) -> tuple[str, str, str, bytes]:
        return name, semver, Cid.of(data).text, hashlib.sha256(data).digest()
