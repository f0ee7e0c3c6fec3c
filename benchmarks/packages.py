"""packages.py [COUNT] [ROUNDS]: judged a second and core, by stage; from queued to verified.

First the examples, signed, are judged in this process, and each stage of that again by itself:
packages a second of processor time. Then COUNT signed packages lie behind a gateway on loopback, in
a process of its own, that answers at once, and then 50 ms late. In turns within one run: a bare
loop that fetches each block and compares its sha256, with 64 requests in flight, with 100 as
aiohttp has by itself, and with 128 as a node has at most; and a node's queue, which fetches, judges
in worker processes and stores in SQLite. Prints packages a second, and what share the queue has of
each loop.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import multiprocessing
import os
import platform
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

import aiohttp
import structlog
import uvloop
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from eth_abi import encode

from capdex import did, signing
from capdex.diagnostics import Findings
from capdex.encoding.abi import checksum_address
from capdex.ipld.cid import Cid
from capdex.json_schema.schema import check_package_schema, check_schema, parse_json
from capdex.manifest.manifest import read
from capdex.manifest.prompt_injection import lint
from capdex.manifest.triggers import compile_pattern
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.net.ipfs.gateway import Gateway
from capdex.package import verify
from capdex.registry.events import PUBLISHED, Announcement
from capdex.registry.logs import BlockRef, LogHead, LogPosition, RawLog
from capdex.uri import name_id
from capdex.yaml.reader import read_yaml
from capdex_indexer.fetch.fetcher import Fetcher
from capdex_indexer.node.signals import tune_interpreter
from capdex_indexer.projection.block_range import BlockRange, LogRows
from capdex_indexer.store import Deployment, Store
from capdex_indexer.sync.log_completeness import check_logs
from capdex_indexer.workers.pool import Verifier
from capdex_publisher.authoring.scaffold import scaffold
from capdex_publisher.authoring.sign import sign
from capdex_publisher.keys.keystore import DidKey

CHAIN_ID = 31337
ACCOUNT = bytes(19) + b"\x01"
VERSIONS = 10  # releases a name
IN_FLIGHT = (64, 100, 128)  # requests of the bare loop; 100 is what a session of aiohttp allows
DELAYS_MS = (0, 50)
STORED_MS = 0.12  # to store a block takes half of that
REST_S = 10
MOST_RESTS = 40


# packages ---------------------------------------------------------------------------------------


async def make(count: int) -> list[tuple[str, str, bytes]]:
    """Name, version and bytes of `count` signed packages."""
    private = Ed25519PrivateKey.generate()
    author = DidKey(did.did_key(private.public_key().public_bytes_raw()), private)
    made = []
    for number in range(count):
        name, version = f"package-{number // VERSIONS}", f"1.{number % VERSIONS}.0"
        text = scaffold(
            name,
            version=version,
            title=f"Package {number}",
            description="Says how the weather is, and how it will be.",
            keywords=["weather", "forecast"],
        )
        account = checksum_address(ACCOUNT)
        signed = await sign(text.encode("utf-8"), author, chain_id=CHAIN_ID, publisher=account)
        made.append((name, version, signed))
    return made


def serve(blocks: dict[str, bytes], ready: Connection) -> None:
    """A trustless gateway over `blocks`, for ever; its port goes to `ready`.

    Its base URL ends in the milliseconds that each answer takes longer.
    """

    async def block(request: web.Request) -> web.Response:
        if delay_ms := int(request.match_info["delay_ms"]):
            await asyncio.sleep(delay_ms / 1000)
        body = blocks[request.match_info["cid"]]
        return web.Response(body=body, content_type="application/vnd.ipld.raw")

    async def run() -> None:
        app = web.Application()
        app.router.add_get("/{delay_ms}/ipfs/{cid}", block)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        ready.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(run())


# judging, by stage ------------------------------------------------------------------------------


async def examples() -> list[bytes]:
    """The examples, each signed and bound."""
    private = Ed25519PrivateKey.generate()
    author = DidKey(did.did_key(private.public_key().public_bytes_raw()), private)
    folder = Path(__file__).parents[1] / "examples"
    account = checksum_address(ACCOUNT)
    return [
        await sign(path.read_bytes(), author, chain_id=CHAIN_ID, publisher=account)
        for path in sorted(folder.glob("*.acp.yaml"))
    ]


def stages(data: bytes) -> dict[str, Callable[[], object]]:
    """The parts of judging a package, as calls, each with what it needs at hand; the whole last."""
    source = read_yaml(data)
    manifest = read(source).manifest
    assert manifest is not None
    assert manifest.author is not None
    assert manifest.signature is not None
    uri, cid = manifest.uri, Cid.of(data)
    account = checksum_address(ACCOUNT)
    announcement = Announcement(CHAIN_ID, account, str(uri), str(uri.version), cid.text, cid.digest)
    text, author, written = manifest.document["schema"], manifest.author, manifest.signature
    patterns = [trigger.value for trigger in manifest.triggers if trigger.type == "regex"]
    document = manifest.document | {"schema": manifest.schema}

    def check_schemas() -> None:
        findings = Findings()
        check_package_schema(parse_json(text.rstrip()), ("schema",), findings)
        for tool in manifest.tools:
            check_schema(tool.parameters, (), findings, package_schema=manifest.schema)
        assert not findings.failed

    def check_signature() -> None:
        message = signing.signing_input(source, str(uri))
        signing.verify_signature(author, message, signing.decode_signature(written))

    return {
        "read (YAML)": lambda: read_yaml(data),
        "meta-schema": check_schemas,
        "RE2": lambda: [compile_pattern(pattern).search("") for pattern in patterns],
        "lint": lambda: list(lint(document)),
        "hash": lambda: hashlib.sha256(data).digest(),
        "signature": check_signature,
        "judge, all of it": lambda: verify(announcement, data),
    }


def measure(packages: list[bytes], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of processor time a package, for each stage and round."""
    work = [stages(data) for data in packages]
    times: dict[str, list[float]] = {name: [] for name in work[0]}
    for _ in range(rounds + 1):  # the first one warms up
        for name, found in times.items():
            started = time.process_time()
            for _ in range(10):
                for calls in work:
                    calls[name]()
            found.append((time.process_time() - started) * 100 / len(packages))
    return {name: found[1:] for name, found in times.items()}


