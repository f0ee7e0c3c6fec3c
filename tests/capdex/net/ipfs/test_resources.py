"""Files of a package from several sources: all of them checked, or an error that names one."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest

from capdex.errors import CapdexError, InvalidInput, Unavailable, VerificationFailure
from capdex.ipld.cid import Cid
from capdex.ipld.dag_pb import write_piece
from capdex.ipld.unixfs import divide
from capdex.manifest.resources import MAX_RESOURCES, Resource
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.net.ipfs.multi_source import MAX_CONCURRENT, MultiSource, fetch_resources

FILES = {"a.md": b"# A\n", "empty": b"", "data/large.bin": bytes(range(256)) * 4096}
LARGE = bytes(300_000)


def resource(path: str, data: bytes) -> Resource:
    digest = hashlib.sha256(data).digest()
    return Resource(path, divide(data)[0][0], digest, len(data), "text/plain", False)


def claim(data: bytes, *, size: int) -> Resource:
    """A list's row with a CID that can be fetched, and another digest."""
    return Resource("b.md", divide(data)[0][0], bytes(32), size, "text/plain", False)


def shelf(path: Path, *files: bytes) -> BlockDirectory:
    directory = BlockDirectory(path)
    for data in files:
        directory.keep_many(divide(data))
    return directory


async def test_every_file_comes_checked_under_its_path(tmp_path: Path) -> None:
    source = MultiSource([shelf(tmp_path / "1"), shelf(tmp_path / "2", *FILES.values())])
    wanted = [resource(path, data) for path, data in FILES.items()]
    assert await fetch_resources(wanted, source) == FILES


@pytest.mark.parametrize(
    ("wanted", "family"),
    [
        (resource("b.md", b"absent"), Unavailable),
        (claim(LARGE, size=4), InvalidInput),
        (claim(FILES["a.md"], size=4), VerificationFailure),
        (claim(FILES["a.md"], size=3), VerificationFailure),
        (claim(LARGE, size=len(LARGE)), VerificationFailure),
    ],
)
async def test_a_file_that_is_not_there_or_another_one_is_named(
    wanted: Resource, family: type[CapdexError], tmp_path: Path
) -> None:
    source = MultiSource([shelf(tmp_path, *FILES.values(), LARGE)])
    with pytest.raises(family, match=r"b\.md"):
        await fetch_resources([resource("a.md", FILES["a.md"]), wanted], source)


class Silent:
    """A source that never answers, and counts who waits."""

    label = "silent"

    def __init__(self) -> None:
        self.waiting = self.most = 0
        self.full = asyncio.Event()

    async def get(self, cid: Cid) -> bytes:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        if self.waiting == MAX_CONCURRENT:
            self.full.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.waiting -= 1
        raise AssertionError

    async def close(self) -> None:
        """Do nothing."""


async def test_512_files_that_never_arrive_hold_eight_requests_and_end_together() -> None:
    source = Silent()
    wanted = [resource(f"{i}.md", b"%d" % i) for i in range(MAX_RESOURCES)]
    fetching = asyncio.create_task(fetch_resources(wanted, MultiSource([source])))
    await source.full.wait()
    fetching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fetching
    assert (source.most, source.waiting) == (MAX_CONCURRENT, 0)


class Endless(Silent):
    """A source with a tree of 4 096 leaves under one root; it counts what is asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    async def get(self, cid: Cid) -> bytes:
        self.asked += 1
        return TREE[cid]


LEAF = b"x"
BRANCH = write_piece([(Cid.of(LEAF), 1)] * 64)
BRANCH_CID = Cid.from_bytes(b"\x01\x70\x12\x20" + hashlib.sha256(BRANCH).digest())
ROOT = write_piece([(BRANCH_CID, 64)] * 64)
ROOT_CID = Cid.from_bytes(b"\x01\x70\x12\x20" + hashlib.sha256(ROOT).digest())
TREE = {ROOT_CID: ROOT, BRANCH_CID: BRANCH, Cid.of(LEAF): LEAF}


@pytest.mark.parametrize("size", [1, 4096, 4 * 1024 * 1024])
async def test_a_tree_of_many_blocks_costs_64_requests_at_most(size: int) -> None:
    source = Endless()
    wanted = Resource("b.md", ROOT_CID, bytes(32), size, "text/plain", False)
    with pytest.raises(InvalidInput, match=r"b\.md"):
        await fetch_resources([wanted], MultiSource([source]))
    assert source.asked <= 64
