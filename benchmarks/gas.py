"""gas.py: what a release costs, beside a plain implementation of what NIP-7 asks for.

Both contracts are compiled with the same settings, deployed on one Anvil, and do the same things;
the figures are those of the receipts. `contracts/PlainRegistry.sol` stores the four strings and
checks next to nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from web3 import AsyncHTTPProvider, AsyncWeb3

from capdex.ipld.cid import Cid
from capdex_publisher.ethereum.anvil import pick_port, run_anvil

REPOSITORY = Path(__file__).resolve().parents[1]
SOLC = REPOSITORY / "contracts" / "solc-wrap"
PLAIN = REPOSITORY / "benchmarks" / "contracts" / "PlainRegistry.sol"
SIZES = {
    "24 and 11 characters": ("weather-reporter-by-nuwa", "10.200.300{}"),
    "4 and 5 characters": ("note", "1.0.{}"),
}


def ours() -> dict[str, Any]:
    """The checked-in contract, and the settings that it is compiled with."""
    abi = REPOSITORY / "capdex" / "abi"
    artifact: dict[str, Any] = json.loads((abi / "CapabilityRegistry.json").read_text("utf-8"))
    given = json.loads((abi / "CapabilityRegistry.input.json").read_text("utf-8"))
    return artifact | {"settings": given["settings"]}


def plain(settings: dict[str, Any]) -> dict[str, Any]:
    """The plain contract, compiled with the same settings."""
    name = PLAIN.stem
    given = {
        "language": "Solidity",
        "sources": {PLAIN.name: {"content": PLAIN.read_text("utf-8")}},
        "settings": settings | {"outputSelection": {"*": {"*": ["abi", "evm.bytecode.object"]}}},
    }
    done = subprocess.run(
        [str(SOLC), "--standard-json"],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=True,
    )
    compiled = json.loads(done.stdout)["contracts"][PLAIN.name][name]
    bytecode = compiled["evm"]["bytecode"]["object"]
    return {"abi": compiled["abi"], "bytecode": bytecode}


async def measure(w3: AsyncWeb3[Any], artifact: dict[str, Any], *arguments: int) -> list[int]:
    """The gas of a first and of a further release, for each of SIZES."""
    account = (await w3.eth.accounts)[0]

    async def receipt(call: Any) -> Any:
        return await w3.eth.wait_for_transaction_receipt(await call.transact({"from": account}))

    factory = w3.eth.contract(abi=artifact["abi"], bytecode=artifact["bytecode"])
    made = await receipt(factory.constructor(*arguments))
    contract = w3.eth.contract(address=made["contractAddress"], abi=artifact["abi"])
    spent = []
    for name, semver in [("first-name", "1.0.{}"), *SIZES.values()]:
        for number in range(2):
            digest = hashlib.sha256(f"{name} {number}".encode()).digest()
            one = (name, semver.format(number), Cid.raw(digest).text, digest)
            spent.append((await receipt(contract.functions.publish(*one)))["gasUsed"])
    return spent[2:]  # the first two found an empty registry


async def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        async with run_anvil(
            state=place / "state.json", port=pick_port(0), log=place / "anvil.log"
        ) as (url, _):
            w3 = AsyncWeb3(AsyncHTTPProvider(url))
            contract = ours()
            mine = await measure(w3, contract, 0, 0)
            theirs = await measure(w3, plain(contract["settings"]))
            await w3.provider.disconnect()
    kinds = [f"{kind}, {size}" for size in SIZES for kind in ("first release", "further one")]
    print(f"{'':36}{'capdex':>10}{'plain':>10}{'ratio':>8}")
    for kind, own, other in zip(kinds, mine, theirs, strict=True):
        print(f"{kind:36}{own:>10,}{other:>10,}{own / other:>8.2f}")


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
