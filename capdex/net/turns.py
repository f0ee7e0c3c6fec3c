"""Turns: places shared between owners, so that one with slow work stops no other."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from capdex.errors import Code, Unavailable


class Turns:
    """Places to run, and to wait for one: an owner takes one more while more are free than it has.

    Of eight, one owner takes four at most, the next ones two and one: whatever n owners do, another
    has a place at once, as long as 2**n is at most the number of places.
    """

    def __init__(self, places: int, waiting: int) -> None:
        self._places = places
        self._room = waiting
        self._held: Counter[str] = Counter()
        self._served: Counter[str] = Counter()  # when an owner had its last turn
        self._waiting: dict[asyncio.Future[None], str] = {}

    @asynccontextmanager
    async def turn(self, owner: str) -> AsyncIterator[None]:
        """Wait for a place and hold it; raises Unavailable RATE_LIMITED if too many wait."""
        if list(self._waiting.values()).count(owner) >= self._room - len(self._waiting):
            raise Unavailable(
                "too many wait for their turn", Code.RATE_LIMITED, fix="try again in a second"
            )
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[place] = owner
        self._fill()
        try:
            await place
            yield
        finally:
            if self._waiting.pop(place, None) is None:  # it had its place
                self._held[owner] -= 1
                self._fill()

    def _fill(self) -> None:
        # The owner that had no turn for the longest time comes first, and of its calls the oldest.
        for place, owner in sorted(self._waiting.items(), key=lambda x: self._served[x[1]]):
            if self._held[owner] < self._places - self._held.total() and not place.done():
                del self._waiting[place]
                self._held[owner] += 1
                self._served[owner] = max(self._served.values(), default=0) + 1
                place.set_result(None)
