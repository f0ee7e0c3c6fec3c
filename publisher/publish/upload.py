"""Uploading packages and fetching them back, as strangers will, before anything is paid."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from capdex.errors import CapdexError, Code, Unavailable
from capdex.ipld.cid import Cid
from capdex.net.ipfs.open import Source, Storage
from publisher.progress import Uploaded

AT_ONCE: Final = 8  # uploads side by side: a storage at home has little more to give
GATEWAY_WAIT_S: Final = 60.0  # a public gateway finds new bytes through the DHT within a minute
MAX_POLL_S: Final = 5.0

OnUploaded = Callable[[Uploaded], None]


@dataclass(frozen=True, slots=True)
class Delivery:
    """Where packages go, and the trustless gateways that they are fetched back from.

    `gateway` has to give them. `node`, a gateway of a capdex node, is asked once: a node keeps
    what was announced, so it has them before only if it shares the storage.
    """

    storage: Storage
    gateway: Source | None = None
    node: Source | None = None
    gateway_wait_s: float = GATEWAY_WAIT_S

    @property
    def sources(self) -> Sequence[Source]:
        """Whoever may have a package that was published before."""
        return [x for x in (self.storage, self.node, self.gateway) if x is not None]

    async def put(self, data: bytes) -> Uploaded:
        """Store a package and fetch it back; raises Unavailable IPFS_UNAVAILABLE."""
        cid = Cid.of(data)
        stored = await self.storage.put(data)
        if stored != cid:
            raise _not_kept(f"it answers {stored} where {cid} was put")
        return Uploaded(str(cid), len(data), await self._read_back(cid))

    async def put_all(
        self, packages: Sequence[bytes], *, on_uploaded: OnUploaded
    ) -> list[Uploaded | CapdexError]:
        """Store several side by side; for each what came of it, in their order."""
        slots = asyncio.Semaphore(AT_ONCE)

        async def one(data: bytes) -> Uploaded | CapdexError:
            async with slots:
                try:
                    uploaded = await self.put(data)
                except CapdexError as error:
                    return error
            on_uploaded(uploaded)
            return uploaded

        return list(await asyncio.gather(*map(one, packages)))

    async def close(self) -> None:
        """Let go of connections."""
        for source in self.sources:
            await source.close()

    async def _read_back(self, cid: Cid) -> str:
        """The label of whoever gave the bytes back."""
        if self.gateway is not None:
            return await self._ask_patiently(self.gateway, cid)
        if self.node is not None and await _gives(self.node, cid):
            return self.node.label
        try:
            await _get(self.storage, cid)
        except Unavailable as error:
            raise _not_kept(f"{error.message}: {error.why}") from None
        return self.storage.label

    async def _ask_patiently(self, gateway: Source, cid: Cid) -> str:
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


async def _get(source: Source, cid: Cid) -> None:
    if not cid.matches(await source.get(cid)):
        raise Unavailable(f"{source.label} gave other bytes", Code.IPFS_UNAVAILABLE)


async def _gives(source: Source, cid: Cid) -> bool:
    try:
        await _get(source, cid)
    except Unavailable:
        return False
    return True


def _not_kept(why: str) -> Unavailable:
    return Unavailable(
        "the storage did not keep the package as it was given",
        Code.IPFS_UNAVAILABLE,
        why=why,
        fix="check the IPFS endpoint (--ipfs); nothing was sent to the chain",
    )


def _not_found(gateway: Source, cid: Cid, error: Unavailable) -> Unavailable:
    return Unavailable(
        f"{gateway.label} does not give {cid} back, so others could not fetch it either",
        Code.IPFS_UNAVAILABLE,
        why=error.why or error.message,
        fix="see that the gateway can reach your IPFS, then run the same command again; nothing "
        "was sent to the chain. To publish without a gateway: --config gateway-url=",
    )