def report(packages: list[bytes], times: dict[str, list[float]]) -> None:
    size = sum(map(len, packages)) / len(packages)
    print(f"{len(packages)} examples, signed, {size:,.0f} bytes on average, one core")
    middle = {name: statistics.median(found) for name, found in times.items()}
    *_, whole = middle.values()
    rest = 2 * whole - sum(middle.values())
    for name, ms in [*middle.items(), ("fields, and the rest", rest)]:
        print(f"{name:24s} {ms:8.3f} ms  {1000 / ms:9,.0f}/s  {ms / whole:5.0%}")


# the queue --------------------------------------------------------------------------------------


async def bare(url: str, cids: list[Cid], in_flight: int) -> float:
    """Packages a second, fetched and hashed, nothing else."""
    left = iter(cids)

    async def work(session: aiohttp.ClientSession) -> None:
        for cid in left:
            async with session.get(f"{url}/ipfs/{cid}?format=raw") as response:
                data = await response.read()
            assert hashlib.sha256(data).digest() == cid.digest

    started = time.perf_counter()
    connector = aiohttp.TCPConnector(limit=0)  # aiohttp's own limit is 100
    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*(work(session) for _ in range(in_flight)))
    return len(cids) / (time.perf_counter() - started)


async def ours(url: str, step: BlockRange, verifier: Verifier, folder: Path) -> float:
    """Packages a second, from queued to verified rows and kept blocks."""
    registry = checksum_address(bytes(20))
    deployment, db = Deployment(CHAIN_ID, registry, 1, bytes(32)), f"sqlite:///{folder}/index.db"
    store, gateway = Store.open(db, deployment), Gateway(url)
    store.append(step, check_logs(step, LogHead()))
    fetcher = Fetcher(
        store,
        [gateway],
        verifier,
        BlockDirectory(folder / "blocks"),
        committed=asyncio.Event(),
    )
    started = time.perf_counter()
    running = asyncio.create_task(fetcher.run())
    with closing(sqlite3.connect(folder / "index.db", isolation_level=None)) as connection:
        waiting = "SELECT EXISTS (SELECT 1 FROM release WHERE availability = 'pending')"
        while connection.execute(waiting).fetchone()[0]:  # noqa: ASYNC110 - rows are no event
            await asyncio.sleep(0.02)
        seconds = time.perf_counter() - started
        others = "SELECT cap_uri, reason, message FROM release WHERE verdict IS NOT 'verified'"
        if refused := connection.execute(others).fetchall():
            raise SystemExit(f"{len(refused)} packages were not verified: {refused[0]}")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await gateway.close()
    store.close()
    return len(step.log_rows) / seconds


