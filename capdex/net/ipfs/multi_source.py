"""Asking several sources for one block: the likeliest first, the next when it fails or is slow."""

from __future__ import annotations

import asyncio
import time
from asyncio import FIRST_COMPLETED
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from capdex.errors import CapdexError, Code, Unavailable
from capdex.ipld.cid import RAW, Cid
from capdex.ipld.unixfs import Assembly
from capdex.net.ipfs import source as source_
from capdex.net.ipfs.source import Outcome, Source, SourceFault, SourceState, Standing

# In powers of two: a source that much dearer than the best is not asked instead of waiting for it.
LIKELY: Final = 3


@dataclass(eq=False)
class Resting(Unavailable):
    """No source may be asked for this within `wait_s`: nothing was tried, it may well be there."""

    code: Code = Code.IPFS_UNAVAILABLE
    wait_s: float = 0.0


class Watcher(Protocol):
    """Whoever wants to know how the fetching of a file goes on."""

    def asked(self) -> None:
        """A source is asked for a block of it from now on."""
        ...

    def late(self) -> None:
        """A block of it is late, and has left its place at the source to others."""
        ...


@dataclass(frozen=True, slots=True)
class File:
    """A file that a CID names, and the blocks it came in, to be served again."""

    data: bytes
    blocks: Mapping[Cid, bytes]


@dataclass(slots=True, eq=False)
class _Place:
    """One of the sources."""

    source: Source
    standing: Standing = field(default_factory=Standing)


