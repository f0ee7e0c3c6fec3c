"""files.py COUNT [--seed N]: COUNT packages that name files, most of them lies, and a small budget.

Accounts name 512 files that never come or are never answered, other sizes or hashes, a tree much
larger than it says, and honest ones. A gateway over HTTP has what there is. Every package must be
verified; no list may cost more requests than its turns allow; the disk stays below the budget at
every look, and memory within MEMORY of the start; files of the one honest account are kept. The
last line is `N passed, N failed`, by package.
"""

# ruff: noqa: T201, S311 - a script prints; random numbers here are not secret

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import psutil
import structlog
import yaml
from aiohttp import web
from attempts import arguments, conclude

from capdex.ipld.cid import Cid
from capdex.ipld.unixfs import divide
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.net.ipfs.gateway import Gateway
from capdex_indexer.fetch import file_fetcher
from capdex_indexer.fetch.fetcher import Fetcher
from capdex_indexer.fetch.file_fetcher import MISSES, FileFetcher
from capdex_indexer.fetch.kept_files import KeptFiles
from capdex_indexer.fetch.result_writer import MAX_TRIES
from capdex_indexer.store import Store
from capdex_indexer.workers.pool import Verifier
from tests.indexer import making

BUDGET = 2 * 1024 * 1024
MEMORY = 256 * 1024 * 1024
HONEST = bytes.fromhex("90f79bf6eb2c4f870365e785982e1f101e93b906")
KINDS = ("absent", "silent", "size", "hash", "tree", "large")
FILES = 512
# shorter than a node's: 150, 30 and 10 times; and the pauses between turns
TIMES = {"FILE_S": 0.2, "TURN_S": 2.0, "LOOK_S": 0.2, "delay_s": lambda _: 0.05}


@dataclass
class Shelf:
    """Blocks behind a gateway, and how often each is asked for."""

    blocks: dict[str, bytes] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    asked: Counter[str] = field(default_factory=Counter)

    def put(self, data: bytes) -> Cid:
        blocks = divide(data)
        self.blocks |= {cid.text: block for cid, block in blocks}
        return blocks[0][0]

    async def answer(self, request: web.Request) -> web.Response:
        cid = request.match_info["cid"]
        self.asked[cid] += 1
        if cid in self.silent:
            await asyncio.Event().wait()
        if cid not in self.blocks:
            return web.Response(status=404)
        return web.Response(body=self.blocks[cid], content_type="application/vnd.ipld.raw")


