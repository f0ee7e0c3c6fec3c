"""Packages and their files by sha256: from this machine, else from gateways; always verified."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from capdex.errors import Code, Unavailable, VerificationFailure
from capdex.ipld.cid import Cid
from capdex.limits import MAX_RESOURCE_BYTES
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.net.ipfs.gateway import Gateway
from capdex.net.ipfs.multi_source import MultiSource, fetch_resources
from capdex.package import VerifiedPackage, verify
from capdex.registry.events import Announcement
from capdex_router.home.config import Config
from capdex_router.install.facts import check
from capdex_router.install.lockfile import Locked


class Cache:
    """Packages and their files in a directory, each as one block, hashed whenever it is read.

    A block that was replaced, or leads elsewhere by a link, counts as missing.
    """

    def __init__(self, path: Path) -> None:
        self._blocks = BlockDirectory(path, MAX_RESOURCE_BYTES)

    def get(self, sha256: bytes) -> bytes | None:
        """Return a package's bytes, or None if they are not here."""
        return self._blocks.read(Cid.raw(sha256))

    def holds(self, sha256: bytes) -> bool:
        """Return True if there is a block of this name; it is not read."""
        return self._blocks.holds(Cid.raw(sha256))

    def put(self, packages: Sequence[bytes]) -> None:
        """Keep some packages or files; all of them are durable when it returns."""
        self._blocks.keep_many([(Cid.of(data), data) for data in packages])

    def files(self, package: VerifiedPackage) -> dict[str, bytes]:
        """Return the files of a package that are here, by path."""
        blocks = ((x.path, self.get(x.sha256)) for x in package.manifest.resources)
        return {path: data for path, data in blocks if data is not None}

    def package(self, announcement: Announcement) -> VerifiedPackage | None:
        """Return the package of an announcement, verified again, or None if it is not here.

        Raises VerificationFailure if the bytes are here and do not pass.
        """
        data = self.get(announcement.sha256)
        return None if data is None else verify(announcement, data)


@asynccontextmanager
async def open_gateways(config: Config) -> AsyncIterator[MultiSource]:
    """Open the gateways of all nodes: connections with the first request, closed at the end."""
    urls = dict.fromkeys(node.gateway_url for node in config.nodes if node.gateway_url)
    async with AsyncExitStack() as stack:
        gateways = [await stack.enter_async_context(Gateway(url)) for url in urls]
        yield MultiSource(gateways)


async def fetch(announcement: Announcement, cache: Cache, source: MultiSource) -> VerifiedPackage:
    """Return the package of an announcement from the cache, else from a source; it is not kept.

    Raises VerificationFailure if the bytes do not pass, Unavailable if nobody has them.
    """
    package = cache.package(announcement)
    if package is not None:
        return package
    file = await source.file(Cid.parse(announcement.cid))
    try:
        return verify(announcement, file.data)
    except VerificationFailure as error:  # whose fix is for the author: a node may have lied
        fix = "ask another node, which may say otherwise; else it is for its author to mend"
        raise replace(error, fix=fix) from None


async def fetch_files(
    package: VerifiedPackage, cache: Cache, source: MultiSource
) -> dict[str, bytes]:
    """Return all files of a package by path, from the cache, else from a source; none is kept.

    Raises as `fetch_resources`.
    """
    here = cache.files(package)
    absent = [file for file in package.manifest.resources if file.path not in here]
    return here | await fetch_resources(absent, source)


def files_here(package: VerifiedPackage, cache: Cache) -> dict[str, bytes]:
    """Return all files of a package by path; raises Unavailable if one is not on this machine."""
    here = cache.files(package)
    if len(here) < len(package.manifest.resources):
        raise missing(package.announcement)
    return here


def installed(entry: Locked, cache: Cache) -> VerifiedPackage:
    """Return an installed package, verified again; no socket is opened.

    Raises Unavailable if its bytes are not here, VerificationFailure if they do not pass,
    InvalidInput LOCK_DRIFT if the entry says otherwise than they do.
    """
    try:
        package = cache.package(entry.announcement)
    except VerificationFailure as error:  # whose fix is for the author, who made no mistake
        raise replace(error, fix=f"capdex remove {entry.name}, then install it again") from None
    if package is None:
        raise missing(entry.announcement)
    check(entry, package)
    return package


def missing(announcement: Announcement) -> Unavailable:
    """Return the error for a package whose bytes are not on this machine."""
    message = f"the bytes of {announcement.cap_uri} are not on this machine"
    why = "its block in the cache is missing or damaged"
    return Unavailable(message, Code.IPFS_UNAVAILABLE, why=why, fix="capdex sync")
