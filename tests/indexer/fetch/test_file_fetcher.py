"""Files that packages name: kept within a budget, whatever their lists say and whoever answers."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from capdex.errors import Code, Unavailable
from capdex.ipld.cid import Cid
from capdex.ipld.unixfs import divide
from capdex.manifest.resources import Resource
from capdex.net.ipfs.block_store import BlockDirectory, files_of
from capdex.net.ipfs.gateway import Gateway
from capdex.net.ipfs.multi_source import MultiSource
from capdex_indexer.fetch import file_fetcher
from capdex_indexer.fetch.fetcher import Fetcher
from capdex_indexer.fetch.file_fetcher import MISSES, FileFetcher
from capdex_indexer.fetch.kept_files import DISK_BLOCK, KeptFiles
from capdex_indexer.fetch.result_writer import MAX_TRIES
from capdex_indexer.http.status import Surface
from capdex_indexer.monitoring.health import Health
from capdex_indexer.query.index import Index
from capdex_indexer.store import Operator, Store
from capdex_indexer.workers.pool import Verifier

MIB = 1024 * 1024


class Shelf:
    """A source that has what is put on it, and counts what it was asked for."""

    label = "shelf"

    def __init__(self) -> None:
        self.blocks: dict[str, bytes] = {}
        self.asked: list[str] = []

    def put(self, data: bytes) -> None:
        self.blocks |= {cid.text: block for cid, block in divide(data)}

    async def get(self, cid: Cid) -> bytes:
        self.asked.append(cid.text)
        if cid.text not in self.blocks:
            raise Unavailable("the shelf does not have it", Code.IPFS_UNAVAILABLE)
        return self.blocks[cid.text]

    async def close(self) -> None: ...


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what a background task is about to bring about."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - files on disk are no event
            await asyncio.sleep(0.005)


@asynccontextmanager
async def keeping(
    store: Store, shelf: Shelf, blocks: BlockDirectory, budget: int
) -> AsyncIterator[FileFetcher]:
    """Run both fetchers over a shelf, with a budget for files."""
    kept = KeptFiles(blocks, budget)
    files = FileFetcher(store, [shelf], blocks, kept)
    async with Verifier(1) as verifier:
        fetcher = Fetcher(
            store, [shelf], verifier, blocks, committed=asyncio.Event(), verified=files.add
        )
        tasks = [asyncio.create_task(x.run()) for x in (fetcher, files)]
        try:
            yield files
        finally:
            for task in tasks:
                task.cancel()
            for task in tasks:
                with suppress(asyncio.CancelledError):
                    await task
            # A file is counted before its last byte is written: this waits for such a change.
            await asyncio.to_thread(files.kept.drop, lambda _: False)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_fetcher, "LOOK_S", 0.02)
    monkeypatch.setattr(file_fetcher, "delay_s", lambda _: 0.0)


def announce(making: Any, chain: Any, store: Store, shelf: Shelf) -> None:
    for data in chain.packages.values():
        shelf.put(data)
    making.append(store, chain)


def cid_of(data: bytes) -> Cid:
    return divide(data)[0][0]


def naming(making: Any, name: str, rows: list[dict[str, Any]], **options: Any) -> bytes:
    """A package with a list of files that may be a lie."""
    document = yaml.safe_load(making.package_bytes(name, publisher=None))
    document.pop("signature", None)
    for key in ("author", "signature", "publisher", "author_signature"):
        document["metadata"].pop(key, None)
    document["resources"] = rows
    text = yaml.safe_dump(document, allow_unicode=True, sort_keys=False)
    return bytes(making.signed(text, **options))


async def test_files_of_a_verified_package_are_kept_and_served_block_by_block(
    making: Any,
    chain: Any,
    store: Store,
    search_index: Index,
    block_directory: BlockDirectory,
    serving: Any,
) -> None:
    small, large = b"#!/bin/sh\n", bytes(range(256)) * 3000
    chain.publish("skill", files={"scripts/run.sh": small, "assets/large.bin": large})
    shelf = Shelf()
    announce(making, chain, store, shelf)
    shelf.put(small)
    shelf.put(large)
    async with keeping(store, shelf, block_directory, 2 * MIB) as files:
        await until(lambda: files.kept.count == 2)
    surface = Surface(search_index, block_directory, Health())
    async with serving.serve(surface) as node, Gateway(node.url) as gateway:
        source = MultiSource([gateway])
        assert (await source.file(cid_of(large), len(large))).data == large
        assert (await source.file(cid_of(small))).data == small


async def test_a_node_without_a_budget_requests_no_file_and_removes_what_it_kept(
    making: Any, chain: Any, store: Store, block_directory: BlockDirectory
) -> None:
    chain.publish("skill", files={"notes.md": b"# Notes\n"})
    shelf = Shelf()
    announce(making, chain, store, shelf)
    shelf.put(b"# Notes\n")
    async with keeping(store, shelf, block_directory, MIB) as files:
        await until(lambda: files.kept.count == 1)
    shelf.asked.clear()
    folder = files_of(block_directory).path
    async with keeping(store, shelf, block_directory, 0):
        await until(lambda: not [x for x in folder.rglob("*") if x.is_file()])
    assert shelf.asked == []


async def test_a_restart_brings_what_came_meanwhile_and_drives_nothing_out(
    making: Any,
    chain: Any,
    store: Store,
    block_directory: BlockDirectory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, two = b"1" * 9000, b"2" * 9000
    chain.publish("one", files={"a.txt": one})
    chain.publish("two", files={"b.txt": two})
    shelf = Shelf()
    announce(making, chain, store, shelf)
    shelf.put(one)
    budget = 5 * DISK_BLOCK  # one of the files, with its record
    async with keeping(store, shelf, block_directory, budget) as files:
        await until(lambda: files.kept.count == 1)
        await until(lambda: len(store.verified(0, 3)) == 2)  # else the second is new after it
    shelf.put(two)
    shelf.asked.clear()
    pages: list[Any] = []
    read = store.verified

    def noted(after: int, limit: int) -> Any:
        pages.append(read(after, limit))
        return pages[-1]

    monkeypatch.setattr(store, "verified", noted)
    async with keeping(store, shelf, block_directory, budget) as files:
        await until(lambda: bool(pages) and pages[-1] == [] and not files.waiting)
    assert files.kept.holds(cid_of(one))
    assert shelf.asked == []


async def test_a_denied_name_loses_its_files_and_gets_none(
    making: Any, chain: Any, store: Store, block_directory: BlockDirectory, database_url: str
) -> None:
    chain.publish("skill", files={"notes.md": b"# Notes\n"})
    shelf = Shelf()
    announce(making, chain, store, shelf)
    shelf.put(b"# Notes\n")
    async with keeping(store, shelf, block_directory, MIB) as files:
        await until(lambda: files.kept.count == 1)
        with Operator(database_url) as operator:
            operator.deny("skill", "spam")
        await until(lambda: files.kept.count == 0)
    assert files_of(block_directory).read(Cid.of(b"# Notes\n")) is None


async def test_a_hostile_list_costs_a_bounded_number_of_requests_and_no_one_else_a_file(
    making: Any, chain: Any, store: Store, search_index: Index, block_directory: BlockDirectory
) -> None:
    """512 files that never come; wrong sizes and hashes; a tree much larger than its file."""
    shelf = Shelf()
    absent = [making.file_row(f"absent/{i}", b"absent %d" % i) for i in range(512)]
    data = b"x" * 3000
    large = b"y" * MIB
    root = cid_of(large)
    liar = {**making.file_row("large", large), "size": 10}
    other = {**making.file_row("other", large), "sha256": hashlib.sha256(b"z").hexdigest()}
    longer = {**making.file_row("longer", data), "size": 2999}
    for name, rows in (("absent", absent), ("wrong", [liar, other, longer])):
        account = making.OTHER
        chain.publish(name, data=naming(making, name, rows, publisher=account), publisher=account)
    chain.publish("honest", files={"notes.md": b"# Notes\n"})
    announce(making, chain, store, shelf)
    for content in (data, large, b"# Notes\n"):
        shelf.put(content)
    never = {row["cid"] for row in absent}

    def requests() -> int:
        return sum(x in never for x in shelf.asked)

    budget = 2 * MIB
    async with keeping(store, shelf, block_directory, budget) as files:
        await until(lambda: shelf.asked.count(longer["cid"]) > 0 and files.kept.count == 1)
        await until(lambda: requests() >= MISSES * MAX_TRIES)
        await until(lambda: not files.waiting)
    assert dict(search_index.status().by_verdict) == {"verified": 3}
    assert files.kept.holds(Cid.of(b"# Notes\n"))
    assert requests() == MISSES * MAX_TRIES
    # the root once for its size, and the whole of it once for its hash
    assert shelf.asked.count(str(root)) == 2
    assert shelf.asked.count(longer["cid"]) == 1
    assert on_disk(block_directory) <= budget


def on_disk(blocks: BlockDirectory) -> int:
    return sum(x.stat().st_size for x in files_of(blocks).path.rglob("*") if x.is_file())


# what is kept ---------------------------------------------------------------------------------


def put(kept: KeptFiles, owner: str, data: bytes, *, evict: bool = True) -> bool:
    digest = hashlib.sha256(data).digest()
    resource = Resource("file", cid_of(data), digest, len(data), "text/plain", executable=False)
    return kept.keep(owner, "skill", resource, dict(divide(data)), evict=evict)


def test_the_oldest_file_of_the_owner_with_the_most_goes_first(tmp_path: Path) -> None:
    kept = KeptFiles(BlockDirectory(tmp_path), 8 * DISK_BLOCK)  # four small files
    for owner, data in [("b", b"b1"), ("a", b"a1"), ("a", b"a2"), ("a", b"a3"), ("a", b"a4")]:
        assert put(kept, owner, data)
    assert [kept.holds(cid_of(x)) for x in (b"b1", b"a1", b"a2")] == [True, False, True]
    assert put(kept, "b", b"b2")
    assert [kept.holds(cid_of(x)) for x in (b"b1", b"a2", b"a3")] == [True, False, True]
    assert kept.bytes == kept.budget
    assert not put(kept, "c", b"c", evict=False)
    assert not put(kept, "c", bytes(9 * DISK_BLOCK))


def test_a_block_that_two_files_share_stays_with_the_second(tmp_path: Path) -> None:
    kept = KeptFiles(BlockDirectory(tmp_path), MIB * 2)
    leaf = bytes(256 * 1024)
    one, two = leaf + b"1", leaf + b"2"
    assert put(kept, "a", one)
    assert put(kept, "a", two)
    kept.drop(lambda x: x.root == cid_of(one).text)
    assert kept.blocks.read(Cid.of(leaf)) == leaf
    kept.drop(lambda _: True)
    assert kept.blocks.read(Cid.of(leaf)) is None
    assert kept.bytes == 0


@pytest.mark.parametrize("spoilt", ["cut", "lost", "unnamed"])
def test_a_start_removes_what_a_killed_process_left(tmp_path: Path, spoilt: str) -> None:
    kept = KeptFiles(BlockDirectory(tmp_path), MIB)
    assert put(kept, "a", b"whole")
    assert put(kept, "a", b"spoilt")
    record = kept.blocks.path / "kept" / cid_of(b"spoilt").text
    if spoilt == "cut":
        record.write_bytes(record.read_bytes()[:40])
    elif spoilt == "lost":
        kept.blocks.remove(cid_of(b"spoilt"))
    else:
        record.unlink()
    again = KeptFiles(BlockDirectory(tmp_path), MIB)
    again.load()
    assert (again.count, again.holds(cid_of(b"whole"))) == (1, True)
    assert again.blocks.read(cid_of(b"spoilt")) is None
    assert json.loads((kept.blocks.path / "kept" / cid_of(b"whole").text).read_bytes())
    assert not record.exists()
