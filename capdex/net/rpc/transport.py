"""JSON-RPC 2.0 over HTTP: requests out, bounded replies in, to be read by `capdex.net.rpc.replies`.

Every failure is an RpcError that names the endpoint by its label and says by its fault what would
help. Large replies are read outside the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import aiohttp
import orjson

from capdex.net.http import Response
from capdex.net.rpc import errors as faults
from capdex.net.rpc.errors import Fault, rpc_error
from capdex.net.rpc.replies import Answer, read_many, read_one

CONNECT_S = 5.0
READ_S = 20.0
OFF_LOOP_BYTES = 128 * 1024  # about 2 ms of work; a thread costs a twentieth of that

_HEADERS = {"content-type": "application/json", "accept": "application/json"}

T = TypeVar("T")
Call = tuple[str, Sequence[Any]]


class ReadReply(Protocol):
    """Reads a large reply outside the event loop, which stays free for the next request."""

    async def __call__(
        self, label: str, answer: Answer, id_: int, read: Callable[[Any], T], /
    ) -> T:
        """Return or raise what `read_one` does."""


async def read_in_thread(label: str, answer: Answer, id_: int, read: Callable[[Any], T]) -> T:
    """Read a reply in a thread."""
    return await asyncio.to_thread(read_one, label, answer, id_, read)


@dataclass(frozen=True, slots=True)
class Address:
    """Where to send to, how it is shown, and how many bytes a reply may have."""

    url: str
    label: str
    max_bytes: int


def open_session() -> aiohttp.ClientSession:
    """A session with the time limits of every call; to be opened inside a running loop."""
    timeout = aiohttp.ClientTimeout(
        total=CONNECT_S + READ_S, sock_connect=CONNECT_S, sock_read=READ_S
    )
    return aiohttp.ClientSession(timeout=timeout, read_bufsize=1 << 20, response_class=Response)


async def ask_one(
    session: aiohttp.ClientSession,
    to: Address,
    id_: int,
    call: Call,
    read: Callable[[Any], T],
    read_reply: ReadReply,
) -> tuple[T, int]:
    """The result of one call, made a value by `read`, and the size of the reply in bytes."""
    answer = await _post(session, to, _request(id_, call))
    if len(answer.data) < OFF_LOOP_BYTES:
        return read_one(to.label, answer, id_, read), len(answer.data)
    return await read_reply(to.label, answer, id_, read), len(answer.data)


async def ask_many(
    session: aiohttp.ClientSession,
    to: Address,
    ids: Sequence[int],
    calls: Sequence[Call],
    read: Callable[[Any], T],
) -> tuple[list[T], int]:
    """As `ask_one` for a batch, in the order asked; one failure is the failure of all."""
    requests = [_request(id_, call) for id_, call in zip(ids, calls, strict=True)]
    answer = await _post(session, to, requests)
    if len(answer.data) < OFF_LOOP_BYTES:
        return read_many(to.label, answer, ids, read), len(answer.data)
    return await asyncio.to_thread(read_many, to.label, answer, ids, read), len(answer.data)


def _request(id_: int, call: Call) -> dict[str, Any]:
    method, params = call
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": list(params)}


async def _post(session: aiohttp.ClientSession, to: Address, body: Any) -> Answer:
    try:
        async with session.post(
            to.url, data=orjson.dumps(body), headers=_HEADERS, allow_redirects=False
        ) as response:
            wait_s = faults.retry_after(response.headers.get("retry-after"))
            return Answer(response.status, wait_s, await _read(to, response))
    except TimeoutError:
        why = f"no answer within {CONNECT_S + READ_S:.0f} s"
        raise rpc_error(to.label, Fault.TIMEOUT, why) from None
    except (aiohttp.ClientError, OSError) as error:
        why = str(error).replace(to.url, to.label) or type(error).__name__
        raise rpc_error(to.label, Fault.TRANSIENT, why[:300]) from None


async def _read(to: Address, response: aiohttp.ClientResponse) -> bytes:
    pieces, size = [], 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > to.max_bytes:
            why = f"the reply is over {to.max_bytes >> 20} MiB"
            raise rpc_error(to.label, Fault.TOO_LARGE_RANGE, why, answered=True)
        pieces.append(piece)
    return b"".join(pieces)
