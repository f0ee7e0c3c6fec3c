"""The answer of an HTTP server that may be hostile: one that comes in the end."""

from __future__ import annotations

from typing import Final, Self

import aiohttp
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.streams import StreamReader
from typing_extensions import override

MAX_INFORMATIONAL: Final = 16  # responses (1xx) before the answer; a few hints are usual


class Response(aiohttp.ClientResponse):
    """Raises a ClientError after too many hints (1xx): reading them for ever keeps a loop busy."""

    @override
    async def start(self, connection: Connection) -> Self:
        protocol = connection.protocol
        if protocol is None:
            raise aiohttp.ServerDisconnectedError
        left = MAX_INFORMATIONAL + 1

        async def read() -> tuple[RawResponseMessage, StreamReader]:
            nonlocal left
            left -= 1
            if left < 0:
                raise aiohttp.ClientConnectionError("it only says that an answer will come")
            return await type(protocol).read(protocol)

        protocol.read = read  # type: ignore[method-assign] # of this connection, while it starts
        try:
            await super().start(connection)
        finally:
            del protocol.read
        return self
