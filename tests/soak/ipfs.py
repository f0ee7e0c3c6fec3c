"""ipfs.py COUNT [--only KIND …] [--untimed] [--seed N]: packages from a gateway that misbehaves.

COUNT releases of five publishers are fetched, judged and stored through a gateway that answers
three CIDs in ten wrongly: once with each kind of fault, then with all of them mixed, alone and
beside a second gateway that is well:

    garbage other page redirect gzip endless drip silent reset truncated 404 410 429 500 503

No other bytes may be accepted, nothing sent to the host that a redirect names, and each package
that is answered as it should be must be verified in under twice the time that it takes when nothing
is wrong, or in half a second more, on average. Once the gateway is well, the others must be
verified. Last a chain is indexed beside gateways that are well, dead, and silent: its cursor must
be as fast. The last line is `N passed, N failed`.
"""

# ruff: noqa: T201, S311 - a script prints; random numbers here are not secret

from __future__ import annotations

import argparse
import asyncio
import hashlib
import logging
import socket
import sqlite3
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import proxy
import structlog
from ipfs_faults import HEALTHY, KINDS, MIXED, afflicted, serving

from capdex.ipld.cid import Cid
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.net.ipfs.gateway import Gateway
from capdex.net.rpc.client import Rpc
from capdex.registry.logs import LogPosition, RawLog
from capdex_indexer.chain.reader import ChainReader
from capdex_indexer.fetch.fetcher import Fetcher
from capdex_indexer.projection.block_range import BlockRange
from capdex_indexer.store import Store
from capdex_indexer.sync.log_completeness import check_logs
from capdex_indexer.sync.loop import follow_chain
from capdex_indexer.workers.pool import Verifier
from tests.indexer import making, simulator

PUBLISHERS = [bytes(19) + bytes([number]) for number in range(1, 6)]
LOOK_S = 0.02
GIVE_UP_S = 60.0
SLOWER = 2.0  # at most, for a package with which nothing is wrong
FLOOR_S = 0.5  # a smaller difference means nothing: two runs of a busy machine differ by as much
CURSOR = 0.9  # of its speed with a healthy gateway, at least
ROUNDS = 3
BLOCKS = 20  # of one reply of the chain's endpoint
LATER_S = 30 * 24 * 3600.0


@dataclass
class Trap:
    """A host that nobody was told to ask; how often somebody connected to it."""

    url: str = ""
    caught: int = 0

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncIterator[Trap]:
        self = cls()

        def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.caught += 1
            writer.close()

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        async with server:
            self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            yield self


