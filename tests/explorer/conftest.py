"""A node with pages over an index with a release of every fate, and a browser to look at them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from capdex.manifest import manifest
from capdex.net.ipfs.block_store import BlockDirectory, files_of
from capdex.problems import Verdict
from capdex.registry.logs import BlockRef
from capdex_cli.node.explorer import build_explorer
from capdex_cli.node.serve import build_app
from capdex_cli.node.server import listen
from capdex_indexer.http.status import Surface
from capdex_indexer.monitoring.health import Health
from capdex_indexer.query.index import Index
from capdex_indexer.store import Store
from capdex_indexer.sync.loop import SyncProgress
from capdex_service.http.routes import build_reader_routes
from capdex_service.limits.hosts import LOOPBACK
from capdex_service.queries.reader import Reader
from tests.e2e.templates import keep_code
from tests.explorer import hostile
from tests.indexer import making
from tests.indexer.tables import with_tables

REPOSITORY = Path(__file__).resolve().parents[2]
OTHER = "0x" + making.OTHER.hex()
FORECAST = making.tool("get_forecast", "Forecast of a place.", place="name of the place")
POST: dict[str, dict[str, str]] = {
    "get_forecast": {"type": "http_post", "url": "https://other.example.net/forecast"}
}


def make_chain() -> Any:
    """A registry with the repository's examples, and with releases and events of every kind."""
    chain = making.Chain()
    for path in sorted((REPOSITORY / "examples").glob("*.acp.yaml")):
        uri = manifest.read(path.read_bytes()).require().uri
        chain.publish(uri.name, str(uri.version), data=making.signed(path.read_text("utf-8")))
    trigger = [{"type": "keyword", "value": "forecast"}]
    chain.publish("forecast", "1.0.0", tools=[FORECAST], triggers=trigger)
    chain.publish(
        *("forecast", "1.1.0"),
        tools=[FORECAST],
        triggers=trigger,
        bindings=POST,
        permissions={"require": ["state.query"]},
        proof="https://example.org/.well-known/capdex.json",
        homepage="https://example.org/",
    )
    chain.publish("gone")
    chain.publish("folder", files=hostile.FILES)
    forged = making.package_bytes("forged").replace(b"What forged does", b"Whatever I like")
    chain.publish("forged", data=forged)
    chain.publish("loose", bound=False)
    chain.mine(making.published("soon", digest=b"\x33" * 32))
    bad = "did:nuwa:cap:Bad<script>alert(1)</script>\u202e@1.0.0"
    chain.mine(making.published("bad", digest=b"\x34" * 32, cap_uri=bad))
    chain.mine(making.yanked("forecast", "1.0.0", hostile.MARKUP[1]), making.yanked("gone"))
    chain.mine(making.deprecated("note", "1.0.0", hostile.MARKUP[0] + "\u202e reversed"))
    chain.mine(making.name_deprecated("loose", "use forecast", "forecast"))
    chain.mine(making.of_name("MaintainerAdded", "forecast", address=OTHER))
    chain.mine(making.of_name("TransferOffered", "forecast", address=OTHER))
    for version in ("1.0.0", "1.1.0"):
        chain.publish("heavy", version, data=hostile.heavy(version))
    for name, data in hostile.packages():
        chain.publish(name, data=data)
    for name, fields in hostile.MARKS.items():
        chain.publish(name, **fields)
    for name, text in hostile.DESCRIPTIONS.items():
        chain.publish(name, description=text)
    for name, title in hostile.COPIES.items():
        chain.publish(name, title=title, publisher=making.OTHER)
    chain.publish("trap-prompt", prompt=hostile.LONG_PROMPT)
    for first in range(0, len(hostile.STRINGS), 100):
        name = f"naughty-{first // 100}"
        chain.mine(*(making.name_deprecated(name, x) for x in hostile.STRINGS[first : first + 100]))
    return chain


@dataclass(frozen=True, slots=True)
class Filled:
    """An index on disk with the blocks of its packages."""

    url: str
    blocks: Path
    chain: Any


keep_code()


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Filled:
    """The index; nothing writes to it any more."""
    folder = tmp_path_factory.mktemp("explorer")
    made = Filled(f"sqlite:///{folder / 'index.db'}", folder / "blocks", make_chain())
    making.fill(made.url, made.chain, made.blocks)
    kept = files_of(BlockDirectory(made.blocks))
    for path, data in hostile.FILES.items():
        if path != hostile.NOT_KEPT:
            kept.write(data)
    return made


@asynccontextmanager
async def serving(url: str, blocks: Path, served: frozenset[Verdict]) -> AsyncIterator[str]:
    """A node with pages over an index; its address."""
    async with AsyncExitStack() as parts:
        index = Index(url)
        parts.callback(index.close)
        health = Health(following=True, writes=True)
        state = await asyncio.to_thread(index.status)
        await asyncio.to_thread(index.find, "")  # a node that is ready has its search
        number = state.block_number or 0
        health.at = SyncProgress(BlockRef(number, bytes(32), bytes(32), 1_700_000_000), number, 0)
        surface = Surface(index, BlockDirectory(blocks), health)
        reader = Reader(index, serve=served, blocks=surface.blocks, warning=health.warning)
        parts.callback(reader.close)
        face = build_reader_routes(reader)
        explorer = build_explorer(reader, surface)
        app = build_app(surface, face, allowed=LOOPBACK, explorer=explorer)
        listener = listen("127.0.0.1", 0)
        config = uvicorn.Config(app, http="httptools", ws="none", log_config=None)
        config.load()
        server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        await server.startup(sockets=[listener])
        parts.push_async_callback(server.shutdown, sockets=[listener])
        parts.push_async_callback(face.end_streams)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


class Served:
    """A node that serves in a thread of its own, so that tests may block."""

    def __init__(self, url: str, blocks: Path, served: frozenset[Verdict]) -> None:
        self._given = url, blocks, served
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._run()))
        self.base = ""

    async def _run(self) -> None:
        async with serving(*self._given) as self.base:
            self._ready.set()
            await self._ended.wait()

    def __enter__(self) -> str:
        self._thread.start()
        assert self._ready.wait(60)
        return self.base

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()
        self._loop.close()


@pytest.fixture(scope="session")
def base(filled: Filled) -> Iterator[str]:
    """The address of a node with pages that serves verified and signed packages."""
    with Served(filled.url, filled.blocks, frozenset({Verdict.VERIFIED, Verdict.SIGNED})) as found:
        yield found


class Growing:
    """An index that a test lets grow, and the address of its node."""

    def __init__(self, folder: Path) -> None:
        self.url, self.blocks = with_tables(folder / "index.db"), folder / "blocks"
        self.chain, self.base = making.Chain(), ""
        self.store = Store.open(self.url, making.DEPLOYMENT)

    def publish(self, name: str, version: str = "1.0.0", **options: Any) -> None:
        """Announce a package, index it, and keep its bytes."""
        self.chain.publish(name, version, **options)
        for data in self.chain.packages.values():
            BlockDirectory(self.blocks).write(data)
        making.follow(self.store, self.chain)


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[Growing]:
    """A node whose index has one release at first."""
    made = Growing(tmp_path)
    made.publish("first")
    with Served(made.url, made.blocks, frozenset({Verdict.VERIFIED})) as made.base:
        yield made
    made.store.close()
