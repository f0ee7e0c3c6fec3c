"""The web3 provider of the publisher: one RPC endpoint over HTTP, bounded and discreet.

web3's own provider logs its address (which is a credential with most vendors), opens a connection
for every call, follows redirects and reads replies without a limit; this one does none of that.
"""

from __future__ import annotations

from typing import Any, Final, cast

import aiohttp
import orjson
from typing_extensions import override
from web3.providers.async_base import AsyncJSONBaseProvider
from web3.types import RPCEndpoint, RPCResponse

from capdex.errors import Code, Unavailable, UsageError
from capdex.net.rpc.client import redact

CONNECT_S: Final = 5.0
READ_S: Final = 20.0
MAX_REPLY_BYTES: Final = 8 * 1024 * 1024  # a receipt or a name's logs; the indexer reads ranges


class Endpoint(AsyncJSONBaseProvider):
    """One JSON-RPC endpoint; raises Unavailable (RPC_UNAVAILABLE, RATE_LIMITED) by itself."""

    global_ccip_read_enabled = False  # no request ever goes to a host that a contract names

    def __init__(self, url: str) -> None:
        super().__init__()
        if not url.startswith(("http://", "https://")):
            raise UsageError(
                f"{redact(url)} is not an RPC endpoint to publish through",
                why="transactions are sent over http or https",
                fix="use the endpoint's https:// address",
            )
        self._url = url
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=READ_S + CONNECT_S, sock_connect=CONNECT_S),
            headers={"Content-Type": "application/json"},
        )

    @override
    def __repr__(self) -> str:
        return f"Endpoint({self.shown})"

    __str__ = __repr__

    @property
    def shown(self) -> str:
        """The endpoint as it may be shown: without user, path and query."""
        return redact(self._url)

    @override
    async def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        """Send one call and return the reply, an RPC error included; raises Unavailable."""
        body = self.encode_rpc_request(method, params)
        try:
            async with self._session.post(self._url, data=body, allow_redirects=False) as response:
                status, reply = response.status, await _read(response)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._unavailable(f"{method}: {_words(error)}") from None
        if status == 429:
            raise self._unavailable(f"{method}: too many requests", Code.RATE_LIMITED)
        try:
            document = orjson.loads(reply)
        except orjson.JSONDecodeError:
            document = None
        if not isinstance(document, dict) or not ({"result", "error"} & document.keys()):
            raise self._unavailable(f"{method}: HTTP {status} without a JSON-RPC reply")
        return cast("RPCResponse", {"jsonrpc": "2.0", "id": 0} | document)

    @override
    async def disconnect(self) -> None:
        """Close the connections."""
        await self._session.close()

    def _unavailable(self, why: str, code: Code = Code.RPC_UNAVAILABLE) -> Unavailable:
        return Unavailable(
            f"the RPC endpoint {self.shown} did not answer",
            code,
            why=why,
            fix="check the endpoint (--rpc-url) and run the same command again",
        )


async def _read(response: aiohttp.ClientResponse) -> bytes:
    body = await response.content.read(MAX_REPLY_BYTES)
    while len(body) < MAX_REPLY_BYTES and (more := await response.content.read(MAX_REPLY_BYTES)):
        body += more
    if len(body) >= MAX_REPLY_BYTES:
        raise aiohttp.ClientPayloadError("the reply is over its limit")
    return body


def _words(error: BaseException) -> str:
    # Never str() of an aiohttp error as a whole: some spell out the address that was asked.
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.os_error.strerror or "no connection"
    if isinstance(error, TimeoutError):
        return f"no answer within {READ_S:.0f} s"
    return type(error).__name__