@dataclass
class Soak:
    """A chain of packages, and what each of their lists may cost."""

    random: Random
    shelf: Shelf = field(default_factory=Shelf)
    chain: Any = field(default_factory=making.Chain)
    honest: dict[str, list[Cid]] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)  # CIDs that never come, by name

    def publish(self, number: int) -> None:
        """Announce a package: each tenth one is honest."""
        kind = "honest" if number % 10 == 0 else self.random.choice(KINDS)
        name, salt = f"{kind}-{number}", self.random.randbytes(16)
        if kind == "honest":
            files = {f"{i}.bin": salt + bytes([i]) * 1000 for i in range(3)}
            rows = [making.file_row(path, data) for path, data in files.items()]
            self.honest[name] = [self.shelf.put(data) for data in files.values()]
        elif kind in ("absent", "silent"):
            rows = [making.file_row(f"{i}", salt + b"%d" % i) for i in range(FILES)]
            self.lists[name] = [row["cid"] for row in rows]
            self.shelf.silent |= set(self.lists[name]) if kind == "silent" else set()
        else:
            rows = [self.lie(kind, salt, i) for i in range(8)]
        account = HONEST if kind == "honest" else self.random.randbytes(20)
        document = yaml.safe_load(making.package_bytes(name, publisher=account))
        for key in ("author", "signature", "publisher"):
            document["metadata"].pop(key, None)
        document.pop("signature", None)
        document["resources"] = rows
        data = making.signed(yaml.safe_dump(document, sort_keys=False), account)
        self.shelf.put(data)
        self.chain.publish(name, data=data, publisher=account)

    def lie(self, kind: str, salt: bytes, i: int) -> dict[str, Any]:
        """A file that is there, and another one than its row says; large ones are no lie."""
        data = salt + bytes([i]) * (600_000 if kind in ("tree", "large") else 3000)
        row = dict(making.file_row(f"{i}", data))
        self.shelf.put(data)
        if kind == "hash" and len(divide(data)) > 1:
            row["sha256"] = "00" * 32
        if kind in ("size", "hash"):
            row["size"] -= 1
        elif kind == "tree":
            row["size"] = 100
        else:  # the first two of them take more than half of the budget
            row["path"] = f"large/{i}"
        return row if kind != "large" or i < 2 else dict(making.file_row(f"{i}", b"none" + salt))

    async def run(self, folder: Path) -> int:
        """Fetch all of it; the number of packages with which something is wrong."""
        app = web.Application()
        app.router.add_get("/ipfs/{cid}", self.shelf.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, shutdown_timeout=0.1)
        await site.start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        store = Store.open(f"sqlite:///{folder / 'index.db'}", making.DEPLOYMENT)
        making.append(store, self.chain)
        blocks = BlockDirectory(folder / "blocks")
        try:
            async with Gateway(url) as gateway, Verifier(1) as verifier:
                kept = KeptFiles(blocks, BUDGET)
                files = FileFetcher(store, [gateway], blocks, kept)
                fetcher = Fetcher(
                    store, [gateway], verifier, blocks,
                    committed=asyncio.Event(), verified=files.add,
                )  # fmt: skip
                tasks = [asyncio.create_task(one.run()) for one in (fetcher, files)]
                try:
                    return await self.watch(store, files)
                finally:
                    for task in tasks:
                        task.cancel()
                    for task in tasks:
                        with suppress(asyncio.CancelledError):
                            await task
        finally:
            store.close()
            await runner.cleanup()

    async def watch(self, store: Store, files: FileFetcher) -> int:
        """Wait until nothing is left to request, then compare."""
        names = len(self.chain.packages)
        memory = psutil.Process().memory_info
        before, most_memory, most_disk, quiet = memory().rss, 0, 0, 0
        while quiet < 10:
            await asyncio.sleep(0.1)
            most_memory = max(most_memory, memory().rss - before)
            most_disk = max(most_disk, on_disk(files.kept))
            done = len(store.verified(0, names + 1)) == names and not files.waiting
            quiet = quiet + 1 if done else 0
        wrong = [
            f"{name}: {requests} requests"
            for name, cids in self.lists.items()
            if (requests := sum(self.shelf.asked[x] for x in cids)) > MISSES * MAX_TRIES
        ]
        wrong += [
            f"{name}: not all files are kept"
            for name, roots in self.honest.items()
            if not all(map(files.kept.holds, roots))
        ]
        if most_disk > BUDGET or most_memory > MEMORY:
            wrong.append("more disk or memory than there is")
        print(*wrong, sep="\n")
        print(
            f"{self.shelf.asked.total()} requests, {most_disk} bytes of {BUDGET} on disk, "
            f"{most_memory / 2**20:.0f} MiB more memory"
        )
        return len(wrong)


def on_disk(kept: KeptFiles) -> int:
    """The bytes of all files below the directory."""
    found = 0
    for path in kept.blocks.path.rglob("*"):
        with suppress(FileNotFoundError):
            found += path.stat().st_size if path.is_file() else 0
    return found


def main() -> int:
    options = arguments(__doc__).parse_args()
    print(f"seed {options.seed}")
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    for name, value in TIMES.items():
        setattr(file_fetcher, name, value)
    soak = Soak(Random(options.seed))
    for number in range(options.count):
        soak.publish(number)
    with tempfile.TemporaryDirectory() as folder:
        return conclude(options.count, asyncio.run(soak.run(Path(folder))))


if __name__ == "__main__":
    sys.exit(main())
