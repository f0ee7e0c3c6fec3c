"""Upload packages and fetch them back, as other clients will, before anything is paid."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from capdex.errors import CapdexError, Code, Unavailable
from capdex.ipld.cid import Cid
from capdex.ipld.unixfs import divide
from capdex.net.tasks import together
from capdex_publisher.progress import FilesUploaded, OnStep, Uploaded

if TYPE_CHECKING:
    from capdex.net.ipfs.open import Storage
    from capdex.net.ipfs.source import BlockSource

MAX_CONCURRENT_UPLOADS: Final = 8  # a storage at home has little more bandwidth
GATEWAY_WAIT_S: Final = 60.0  # a public gateway finds new bytes through the DHT within a minute
MAX_POLL_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Uploader:
    """The storage that packages go to, and the gateways that they are fetched back from.

    `gateway` has to return them. `node`, a gateway of a capdex node, is asked once: a node keeps
    what was announced, so it has them before only if it shares the storage.
    """

    storage: Storage
    gateway: BlockSource | None = None
    node: BlockSource | None = None
    gateway_wait_s: float = GATEWAY_WAIT_S

    @classmethod
    @asynccontextmanager
    async def open(
        cls, ipfs: str, *, gateway_url: str = "", node_url: str = ""
    ) -> AsyncIterator[Uploader]:
        """Open a storage (`dir:PATH` or a Kubo RPC) and gateways; an empty URL means none."""
        from capdex.net.ipfs.gateway import Gateway  # aiohttp, for those who upload
        from capdex.net.ipfs.open import open_storage

        gateway = Gateway(gateway_url) if gateway_url and gateway_url != node_url else None
        uploader = cls(open_storage(ipfs), gateway, Gateway(node_url) if node_url else None)
        try:
            yield uploader
        finally:
            await uploader.close()

    async def close(self) -> None:
        """Close all connections."""
        for source in self.sources:
            await source.close()

    @property
    def sources(self) -> Sequence[BlockSource]:
        """All sources that may have a package that was published before."""
        return [x for x in (self.storage, self.node, self.gateway) if x is not None]

    async def upload(self, data: bytes) -> Uploaded:
        """Store a package and fetch it back; raise Unavailable IPFS_UNAVAILABLE."""
        cid = Cid.of(data)
        await self._put(data, cid)
        return Uploaded(str(cid), len(data), await self._read_back(cid))

    async def upload_files(self, cap_uri: str, files: Iterable[bytes]) -> FilesUploaded:
        """Store the files of a package and fetch back each block; raise Unavailable.

        What is stored already is stored again without harm, so that a run can be repeated.
        """
        began, slots = time.monotonic(), asyncio.Semaphore(MAX_CONCURRENT_UPLOADS)

        async def upload(data: bytes) -> str:
            async with slots:
                blocks = divide(data)
                await self._put(data, blocks[0][0])
                return [await self._read_back(cid) for cid, _ in blocks][-1]

        files = list(files)
        sources = await together([upload(data) for data in files])
        took = time.monotonic() - began
        return FilesUploaded(cap_uri, len(files), sum(map(len, files)), took, sources[-1])

    async def upload_all(
        self, packages: Sequence[bytes], *, on_step: OnStep
    ) -> list[Uploaded | CapdexError]:
        """Upload several side by side; return a result or an error for each, in their order."""
        slots = asyncio.Semaphore(MAX_CONCURRENT_UPLOADS)

        async def attempt(data: bytes) -> Uploaded | CapdexError:
            async with slots:
                try:
                    uploaded = await self.upload(data)
                except CapdexError as error:
                    return error
            on_step(uploaded)
            return uploaded

        return await asyncio.gather(*map(attempt, packages))

    async def _put(self, data: bytes, cid: Cid) -> None:
        stored = await self.storage.put(data)
        if stored != cid:
            raise _not_kept(f"it answers {stored} where {cid} was put")

    async def _read_back(self, cid: Cid) -> str:
        """Return the label of the source that returned the bytes."""
        if self.gateway is not None:
            return await self._poll(self.gateway, cid)
        if self.node is not None:
            with suppress(Unavailable):
                await _get(self.node, cid)
                return self.node.label
        try:
            await _get(self.storage, cid)
        except Unavailable as error:
            raise _not_kept(f"{error.message}: {error.why}") from None
        return self.storage.label

    async def _poll(self, gateway: BlockSource, cid: Cid) -> str:
        loop, pause_s = asyncio.get_running_loop(), 0.2
        deadline = loop.time() + self.gateway_wait_s
        while True:
            try:
                await _get(gateway, cid)
            except Unavailable as error:
                if loop.time() + pause_s > deadline:
                    raise _not_found(gateway, cid, error) from None
            else:
                return gateway.label
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, MAX_POLL_S)


async def _get(source: BlockSource, cid: Cid) -> None:
    if not cid.matches(await source.get(cid)):
        raise Unavailable(f"{source.label} gave other bytes", Code.IPFS_UNAVAILABLE)


def _not_kept(why: str) -> Unavailable:
    return Unavailable(
        "the storage did not keep a file as it was given",
        Code.IPFS_UNAVAILABLE,
        why=why,
        fix="check the IPFS endpoint (--ipfs); nothing was sent to the chain",
    )


def _not_found(gateway: BlockSource, cid: Cid, error: Unavailable) -> Unavailable:
    return Unavailable(
        f"{gateway.label} does not give {cid} back, so others could not fetch it either",
        Code.IPFS_UNAVAILABLE,
        why=error.why or error.message,
        fix="see that the gateway can reach your IPFS, then run the same command again; nothing "
        "was sent to the chain. To publish without a gateway: --config gateway-url=",
    )