@dataclass
class Soak:
    """Releases, where their blocks are, and what judges them."""

    step: BlockRange
    cids: dict[str, Cid]  # by capability URI
    verifier: Verifier
    folder: Path
    gateway: str
    trap: Trap
    timed: bool

    @property
    def sound(self) -> set[str]:
        return {uri for uri, cid in self.cids.items() if not afflicted(cid)}

    @contextmanager
    def store(self) -> Iterator[tuple[Store, Path]]:
        """An empty index, and the folder it is in."""
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            store = Store.open(f"sqlite:///{name}/index.db", making.DEPLOYMENT)
            try:
                yield store, Path(name)
            finally:
                store.close()

    @asynccontextmanager
    async def fetching(
        self,
        store: Store,
        folder: Path,
        urls: Sequence[str],
        *,
        committed: asyncio.Event,
        later_s: float = 0.0,
    ) -> AsyncIterator[asyncio.Task[None]]:
        """A queue at work."""
        gateways = [Gateway(url) for url in urls]
        fetcher = Fetcher(
            store,
            gateways,
            self.verifier,
            BlockDirectory(folder / "blocks"),
            committed=committed,
            clock=lambda: time.time() + later_s,
        )
        task = asyncio.create_task(fetcher.run())
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            for gateway in gateways:
                await gateway.close()

    async def fetch(
        self,
        store: Store,
        folder: Path,
        urls: Sequence[str],
        wanted: set[str],
        later_s: float = 0,
    ) -> dict[str, float]:
        """Run the queue until what is wanted is verified: when each was, in seconds."""
        found: dict[str, float] = {}
        started = time.perf_counter()
        committed = asyncio.Event()
        async with self.fetching(store, folder, urls, committed=committed, later_s=later_s) as task:
            while not wanted <= found.keys():
                await asyncio.sleep(LOOK_S)
                now = time.perf_counter() - started
                for uri in verified(folder / "index.db"):
                    found.setdefault(uri, now)
                if now > GIVE_UP_S or task.done():
                    break
        return found

    def announce(self, store: Store) -> None:
        store.append(self.step, check_logs(self.step, making.BEGINNING))

    async def healthy(self) -> dict[str, float]:
        """When each release is verified where nothing is wrong."""
        with self.store() as (store, folder):
            self.announce(store)
            return await self.fetch(store, folder, [self.well], set(self.cids))

    @property
    def well(self) -> str:
        return f"{self.gateway}/{HEALTHY}"

    async def faulty(self, kind: str, healthy: dict[str, float]) -> list[str]:
        """What goes wrong with one kind of fault; with a + beside a gateway that is well."""
        bad, everything = f"{self.gateway}/{kind.removesuffix('+')}", set(self.cids)
        urls, wanted = ([bad, self.well], everything) if kind[-1] == "+" else ([bad], self.sound)
        wrong = []
        with self.store() as (store, folder):
            self.announce(store)
            fetched = await self.fetch(store, folder, urls, wanted)
            if missing := wanted - fetched.keys():
                wrong.append(f"{len(missing)} sound packages were not verified: {min(missing)}")
            if accepted := fetched.keys() - wanted:
                wrong.append(f"{len(accepted)} were verified that nobody had: {min(accepted)}")
            if rejected := judged(folder / "index.db") - fetched.keys():
                wrong.append(f"{len(rejected)} were judged by other bytes: {min(rejected)}")
            again = await self.healthy()  # before and after, since other work comes and goes
            slow = [fetched[uri] for uri in self.sound if uri in fetched]
            quick = [mean((healthy[uri], again[uri])) for uri in self.sound]
            for what, of in (("mean", mean), ("last", max)):
                times = of(slow or [GIVE_UP_S]) / of(quick)
                print(f"  {kind:10s} {what} {of(slow or [0]):6.2f} s, {times:.2f} of a healthy run")
                slower_s = of(slow or [GIVE_UP_S]) - of(quick)
                if of is mean and times >= SLOWER and slower_s >= FLOOR_S and self.timed:
                    wrong.append(f"sound packages took {times:.1f} times as long")
            fetched = await self.fetch(store, folder, [self.well], everything, LATER_S)
            if missing := everything - fetched.keys():
                wrong.append(f"{len(missing)} were never verified: {min(missing)}")
            kept = BlockDirectory(folder / "blocks")
            if spoilt := [cid for cid in self.cids.values() if kept.read(cid) is None]:
                wrong.append(f"{len(spoilt)} verified blocks are not kept: {spoilt[0]}")
        if self.trap.caught:
            wrong.append(f"{self.trap.caught} requests went to a host that a redirect named")
            self.trap.caught = 0
        return wrong

    async def cursors(self, dead: str, silent: str) -> list[str]:
        """What goes wrong with a chain's cursor beside gateways that give nothing."""
        sim = simulate(self.step)
        speeds: dict[str, float] = {}
        with proxy.serving(partial(as_app, sim)) as rpc:
            for _ in range(ROUNDS):
                for name, url in (("well", self.well), ("dead", dead), ("silent", silent)):
                    speed = await self.index(rpc, sim.head.hash, url)
                    speeds[name] = max(speed, speeds.get(name, 0.0))
        wrong = []
        for name in ("dead", "silent"):
            ratio = speeds[name] / speeds["well"]
            print(f"  cursor beside a {name} gateway: {speeds[name]:,.0f} events/s, {ratio:.2f}")
            slower_s = len(self.cids) / speeds[name] - len(self.cids) / speeds["well"]
            if ratio < CURSOR and slower_s >= FLOOR_S and self.timed:
                wrong.append(f"beside a {name} gateway the cursor has {ratio:.2f} of its speed")
        return wrong

    async def index(self, url: str, head: bytes, gateway: str) -> float:
        """Events a second that a walk along a chain stores while packages are fetched."""
        committed = asyncio.Event()
        with self.store() as (store, folder):
            async with (
                Rpc([url]) as rpc,
                self.fetching(store, folder, [gateway], committed=committed),
            ):
                reader = ChainReader(
                    rpc,
                    registry=making.REGISTRY,
                    chain_id=making.CHAIN_ID,
                    start_block=0,
                    finality_depth=8,
                    poll_interval_s=0.01,
                )
                started = time.perf_counter()
                walk = asyncio.create_task(follow_chain(reader, store, committed=committed))
                while (cursor := store.cursor()) is None or cursor.block.hash != head:
                    await asyncio.sleep(0.002)
                    if walk.done():
                        break
                seconds = time.perf_counter() - started
                walk.cancel()
                await asyncio.gather(walk, return_exceptions=True)
        return len(self.step.log_rows) / seconds


