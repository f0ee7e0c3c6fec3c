"""Packages of verified releases that this node does not hold, as after a move without its blocks.

Their verdict is in the database and commits to their bytes, so they are fetched and kept, and not
judged again. What no source gives now is asked for again at the next look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import structlog

from capdex.errors import CapdexError
from capdex.ipld.cid import Cid
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.net.ipfs.multi_source import MultiSource
from capdex.net.ipfs.source import BlockSource
from capdex.uri import CapabilityURI
from capdex_indexer.store import Job, Store

LOOK_S: Final = 3600.0  # between two looks at all verified releases
PAGE: Final = 512
PLACES: Final = 8  # packages fetched at once: new ones go first
FETCH_S: Final = 30.0

log = structlog.get_logger(part="fetch")


class LostPackages:
    """Fetches what the block directory lacks; names and CIDs that are denied stay away."""

    def __init__(
        self, store: Store, sources: Sequence[BlockSource], blocks: BlockDirectory
    ) -> None:
        self._store, self._sources, self._blocks = store, MultiSource(sources), blocks
        self._places = asyncio.Semaphore(PLACES)

    async def run(self) -> None:
        """Look at all verified releases, again and again, until cancelled."""
        while True:
            try:
                await self._look()
            except CapdexError as error:
                log.warning("packages not looked for", why=error.line)
            await asyncio.sleep(LOOK_S)

    async def _look(self) -> None:
        after, lost, found = 0, 0, 0
        while page := await asyncio.to_thread(self._store.verified, after, PAGE):
            after = page[-1].release_id
            if cids := await asyncio.to_thread(self._lacking, page):
                lost += len(cids)
                found += sum(await asyncio.gather(*map(self._fetch, cids)))
        if lost:
            log.warning("packages were not held", lost=lost, fetched=found)

    def _lacking(self, page: Sequence[Job]) -> list[Cid]:
        """In a thread: return the CIDs of releases that may be served and are not held."""
        named = [(x, Cid.parse(x.announcement.cid)) for x in page]
        lost = [(x, cid) for x, cid in named if not self._blocks.holds(cid)]
        if not lost:
            return []
        denials = self._store.denials()
        return [cid for x, cid in lost if not denials.of_release(*_named(x))]

    async def _fetch(self, cid: Cid) -> bool:
        """Fetch and keep a package; return whether it was given."""
        async with self._places:
            with suppress(CapdexError, TimeoutError):
                async with asyncio.timeout(FETCH_S):
                    file = await self._sources.file(cid)
                await asyncio.to_thread(self._blocks.keep_many, list(file.blocks.items()))
                return True
        return False


def _named(job: Job) -> tuple[str, str, bytes]:
    said = job.announcement
    return CapabilityURI.exact(said.cap_uri).name, said.cid, said.sha256