def announce(
    packages: list[tuple[str, str, bytes]], parent: BlockRef | None = None, before: int = 0
) -> BlockRange:
    """One block that publishes them all, after `before` events up to a parent block."""
    height, parent_hash = (parent.number + 1, parent.hash) if parent else (1, bytes(32))
    block = BlockRef(height, height.to_bytes(32, "big"), parent_hash, int(time.time()))
    logs = []
    for number, (name, version, data) in enumerate(packages):
        cid = Cid.of(data)
        uri = f"did:nuwa:cap:{name}@{version}"
        types = ["uint64", "string", "string", "string", "bytes32"]
        body = encode(types, [before + number + 1, uri, version, cid.text, cid.digest])
        position = LogPosition(height, block.hash, number.to_bytes(32, "big"), number)
        topics = (PUBLISHED, name_id(name), bytes(12) + ACCOUNT)
        logs.append(RawLog(bytes(20), topics, body, position))
    times = {height: block.timestamp}
    return BlockRange(LogRows.of(logs), times, (block,), block, height, height)


async def main(count: int, rounds: int) -> None:
    """Take turns, and print the medians."""
    judged = await examples()
    report(judged, measure(judged, rounds))
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    packages = await make(count)
    cids, step = [Cid.of(data) for _, _, data in packages], announce(packages)
    here, there = multiprocessing.Pipe()
    held = {cid.text: data for cid, (_, _, data) in zip(cids, packages, strict=True)}
    gateway = multiprocessing.get_context("spawn").Process(
        target=serve, args=(held, there), daemon=True
    )
    gateway.start()
    url = f"http://127.0.0.1:{here.recv()}"
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{count} packages of {len(packages[0][2])} bytes, {rounds} rounds, {machine}")
    tune_interpreter()  # as a node does
    with tempfile.TemporaryDirectory() as folder:  # all is deleted at the end alone
        rest(Path(folder))
        async with Verifier() as verifier:
            await take_turns(url, cids, step, verifier, Path(folder), rounds)
    gateway.terminate()


def rest(folder: Path) -> None:
    """Wait until blocks are stored as quickly as ever.

    Without a journal, ext4 looks for a free inode past each one that was freed in the last minutes
    (`recently_deleted` in its ialloc.c): after a great deletion a file takes it half a millisecond.
    """
    blocks = [(Cid.of(data), data) for data in (os.urandom(2048) for _ in range(500))]
    for number in range(MOST_RESTS):
        started = time.perf_counter()
        BlockDirectory(folder / f"rest-{number}").keep_many(blocks)
        took_ms = (time.perf_counter() - started) * 1000 / len(blocks)
        if took_ms <= STORED_MS:
            return
        print(
            f"storing a block takes {took_ms:.2f} ms: many files were deleted; waiting {REST_S} s"
        )
        time.sleep(REST_S)
    print("waited long enough: what is stored below is stored slowly")


async def take_turns(
    url: str, cids: list[Cid], step: BlockRange, verifier: Verifier, folder: Path, rounds: int
) -> None:
    """The loop and the queue, round after round, at each distance."""
    for delay_ms in DELAYS_MS:
        loops: dict[int, list[float]] = {in_flight: [] for in_flight in IN_FLIGHT}
        queue: list[float] = []
        for number in range(rounds):
            for in_flight, rates in loops.items():
                rates.append(await bare(f"{url}/{delay_ms}", cids, in_flight))
            home = folder / f"{delay_ms}-{number}"
            home.mkdir()
            queue.append(await ours(f"{url}/{delay_ms}", step, verifier, home))
        print(f"a gateway {delay_ms} ms away")
        print(f"  {'fetched, judged, stored':24s} {spread(queue)}")
        for in_flight, rates in loops.items():
            share = statistics.median(queue) / statistics.median(rates)
            print(f"  {f'bare loop, {in_flight} at once':24s} {spread(rates)}  ratio {share:.2f}")


def spread(rates: list[float]) -> str:
    """The median, the least and the most."""
    return f"{statistics.median(rates):8,.0f}/s ({min(rates):,.0f}–{max(rates):,.0f})"


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[1:]]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as a node has it
        runner.run(main(*(numbers + [2000, 3][len(numbers) :])))
