"""Fetch blocks and files from several sources: in the order given, raced when one is slow.

The next source is requested when one fails, or as well when one takes over SLOW_S. Sources that
gave wrong bytes or were slow lately come last; sources that are down are left out
(`capdex.net.ipfs.source`). The caller limits how much is fetched at once.
"""

from __future__ import annotations

import asyncio
import time
from asyncio import FIRST_COMPLETED
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from capdex.errors import CapdexError, Code, Unavailable
from capdex.ipld.cid import RAW, Cid
from capdex.ipld.unixfs import Assembly
from capdex.limits import MAX_PACKAGE_BYTES
from capdex.manifest.resources import Resource, check_resource
from capdex.net.ipfs import source as source_
from capdex.net.ipfs.source import BlockSource, FetchOutcome, SourceFault, SourceHealth
from capdex.net.tasks import end, together

MAX_CONCURRENT: Final = 8  # files of a package at once: 32 MiB in flight at most
_ANOTHER = "name another source: gateway-url, or --ipfs of publish and node"


@dataclass(eq=False)
class AllResting(Unavailable):
    """Every source is left out for `wait_s` at least: nothing was requested."""

    code: Code = Code.IPFS_UNAVAILABLE
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True)
class File:
    """The bytes of a file, and the blocks they came in, to be served again."""

    data: bytes
    blocks: Mapping[Cid, bytes]


class MultiSource:
    """Sources with the health of each; `clock` gives monotonic seconds."""

    def __init__(
        self, sources: Sequence[BlockSource], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._sources = [
            (source, SourceHealth(f"{getattr(source, 'kind', 'source')}-{number}"))
            for number, source in enumerate(sources, 1)
        ]
        self._clock = clock

    def healths(self) -> list[SourceHealth]:
        """Return the health of each source, in the order they were given."""
        return [health for _, health in self._sources]

    async def file(self, cid: Cid, most_bytes: int = MAX_PACKAGE_BYTES) -> File:
        """Return the file of a CID: its one raw block, or a UnixFS file block by block (P3).

        Raises as `get` does, and InvalidInput for what is not a file within the limits.
        """
        if cid.codec == RAW:
            data = await self.get(cid)
            return File(data, {cid: data})
        assembly = Assembly(cid, most_bytes)
        while (wanted := assembly.wanted) is not None:
            assembly.give(await self.get(wanted))
        return File(assembly.data, assembly.blocks)

    async def get(self, cid: Cid) -> bytes:
        """Return the block from the first source that gives it.

        Raises Unavailable with the reason of each source, AllResting if none was requested.
        """
        now = self._clock()
        ready = [x for x in self._sources if not x[1].wait_s(now)]
        if not ready:
            raise self._all_resting(cid, now)
        ready.sort(key=lambda x: x[1].is_demoted(now))
        reasons: list[str] = []
        running: set[asyncio.Task[bytes]] = set()
        asked: list[asyncio.Task[bytes]] = []
        try:
            while ready or running:
                if ready:
                    asked.append(asyncio.create_task(self._request(*ready.pop(0), cid)))
                    running.add(asked[-1])
                done, running = await asyncio.wait(
                    running, timeout=source_.SLOW_S if ready else None, return_when=FIRST_COMPLETED
                )
                for task in done:
                    try:
                        return task.result()
                    except CapdexError as error:
                        reasons.append(error.line)
        finally:
            await end(asked)  # also those that failed beside the one that gave the block
        raise Unavailable(
            f"no source gave {cid}",
            Code.IPFS_UNAVAILABLE,
            why="; ".join([*reasons, *self._resting(now)]),
            fix=_ANOTHER,
        )

    async def _request(self, source: BlockSource, health: SourceHealth, cid: Cid) -> bytes:
        """Return the block from one source, and note the outcome in its health."""
        began = self._clock()
        outcome: FetchOutcome | None = FetchOutcome.FAILED
        data, retry_after_s = b"", None
        health.begin()
        try:
            data = await source.get(cid)
            outcome = FetchOutcome.GAVE
        except SourceFault as error:
            outcome, retry_after_s = error.outcome, error.retry_after_s
            raise
        except Unavailable:
            outcome = FetchOutcome.ABSENT
            raise
        except asyncio.CancelledError:  # another source was quicker, or the caller gave up
            outcome = FetchOutcome.SLOW if self._clock() - began >= source_.SLOW_S else None
            raise
        finally:
            health.end(
                outcome,
                began=began,
                now=self._clock(),
                size_bytes=len(data),
                retry_after_s=retry_after_s,
            )
        return data

    def _resting(self, now: float) -> list[str]:
        waits = [(source.label, health.wait_s(now)) for source, health in self._sources]
        return [f"{label} rests for {wait_s:.0f} s" for label, wait_s in waits if wait_s]

    def _all_resting(self, cid: Cid, now: float) -> Unavailable:
        if not self._sources:
            why, fix = "no source is configured", _ANOTHER
            return Unavailable(f"no source gave {cid}", Code.IPFS_UNAVAILABLE, why=why, fix=fix)
        wait_s = min(health.wait_s(now) for _, health in self._sources)
        why = "; ".join(self._resting(now))
        return AllResting(f"no source may be requested for {cid}", why=why, wait_s=wait_s)


async def fetch_resources(resources: Iterable[Resource], source: MultiSource) -> dict[str, bytes]:
    """Return the bytes of each file by its path.

    The first file that fails ends the others. Raises Unavailable if no source gives it,
    InvalidInput if its CID names no file of this size, and VerificationFailure if it is another
    file; each error names the path.
    """
    slots = asyncio.Semaphore(MAX_CONCURRENT)

    async def one(resource: Resource) -> tuple[str, bytes]:
        async with slots:
            try:
                data = (await source.file(resource.cid, resource.size)).data
            except CapdexError as error:
                raise replace(error, message=f"{resource.path}: {error.message}") from None
        check_resource(resource, data)
        return resource.path, data

    return dict(await together([one(x) for x in resources]))
