"""HTTP for JSON-RPC 2.0: requests sent, bounded replies received.

| transport | for | connections |
|---|---|---|
| `PlainTransport` | commands | kept alive; quick to import |
| `capdex.net.rpc.aiohttp_transport.AiohttpTransport` | nodes | pooled; replies compressed |
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeVar

from typing_extensions import override

from capdex.net.connection import CONNECT_S
from capdex.net.http import READ_S, HttpClient, HttpError, ResponseTooLarge
from capdex.net.rpc.errors import RpcError, RpcFault, retry_after, rpc_error
from capdex.net.rpc.replies import RpcReply, read_one

MAX_REPLY_BYTES = 64 * 1024 * 1024  # a range of ~50 000 logs; larger ones only slow us down
HEADERS: Final = {"content-type": "application/json", "accept": "application/json"}

T = TypeVar("T")
Call = tuple[str, Sequence[Any]]


class ReadReply(Protocol):
    """Reads a large reply outside the event loop, which stays free for the next request."""

    async def __call__(
        self, label: str, answer: RpcReply, id_: int, read: Callable[[Any], T], /
    ) -> T:
        """Return or raise what `read_one` does."""


async def read_in_thread(label: str, answer: RpcReply, id_: int, read: Callable[[Any], T]) -> T:
    """Read a reply in a thread."""
    return await asyncio.to_thread(read_one, label, answer, id_, read)


class Transport(Protocol):
    """Sends one HTTP POST.

    `zipped` are the labels of endpoints that have compressed a reply; None where that is not asked.
    """

    zipped: set[str] | None = None

    async def post(self, url: str, label: str, body: bytes) -> RpcReply:
        """Return the reply of an endpoint shown as `label`; raises RpcError."""

    async def close(self) -> None:
        """Close all connections."""


class PlainTransport(Transport):
    """Sends requests by `capdex.net.http`."""

    def __init__(self) -> None:
        self._http = HttpClient()

    @override
    async def post(self, url: str, label: str, body: bytes) -> RpcReply:
        try:
            reply = await self._http.request(
                "POST",
                url,
                body=body,
                headers=HEADERS,
                max_bytes=MAX_REPLY_BYTES,
                timeout_s=CONNECT_S + READ_S,
            )
        except TimeoutError:
            raise no_answer(label) from None
        except ResponseTooLarge:
            raise too_large(label) from None
        except HttpError as error:
            raise rpc_error(label, RpcFault.TRANSIENT, str(error)) from None
        return RpcReply(reply.status, retry_after(reply.headers.get("retry-after")), reply.body)

    @override
    async def close(self) -> None:
        self._http.close()


def no_answer(label: str) -> RpcError:
    """Return the error of an endpoint that did not answer in time."""
    return rpc_error(label, RpcFault.TIMEOUT, f"no answer within {CONNECT_S + READ_S:.0f} s")


def too_large(label: str) -> RpcError:
    """Return the error of a reply over MAX_REPLY_BYTES."""
    why = f"the reply is over {MAX_REPLY_BYTES >> 20} MiB"
    return rpc_error(label, RpcFault.TOO_LARGE_RANGE, why, answered=True)
