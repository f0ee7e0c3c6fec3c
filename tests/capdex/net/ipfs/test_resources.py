"""Files of a package from several sources: all of them checked, or an error that names one."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from capdex.errors import CapdexError, InvalidInput, Unavailable, VerificationFailure
from capdex.ipld.unixfs import divide
from capdex.manifest.resources import Resource
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.net.ipfs.multi_source import MultiSource
from capdex.net.ipfs.resources import fetch_resources

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
    heard: list[str] = []
    wanted = [resource(path, data) for path, data in FILES.items()]
    assert await fetch_resources(wanted, source, lambda x: heard.append(x.path)) == FILES
    assert sorted(heard) == sorted(FILES)


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
