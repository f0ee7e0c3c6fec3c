"""A real registry on a real Anvil: publications, reorganisations and mining, by plain JSON-RPC."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from eth_abi import encode
from eth_hash.auto import keccak

from capdex.ipld.cid import Cid
from capdex.net.rpc.client import Rpc
from capdex.registry.logs import RawLog

ABI = Path(__file__).resolve().parents[2] / "capdex" / "abi"
PUBLISH = keccak(b"publish(string,string,string,bytes32)")[:4]


class Registry:
    """One deployed contract; `logs()` is what a plain `eth_getLogs` over everything gives."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._rpc, self._serial = Rpc([url]), itertools.count()

    async def deploy(self) -> None:
        self._account: str = (await self._rpc.call("eth_accounts"))[0]
        receipt = await self._create("CapabilityRegistry", bytes(64))
        self.address = bytes.fromhex(receipt["contractAddress"][2:])
        self.start_block = int(receipt["blockNumber"], 16)

    async def deploy_votes(self) -> str:
        """Deploy the contract of votes beside it, one vote an account; its address."""
        receipt = await self._create("CapabilityVotes", bytes(12) + self.address + bytes(64))
        votes: str = receipt["contractAddress"]
        return votes

    async def vote(self, votes: str, name: str, value: int) -> None:
        data = keccak(b"vote(string,int8)")[:4] + encode(["string", "int8"], [name, value])
        await self._sent({"to": votes, "data": "0x" + data.hex()})

    async def publish(self, releases: int = 1) -> None:
        """Publish that many releases of new names in one block."""
        await self._rpc.call("evm_setAutomine", [False])
        for _ in range(releases):
            name = f"pkg-{next(self._serial)}"
            sha256 = keccak(name.encode())
            data = encode(
                ["string", "string", "string", "bytes32"],
                [name, "1.0.0", Cid.raw(sha256).text, sha256],
            )
            await self._send(
                {"to": "0x" + self.address.hex(), "data": "0x" + (PUBLISH + data).hex()}
            )
        await self._rpc.call("evm_mine")
        await self._rpc.call("evm_setAutomine", [True])

    async def mine(self, blocks: int = 1) -> None:
        await self._rpc.call("anvil_mine", [hex(blocks)])

    async def call(self, method: str, *params: Any) -> Any:
        return await self._rpc.call(method, params)

    async def head(self) -> bytes:
        block = await self._rpc.block("latest")
        assert block is not None
        return block.hash

    async def logs(self) -> list[RawLog]:
        block = await self._rpc.block("latest")
        assert block is not None
        return await self._rpc.logs(self.address, 0, block.number)

    async def close(self) -> None:
        await self._rpc.close()

    async def _create(self, contract: str, arguments: bytes) -> dict[str, Any]:
        bytecode = json.loads((ABI / f"{contract}.json").read_text())["bytecode"]
        return await self._sent({"data": bytecode + arguments.hex()})

    async def _send(self, transaction: dict[str, str]) -> str:
        sent: str = await self._rpc.call(
            "eth_sendTransaction", [{"from": self._account, "gas": hex(5_000_000), **transaction}]
        )
        return sent

    async def _sent(self, transaction: dict[str, str]) -> dict[str, Any]:
        hash_ = await self._send(transaction)
        receipt: dict[str, Any] | None = None
        while not receipt:
            receipt = await self._rpc.call("eth_getTransactionReceipt", [hash_])
        assert receipt["status"] == "0x1"
        return receipt
