"""install.py [PACKAGES] [LOCKED] [INSTALLED]: installing, synchronising offline, starting.

A node (`capdex node`, a process of its own) serves PACKAGES signed packages, which are installed
one after the other in this process, each agreed to by a person who takes no time: resolve, fetch,
verify, lint, grants, audit and lock. Then a lock file of LOCKED packages whose bytes are here is
synchronised, and no socket may be opened. At last `capdex router` is started with INSTALLED
packages and asked by a real MCP client. Prints times; `verify` is that of capdex alone, of the same
bytes.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from capdex.ipld.cid import Cid
from capdex.package import VerifiedPackage, verify
from capdex.registry.events import Announcement
from capdex.uri import PREFIX, CapabilityURI
from capdex_router.catalog.short_forms import ShortForms
from capdex_router.home.audit_log import AuditLog
from capdex_router.home.config import Config, NodeAddress
from capdex_router.home.directory import Home
from capdex_router.install.facts import accesses, locked
from capdex_router.install.fetch import Cache
from capdex_router.install.installer import Installer
from capdex_router.install.lock_store import LockStore
from capdex_router.install.sync import sync
from capdex_router.policy.grant_file import GrantFile
from capdex_router.policy.grants import EVERY_TOOL, Grant

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "benchmarks" / "service"), str(ROOT / "benchmarks")]
import filled  # noqa: E402
import servers  # noqa: E402
from packages import ACCOUNT, CHAIN_ID  # noqa: E402

WARM_UP = 5
OPENED: list[str] = []


class Yes:
    """A person who agrees at once."""

    async def ask(self, question: Any) -> bool:
        return True


def announced(name: str, version: str, data: bytes) -> Announcement:
    cid = Cid.of(data)
    account = filled.checksum_address(ACCOUNT)
    return Announcement(
        CHAIN_ID, account, f"{PREFIX}{name}@{version}", version, cid.text, cid.digest
    )


def open_installer(home: Home, nodes: tuple[NodeAddress, ...] = ()) -> Installer:
    return Installer(
        home,
        Config(nodes=nodes),
        rights=GrantFile(home.grants),
        audit=AuditLog(home.audit),
        seen=ShortForms(home).add,
    )


def put(home: Home, packages: list[VerifiedPackage]) -> None:
    """Have some packages installed, as their installation would leave them."""
    Cache(home.blocks).put([package.data for package in packages])
    store = LockStore(home.lock_file)
    entries = []
    grants = []
    for package in packages:
        said = package.announcement
        chain = {"chain_id": said.chain_id, "publisher": said.publisher}
        entries.append(locked(package, "", chain))
        targets = dict.fromkeys(x.target for x in accesses(package) if x.target)
        name = f"{PREFIX}{package.manifest.uri.name}"
        grants += [Grant(name, said.sha256.hex(), EVERY_TOOL, target) for target in targets]
    store.write(store.read().plus(entries))
    GrantFile(home.grants).grant(grants)


def show(what: str, times: list[float]) -> None:
    ranked = sorted(times)
    p99 = ranked[int(len(ranked) * 0.99)]
    print(f"{what}: p50 {median(times) * 1000:.1f} ms, p99 {p99 * 1000:.1f} ms, n = {len(times)}")


async def installing(made: filled.Made, url: str, home: Home) -> None:
    installer = open_installer(home, (NodeAddress(f"{url}/mcp", url),))
    times, judged = [], []
    for number, (name, version, data) in enumerate(made):
        began = time.perf_counter()
        done = await installer.install(CapabilityURI(name), Yes())
        took = time.perf_counter() - began
        assert done.status == "installed", done
        said = announced(name, version, data)
        began = time.perf_counter()
        verify(said, data)
        if number >= WARM_UP:
            times.append(took)
            judged.append(time.perf_counter() - began)
    show("install from a local node", times)
    show("verify in capdex alone", judged)


async def offline(packages: list[VerifiedPackage], home: Home) -> None:
    put(home, packages)
    installer = open_installer(home)
    OPENED.clear()
    began = time.perf_counter()
    outcomes = await sync(installer, Yes(), frozen=True)
    took = time.perf_counter() - began
    assert len(outcomes) == len(packages)
    assert not OPENED, OPENED
    print(f"sync of {len(packages)} from a lock, offline, no socket: {took:.1f} s")


async def starting(home: Path, names: list[str]) -> None:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-c", "from capdex_cli.main import main; main()", "router"],
        cwd=ROOT,
        env={"CAPDEX_HOME": str(home), "PATH": os.environ["PATH"]},
    )
    for attempt in ("first", "second"):
        began = time.perf_counter()
        async with Client(server) as client:
            await client.list_tools()
            listed = time.perf_counter() - began
            await client.call_tool("describe", {"uri": PREFIX + names[-1]})
            described = time.perf_counter() - began
            await client.call_tool("find", {"want": "weather", "remote": False})
            found = time.perf_counter() - began
        print(
            f"{attempt} start with {len(names)} installed: tools/list after {listed:.2f} s, "
            f"an exact name described after {described:.2f} s, a search after {found:.2f} s"
        )


def note_socket(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("socket.connect", "socket.getaddrinfo", "socket.bind"):
        OPENED.append(event)


async def main(count: int = 200, lock: int = 1_000, many: int = 10_000) -> None:
    folder = servers.scratch()
    made = await filled.make(count)
    db, blocks = f"sqlite:///{folder / 'index.db'}", folder / "blocks"
    filled.fill([db], made, blocks)
    with servers.beating([db]), servers.node("node", db, blocks, folder) as node:
        await installing(made, f"http://127.0.0.1:{node.port}", Home.open(folder / "one"))
    made = await filled.make(max(lock, many))
    packages = [verify(announced(*one), one[2]) for one in made[:lock]]
    sys.addaudithook(note_socket)
    await offline(packages, Home.open(folder / "two"))
    if many:
        with TemporaryDirectory() as home:
            data = Home.open(Path(home) / "data" / "router")
            forms = ShortForms(data)
            for at in range(0, many, 500):
                packages = [verify(announced(*one), one[2]) for one in made[at : at + 500]]
                put(data, packages)
                for package in packages:
                    forms.add(package)
            await starting(Path(home), [name for name, _, _ in made[:many]])


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
