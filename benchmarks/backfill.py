"""backfill.py [COUNT] [PER_BLOCK] [ROUNDS]: how fast an index catches up with a chain.

Fills an Anvil of its own with COUNT publications to the real contract, PER_BLOCK in a block, then
takes turns within one run: a bare sequential `eth_getLogs` loop that throws its replies away, at
four range sizes, and our backfill, first read, decoded and checked only, then stored in SQLite too.
Prints events a second and the ratio to the bare loop whose median is best.
"""

from __future__ import annotations

import asyncio
import json
import platform
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from subprocess import Popen

import aiohttp
import orjson
from eth_abi import encode
from eth_hash.auto import keccak

from capdex.cid import Cid
from capdex.events import LogHead, checksum_address
from capdex.net.faults import RpcError
from capdex.net.rpc import Rpc
from indexer.chain import ChainReader
from indexer.steps import Blocks
from indexer.store import Deployment, Store
from indexer.sync import Progress, follow, index

ROOT = Path(__file__).resolve().parents[1]
PUBLISH = keccak(b"publish(string,string,string,bytes32)")[:4]
RANGES = (10, 50, 200, 1000)
VERSIONS = 10  # releases a name


@contextmanager
def anvil() -> Iterator[str]:
    binary = next(ROOT.glob("node_modules/@foundry-rs/anvil-*/bin/anvil*"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    options = ["--silent", "--no-cors", "--gas-limit", "1000000000"]
    process = Popen([str(binary), "--host", "127.0.0.1", "--port", port, *options])
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


async def fill(rpc: Rpc, count: int, per_block: int) -> tuple[bytes, int]:
    """Deploy and publish; returns the contract's address and its block."""
    bytecode = json.loads((ROOT / "capdex/abi/CapabilityRegistry.json").read_text())["bytecode"]
    account = (await rpc.call("eth_accounts"))[0]
    hash_ = await rpc.call("eth_sendTransaction", [{"from": account, "data": bytecode + "00" * 64}])
    while not (receipt := await rpc.call("eth_getTransactionReceipt", [hash_])):
        pass
    await rpc.call("evm_setAutomine", [False])
    for start in range(0, count, per_block):
        calls = [
            ("eth_sendTransaction", [_publication(account, receipt["contractAddress"], n)])
            for n in range(start, min(start + per_block, count))
        ]
        await rpc.batch(calls)
        await rpc.call("evm_mine")
    await rpc.call("anvil_mine", ["0x40"])  # so that every event is below the finality depth
    return bytes.fromhex(receipt["contractAddress"][2:]), int(receipt["blockNumber"], 16)


def _publication(account: str, registry: str, n: int) -> dict[str, str]:
    sha256 = keccak(n.to_bytes(8, "big"))
    values = [f"bench-{n // VERSIONS}", f"1.{n % VERSIONS}.0", Cid.raw(sha256).text, sha256]
    data = PUBLISH + encode(["string", "string", "string", "bytes32"], values)
    return {"from": account, "to": registry, "gas": "0x7a120", "data": "0x" + data.hex()}


async def bare(url: str, registry: bytes, first: int, last: int, blocks: int) -> list[bytes]:
    replies: list[bytes] = []
    async with aiohttp.ClientSession(read_bufsize=1 << 20) as session:
        for start in range(first, last + 1, blocks):
            query = {
                "address": "0x" + registry.hex(),
                "fromBlock": hex(start),
                "toBlock": hex(min(start + blocks - 1, last)),
            }
            call = {"jsonrpc": "2.0", "id": 1, "method": "eth_getLogs", "params": [query]}
            headers = {"content-type": "application/json"}
            async with session.post(url, data=orjson.dumps(call), headers=headers) as response:
                replies.append(await response.read())
    return replies


def read_from(rpc: Rpc, registry: bytes, first: int) -> ChainReader:
    return ChainReader(
        rpc,
        registry=registry,
        chain_id=31337,
        start_block=first,
        finality_depth=16,
        poll_interval_s=0.25,
        ring=[],
    )


async def read_only(url: str, registry: bytes, first: int, count: int) -> list[bytes]:
    """Our reader alone: logs, headers, decoding and the checks, with nothing stored."""
    log = LogHead()
    async with Rpc([url]) as rpc:
        reader = read_from(rpc, registry, first)
        async with aclosing(reader.steps()) as steps:
            async for step in steps:
                if isinstance(step, Blocks):
                    decoded = follow(step, log, 31337)
                    log = decoded[-1].head if decoded else log
                if log.count == count:
                    return []
    raise AssertionError("the stream ended")


async def ours(url: str, registry: bytes, first: int, count: int) -> list[bytes]:
    with tempfile.TemporaryDirectory() as directory:
        deployment = Deployment(31337, checksum_address(registry), first, bytes(32))
        store = Store.open(f"sqlite:///{directory}/index.db", deployment)
        done = asyncio.Event()

        def report(progress: Progress) -> None:
            if progress.trouble:
                raise progress.trouble
            if progress.log.count == count:
                done.set()

        async with Rpc([url]) as rpc:
            reader = read_from(rpc, registry, first)
            walk = asyncio.create_task(
                index(reader, store, chain_id=31337, committed=asyncio.Event(), report=report)
            )
            waiter = asyncio.create_task(done.wait())
            await asyncio.wait({walk, waiter}, return_when=asyncio.FIRST_COMPLETED)
            walk.cancel()
            waiter.cancel()
            (ended,) = await asyncio.gather(walk, return_exceptions=True)
            if not done.is_set() and isinstance(ended, BaseException):
                raise ended
        store.close()
    return []


async def main(count: int, per_block: int, rounds: int) -> None:
    with anvil() as url:
        async with Rpc([url]) as rpc:
            while True:
                try:
                    await rpc.chain_id()
                    break
                except RpcError:
                    continue
            registry, first = await fill(rpc, count, per_block)
            head = await rpc.block("latest")
            assert head is not None
        rates: dict[str, list[float]] = {}
        for _ in range(rounds):
            runs = [
                (f"bare, {blocks} blocks", bare(url, registry, first, head.number, blocks))
                for blocks in RANGES
            ]
            runs.append(("capdex, read", read_only(url, registry, first, count)))
            runs.append(("capdex, stored", ours(url, registry, first, count)))
            for name, run in runs:
                started = time.perf_counter()
                replies = await run
                rates.setdefault(name, []).append(count / (time.perf_counter() - started))
                got = sum(reply.count(b'"logIndex"') for reply in replies)
                assert name.startswith("capdex") or got == count, (
                    f"{name} got {got} of {count} events"
                )
    medians = {name: statistics.median(values) for name, values in rates.items()}
    best = max(value for name, value in medians.items() if name.startswith("bare"))
    print(f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}")
    print(f"{count} events, {per_block} a block, {rounds} rounds, medians")
    for name, value in medians.items():
        spread = f"{min(rates[name]):,.0f}–{max(rates[name]):,.0f}"
        print(f"{name:20} {value:10,.0f} events/s  ({spread})  ratio {value / best:.2f}")


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    asyncio.run(main(*(given + [20_000, 100, 5][len(given) :])))