def judged(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT cap_uri FROM release WHERE verdict IS NOT NULL OR reason IS NOT NULL"
        return {uri for (uri,) in connection.execute(query)}


async def as_app(sim: Any) -> Any:
    return sim.app()


def simulate(step: BlockRange) -> Any:
    """A chain with a release in each block, whose endpoint allows short ranges only."""
    sim = simulator.SimulatedChain(
        chain_id=making.CHAIN_ID, registry=making.REGISTRY, max_blocks=BLOCKS
    )
    for raw in step.log_rows.logs:
        number, parent = len(sim.blocks), sim.head
        hash_ = hashlib.sha256(parent.hash + number.to_bytes(8, "big")).digest()
        position = LogPosition(number, hash_, raw.position.tx_hash, 0)
        log = RawLog(raw.address, raw.topics, raw.data, position)
        block = simulator.SimBlock(number, hash_, parent.hash, (log,), parent.log_head.fold(log))
        sim.blocks.append(block)
    sim.finalized = len(sim.blocks) - 1
    return sim


def verified(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT cap_uri FROM release WHERE verdict = 'verified'"
        return [uri for (uri,) in connection.execute(query)]


def mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))


def publish(count: int, random: Random) -> Any:
    """A chain of `count` releases, of each publisher in turn."""
    chain, salt = making.Chain(), random.randrange(10**6)
    chain.mine(
        *(
            chain.release(f"soak-{number}", publisher=PUBLISHERS[number % 5], title=f"Soak {salt}")
            for number in range(count)
        )
    )
    return chain


async def main(count: int, kinds: Sequence[str], random: Random, *, timed: bool) -> int:
    """Run everything, and say what went wrong."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    chain, failed, done = publish(count, random), 0, 0
    with tempfile.TemporaryDirectory() as name, socket.socket() as mute, socket.socket() as gone:
        for sock in (mute, gone):
            sock.bind(("127.0.0.1", 0))
        mute.listen(1024)  # connects, and never answers
        silent, dead = (f"http://127.0.0.1:{sock.getsockname()[1]}" for sock in (mute, gone))
        shelf = BlockDirectory(Path(name) / "shelf")
        cids = {data: Cid.of(data) for data in chain.packages.values()}
        shelf.keep_many([(cid, data) for data, cid in cids.items()])
        async with Trap.open() as trap, Verifier() as verifier:
            with serving(shelf.path, trap.url) as gateway:
                uris = [f"did:nuwa:cap:soak-{number}@1.0.0" for number in range(count)]
                released = dict(zip(uris, cids.values(), strict=True))
                soak = Soak(chain.step(), released, verifier, Path(name), gateway, trap, timed)
                await soak.healthy()  # warm
                for kind in kinds:
                    wrong = (
                        await soak.cursors(dead, silent)
                        if kind == "cursor"
                        else await soak.faulty(kind, await soak.healthy())
                    )
                    done += count
                    failed += min(count, len(wrong))
                    print(f"{'FAILED' if wrong else 'ok'} {kind}", *wrong, sep="\n    ", flush=True)
    print(f"{done - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("count", type=int)
    parser.add_argument("--only", nargs="+", default=[*KINDS, MIXED, f"{MIXED}+", "cursor"])
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--untimed", action="store_true", help="let nothing fail for being slow")
    given = parser.parse_args()
    print(f"{given.count} packages a kind, seed {given.seed}")
    work = main(given.count, given.only, Random(given.seed), timed=not given.untimed)
    sys.exit(asyncio.run(work))
