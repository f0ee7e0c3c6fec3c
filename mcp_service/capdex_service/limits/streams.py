"""Places for streams: answers that stay open for an hour and have no other end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from starlette.types import Receive, Scope, Send

from capdex.errors import Code, Unavailable
from capdex_service.limits.addresses import CLIENT, LOOPBACK

MAX_STREAMS: Final = 64
MAX_STREAMS_PER_CLIENT: Final = 8
SEND_LIMIT_S: Final = 30.0  # a client that takes nothing for so long is gone


class StreamPlaces:
    """Places for streams, in all and for each client; loopback is only limited in all."""

    def __init__(self, in_all: int = MAX_STREAMS, per_client: int = MAX_STREAMS_PER_CLIENT) -> None:
        self._in_all, self._per_client = in_all, per_client
        self._taken: dict[str, int] = {}

    @contextmanager
    def take(self, scope: Scope) -> Iterator[None]:
        """Hold a place for the client of a request; raises Unavailable if none is free."""
        client = scope.get(CLIENT, LOOPBACK)
        taken = self._taken.get(client, 0)
        most = self._in_all if client == LOOPBACK else self._per_client
        if taken >= most or sum(self._taken.values()) >= self._in_all:
            raise Unavailable(
                "no further stream is open to this client",
                Code.RATE_LIMITED,
                fix="close another one, ask from time to time, or ask another node",
            )
        self._taken[client] = taken + 1
        try:
            yield
        finally:
            self._taken[client] -= 1
            if not self._taken[client]:
                del self._taken[client]


async def send_part(send: Send, body: bytes) -> None:
    """Send a part of a stream; raises TimeoutError if the client does not take it."""
    async with asyncio.timeout(SEND_LIMIT_S):
        await send({"type": "http.response.body", "body": body, "more_body": True})


async def left(receive: Receive) -> None:
    """Wait until the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass
