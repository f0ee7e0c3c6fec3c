"""JSON-RPC 2.0 over HTTP: requests out, bounded replies in, each matched with what was asked.

Every failure is an RpcError that names the endpoint by its label and says by its fault what would
help. Large replies are read in a thread, so that the loop stays free for the next request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import aiohttp
import orjson

from capdex.net import faults
from capdex.net.faults import Fault, RpcError, refusal, rpc_error

CONNECT_S = 5.0
READ_S = 20.0
OFF_LOOP_BYTES = 128 * 1024  # about 2 ms of work; a thread costs a twentieth of that

_HEADERS = {"content-type": "application/json", "accept": "application/json"}

T = TypeVar("T")
Call = tuple[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Address:
    """Where to send to, how it is shown, and how many bytes a reply may have."""

    url: str
    label: str
    max_bytes: int


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    retry_after_s: float | None
    data: bytes


def open_session() -> aiohttp.ClientSession:
    """A session with the time limits of every call; to be opened inside a running loop."""
    timeout = aiohttp.ClientTimeout(
        total=CONNECT_S + READ_S, sock_connect=CONNECT_S, sock_read=READ_S
    )
    return aiohttp.ClientSession(timeout=timeout, read_bufsize=1 << 20)


async def ask_one(
    session: aiohttp.ClientSession, to: Address, id_: int, call: Call, read: Callable[[Any], T]
) -> tuple[T, int]:
    """The result of one call, made a value by `read`, and the size of the reply in bytes."""
    answer = await _post(session, to, _request(id_, call))

    def understand() -> T:
        reply = _load(to.label, answer)
        if not isinstance(reply, dict):
            raise rpc_error(to.label, Fault.TRANSIENT, "the reply is not a JSON-RPC object")
        if not reply.get("error") and reply.get("id") != id_:
            raise rpc_error(to.label, Fault.TRANSIENT, "the reply carries another call's id")
        return _value(to.label, reply, read, answer.retry_after_s)

    return await _off_loop(answer, understand), len(answer.data)


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

    def understand() -> list[T]:
        reply = _load(to.label, answer)
        if isinstance(reply, dict) and reply.get("error"):
            raise refusal(to.label, reply["error"], answer.retry_after_s)
        replies = reply if isinstance(reply, list) else []
        by_id = {r["id"]: r for r in replies if isinstance(r, dict) and type(r.get("id")) is int}
        if len(replies) != len(ids) or any(id_ not in by_id for id_ in ids):
            raise rpc_error(to.label, Fault.TRANSIENT, "the reply does not answer the calls asked")
        return [_value(to.label, by_id[id_], read, answer.retry_after_s) for id_ in ids]

    return await _off_loop(answer, understand), len(answer.data)


def _request(id_: int, call: Call) -> dict[str, Any]:
    method, params = call
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": list(params)}


async def _off_loop(answer: _Answer, understand: Callable[[], T]) -> T:
    if len(answer.data) < OFF_LOOP_BYTES:
        return understand()
    return await asyncio.to_thread(understand)


async def _post(session: aiohttp.ClientSession, to: Address, body: Any) -> _Answer:
    try:
        async with session.post(
            to.url, data=orjson.dumps(body), headers=_HEADERS, allow_redirects=False
        ) as response:
            wait_s = faults.retry_after(response.headers.get("retry-after"))
            return _Answer(response.status, wait_s, await _read(to, response))
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


def _load(label: str, answer: _Answer) -> Any:
    try:
        reply = orjson.loads(answer.data)
    except orjson.JSONDecodeError:
        reply = None
    if answer.status == 200:
        if reply is None:
            raise rpc_error(label, Fault.TRANSIENT, "the reply is not JSON")
        return reply
    raise _status(label, answer, reply)


def _status(label: str, answer: _Answer, reply: Any) -> RpcError:
    fault = faults.of_status(answer.status)
    if isinstance(reply, list) and reply:
        reply = reply[0]
    if isinstance(reply, dict) and isinstance(reply.get("error"), dict):
        # Some vendors answer a refused call with status 400; its words say more.
        said = refusal(label, reply["error"], answer.retry_after_s)
        if answer.status == 400 or said.fault is not Fault.TRANSIENT:
            return said
        return rpc_error(label, fault, said.why, answer.retry_after_s, answered=True)
    return rpc_error(label, fault, f"HTTP status {answer.status}", answer.retry_after_s)


def _value(
    label: str, reply: dict[str, Any], read: Callable[[Any], T], retry_after_s: float | None
) -> T:
    if reply.get("error"):
        raise refusal(label, reply["error"], retry_after_s)
    if "result" not in reply:
        raise rpc_error(label, Fault.TRANSIENT, "the reply has neither result nor error")
    try:
        return read(reply["result"])
    except (ValueError, OverflowError) as error:
        raise rpc_error(label, Fault.TRANSIENT, str(error)) from None
