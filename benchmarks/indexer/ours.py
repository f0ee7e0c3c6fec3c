"""The node's own walk along a chain, timed: `ours.py URL REGISTRY FIRST EVENTS DATABASE`.

A process of its own: uvloop, Rpc, ChainReader, the Store, the walk between them and the workers
that read long replies are those of a node; no HTTP face, and nobody fetches packages meanwhile.
Prints the seconds from an open database to the transaction that holds the last event, and the most
memory the process ever had, in MiB.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time

import uvloop

from capdex.encoding.abi import checksum_address
from capdex.net.rpc.aiohttp_transport import AiohttpTransport
from capdex.net.rpc.client import Rpc
from capdex_indexer.chain.reader import ChainReader
from capdex_indexer.node.signals import tune_interpreter
from capdex_indexer.store import Deployment, Store
from capdex_indexer.sync.loop import SyncProgress, follow_chain
from capdex_indexer.workers.pool import Verifier

CHAIN_ID = 31337
FINALITY = 64


async def backfill(url: str, registry: bytes, first: int, events: int, db: str) -> float:
    deployment = Deployment(CHAIN_ID, checksum_address(registry), first, bytes(32))
    store = Store.open(db, deployment)
    done = asyncio.Event()

    def report(progress: SyncProgress) -> None:
        if progress.trouble:
            raise progress.trouble
        if progress.log_head.count == events:
            done.set()

    async with (
        Verifier() as verifier,
        Rpc([url], transport=AiohttpTransport(), read_reply=verifier.read_reply) as rpc,
    ):
        reader = ChainReader(
            rpc,
            registry=registry,
            chain_id=CHAIN_ID,
            start_block=first,
            finality_depth=FINALITY,
            poll_interval_s=1.0,
        )
        started = time.perf_counter()
        committed = asyncio.Event()
        walk = asyncio.create_task(follow_chain(reader, store, committed=committed, report=report))
        waiter = asyncio.create_task(done.wait())
        await asyncio.wait({walk, waiter}, return_when=asyncio.FIRST_COMPLETED)
        seconds = time.perf_counter() - started
        walk.cancel()
        waiter.cancel()
        (ended,) = await asyncio.gather(walk, return_exceptions=True)
        if not done.is_set() and isinstance(ended, BaseException):
            raise ended
    store.close()
    return seconds


if __name__ == "__main__":
    url, registry, first, events, db = sys.argv[1:]
    contract = bytes.fromhex(registry.removeprefix("0x"))
    tune_interpreter()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        seconds = runner.run(backfill(url, contract, int(first), int(events), db))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "mib": peak}))
