"""aiohttp response that bounds the informational responses (1xx) before the final one."""

from __future__ import annotations

from typing import Self

import aiohttp
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.streams import StreamReader
from typing_extensions import override

from capdex.net.http import MAX_INFORMATIONAL


class Response(aiohttp.ClientResponse):
    """Raises ClientError after MAX_INFORMATIONAL, so that a server cannot keep the loop busy."""

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
                raise aiohttp.ClientConnectionError("the server sends informational responses only")
            return await type(protocol).read(protocol)

        protocol.read = read  # type: ignore[method-assign] # of this connection, while it starts
        try:
            await super().start(connection)
        finally:
            del protocol.read
        return self