class Sources:
    """Sources and their standings; `clock` gives monotonic seconds.

    Each is asked for no more at once than its standing allows: whoever comes when the likely ones
    are full waits, first come first served. A request that is late or slow holds up nobody else,
    so callers bound how many of those they leave open.
    """

    def __init__(
        self, sources: Sequence[Source], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._places = [_Place(source) for source in sources]
        self._clock = clock
        self._waiting: deque[asyncio.Future[None]] = deque()

    def limit(self) -> int:
        """How many blocks may be asked for at once; 0 while every source rests."""
        now = self._clock()
        standings = [place.standing for place in self._likely(self._places, now)]
        return sum(max(0, x.free(now)) + x.in_flight for x in standings if not x.resting_s(now))

    def states(self) -> list[SourceState]:
        """What is known of each source, in the order they were given."""
        now = self._clock()
        return [
            place.standing.state(f"{getattr(place.source, 'kind', 'source')}-{number}", now)
            for number, place in enumerate(self._places, 1)
        ]

    async def file(self, cid: Cid, watcher: Watcher | None = None) -> File:
        """The file that a CID names: its one raw block, or a UnixFS file block by block (P3).

        Raises as `get` does, and InvalidInput for what is no file within the limits.
        """
        if cid.codec == RAW:
            data = await self.get(cid, watcher)
            return File(data, {cid: data})
        assembly = Assembly(cid)
        while (wanted := assembly.wanted) is not None:
            assembly.give(await self.get(wanted, watcher))
        return File(assembly.data, assembly.blocks)

    async def get(self, cid: Cid, watcher: Watcher | None = None) -> bytes:
        """The block from whoever gives it first; raises Unavailable naming what each source said.

        The next source is asked when one fails, or when it is slow as well. Raises Resting when
        none may be asked.
        """
        left, said = list(self._places), list[str]()
        running: set[asyncio.Task[bytes]] = set()
        try:
            while True:
                place = await self._turn(left, cid, wait=not running)
                if place is not None:
                    left.remove(place)
                    running.add(self._send(place, cid, watcher))
                if not running:
                    raise self._nobody(cid, left, said)
                patience_s = source_.SLOW_S if left else None
                done, running = await asyncio.wait(
                    running, timeout=patience_s, return_when=FIRST_COMPLETED
                )
                for task in done:
                    try:
                        return task.result()
                    except CapdexError as error:
                        said.append(f"{error.message}: {error.why}".removesuffix(": "))
        finally:
            for task in running:
                task.cancel()
            if running:
                await asyncio.gather(*running, return_exceptions=True)

    async def _turn(self, left: list[_Place], cid: Cid, *, wait: bool) -> _Place | None:
        """Whom to ask next; None when nobody may be asked, or not now and `wait` is False."""
        while True:
            now = self._clock()
            ready = [place for place in left if not place.standing.spared_s(cid, now)]
            for place in self._likely(ready, now):
                if (free := place.standing.free(now)) > 0:
                    if free > 1:
                        self._wake()  # its limit has grown: there is room for another
                    return place
            if not (ready and wait):
                if not ready:
                    self._wake()  # nor may whoever waits behind this one be asked for
                return None
            freed = asyncio.get_running_loop().create_future()
            self._waiting.append(freed)
            try:
                await freed
            except asyncio.CancelledError:
                if freed.done() and not freed.cancelled():
                    self._wake()  # it was for somebody who is no longer there
                raise

    def _likely(self, places: Sequence[_Place], now: float) -> list[_Place]:
        """The best of some sources and those about as good, best first."""
        if len(places) < 2:
            return list(places)
        ranked = sorted(
            ((place.standing.rank(now), number, place) for number, place in enumerate(places)),
            key=lambda one: one[:2],
        )
        (benched, dearness), *_ = ranked[0]
        return [
            place
            for (other, cost), _, place in ranked
            if other == benched and cost <= dearness + LIKELY
        ]

    def _send(self, place: _Place, cid: Cid, watcher: Watcher | None) -> asyncio.Task[bytes]:
        """Ask one source from now on, whatever becomes of the task."""
        standing, request = place.standing, object()

        def late() -> None:
            if standing.give_way(request):
                self._wake()
                if watcher:
                    watcher.late()

        def ended(_: object = None) -> None:
            for timer in timers:
                timer.cancel()
            standing.leave(request)
            self._wake()

        loop = asyncio.get_running_loop()
        timers = [
            loop.call_later(standing.late_s, late),
            loop.call_later(source_.SLOW_S, ended),  # slow: for its place as good as ended
        ]
        standing.begin(request)
        asking = asyncio.create_task(self._ask(place, cid, request))
        asking.add_done_callback(ended)
        if watcher:
            watcher.asked()
        return asking

    async def _ask(self, place: _Place, cid: Cid, request: object) -> bytes:
        """The block from one source, whose standing learns from what comes."""
        standing, began = place.standing, self._clock()
        outcome: Outcome | None = Outcome.FAILED
        data, patience_s = b"", None
        try:
            data = await place.source.get(cid)
            outcome = Outcome.GAVE
        except SourceFault as error:
            outcome, patience_s = error.outcome, error.retry_after_s
            raise
        except Unavailable:
            outcome = Outcome.ABSENT
            raise
        except asyncio.CancelledError:
            # Another was quicker, or the caller has lost patience; both say nothing at once.
            outcome = None if standing.waits_for(request) else Outcome.SLOW
            raise
        finally:
            if outcome is not None:
                standing.note(
                    outcome,
                    cid,
                    began=began,
                    now=self._clock(),
                    size_bytes=len(data),
                    retry_after_s=patience_s,
                )
        return data

    def _wake(self) -> None:
        """Let the first who waits look again."""
        while self._waiting:
            freed = self._waiting.popleft()
            if not freed.done():
                freed.set_result(None)
                return

    def _nobody(self, cid: Cid, left: Sequence[_Place], said: list[str]) -> Unavailable:
        now = self._clock()
        waits_s = [place.standing.spared_s(cid, now) for place in left]
        rest = [
            f"{place.source.label} rests for {wait_s:.0f} s"
            for place, wait_s in zip(left, waits_s, strict=True)
        ]
        why, fix = "; ".join(said + rest), "name a source that has it with --ipfs"
        if left and not said:
            return Resting(f"no source may be asked for {cid}", why=why, wait_s=min(waits_s))
        why = why or "no source is configured"
        return Unavailable(f"no source gave {cid}", Code.IPFS_UNAVAILABLE, why=why, fix=fix)
