"""Replies of JSON-RPC 2.0: bytes in, values out, each matched with what was asked.

Every failure is an RpcError that names the endpoint by its label and says by its fault what would
help. Nothing here waits: any thread or process may read a reply.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson

from capdex.errors import MAX_TEXT_CHARS, quoted
from capdex.json import list_of
from capdex.net.json_reply import is_dense
from capdex.net.rpc import errors as faults
from capdex.net.rpc.errors import RpcError, RpcFault, refusal, rpc_error

LONG_BYTES = 8 * 1024 * 1024  # four times what a range is to bring
MIN_VALUE_BYTES = 16  # of a long reply, on average; a log of ours has 50
_REDIRECTS = frozenset({301, 302, 303, 307, 308})  # no other status leads elsewhere

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RpcReply:
    """An HTTP reply that is not parsed yet."""

    status: int
    retry_after_s: float | None
    data: bytes


def read_one(label: str, answer: RpcReply, id_: int, read: Callable[[Any], T]) -> T:
    """The result of the call `id_`, made a value by `read`; where that raises ValueError, no reply.

    Raises RpcError.
    """
    reply = _load(label, answer)
    if not isinstance(reply, dict) or not ("id" in reply or reply.get("error")):
        why = f"the reply is not a JSON-RPC object{what_it_seems(answer.status, answer.data)}"
        raise rpc_error(label, RpcFault.TRANSIENT, why)
    if reply.get("id") == str(id_):
        why = (
            "the reply has the call's id as text, where a number was sent (JSON-RPC 2.0, section 5)"
        )
        raise rpc_error(label, RpcFault.TRANSIENT, why)
    if reply.get("id") != id_ and not (reply.get("error") and reply.get("id") is None):
        raise rpc_error(label, RpcFault.TRANSIENT, "the reply carries another call's id")
    return _value(label, reply, read, answer.retry_after_s)


def read_many(
    label: str, answer: RpcReply, ids: Sequence[int], read: Callable[[Any], T]
) -> list[T]:
    """Return the results of a batch in the order of `ids`; raises the first failure."""
    reply = _load(label, answer)
    if isinstance(reply, dict) and reply.get("error") and reply.get("id") in (None, *ids):
        raise refusal(label, reply["error"], answer.retry_after_s)
    replies = list_of(reply)
    by_id = {r["id"]: r for r in replies if isinstance(r, dict) and type(r.get("id")) is int}
    if len(replies) != len(ids) or any(id_ not in by_id for id_ in ids):
        for entry in replies:  # all may be refused in the answer to one of them, or to none
            if isinstance(entry, dict) and entry.get("error") and entry.get("id") in (None, *ids):
                raise refusal(label, entry["error"], answer.retry_after_s)
        raise rpc_error(label, RpcFault.TRANSIENT, "the reply does not answer the calls asked")
    return [_value(label, by_id[id_], read, answer.retry_after_s) for id_ in ids]


def _load(label: str, answer: RpcReply) -> Any:
    if is_dense(answer.data, long_bytes=LONG_BYTES, min_value_bytes=MIN_VALUE_BYTES):
        raise rpc_error(label, RpcFault.TRANSIENT, "the reply is megabytes of next to nothing")
    try:
        reply = orjson.loads(answer.data.removeprefix(BOM_UTF8))  # RFC 8259, section 8.1
    except orjson.JSONDecodeError:
        if answer.status == 200:
            why = f"the reply is not JSON{what_it_seems(answer.status, answer.data)}"
            raise rpc_error(label, RpcFault.TRANSIENT, why) from None
        reply = None
    if answer.status == 200:
        return reply
    raise _status(label, answer, reply)


def _status(label: str, answer: RpcReply, reply: object) -> RpcError:
    fault = faults.of_status(answer.status)
    if isinstance(reply, list) and reply:
        reply = reply[0]
    if isinstance(reply, dict) and isinstance(reply.get("error"), dict):
        # Some vendors answer a refused call with status 400; its words say more.
        said = refusal(label, reply["error"], answer.retry_after_s)
        if answer.status == 400 or said.fault is not RpcFault.TRANSIENT:
            return said
        return rpc_error(label, fault, said.why, answer.retry_after_s, answered=True)
    why = f"HTTP status {answer.status}{what_it_seems(answer.status, answer.data)}"
    return rpc_error(label, fault, why, answer.retry_after_s)


def what_it_seems(status: int, data: bytes) -> str:
    """Return what a reply that was not expected seems to be, to be put behind its status."""
    if status in _REDIRECTS:
        return ": it redirects; give the address that it redirects to, or one that does not"
    start = data[:MAX_TEXT_CHARS].decode("utf-8", "replace").strip()
    if start.startswith("<"):
        if status in (407, 429) or status >= 500:  # of a proxy, or a service that is there
            return ", with a page for a browser"
        return ": it sends a page for a browser, as a website does; see that the address is right"
    words = " ".join("".join(c if c.isprintable() else " " for c in start).split())
    return f": {quoted(words[:200])}" if words else ""


def _value(
    label: str, reply: dict[str, Any], read: Callable[[Any], T], retry_after_s: float | None
) -> T:
    if reply.get("error"):
        raise refusal(label, reply["error"], retry_after_s)
    if "result" not in reply:
        raise rpc_error(label, RpcFault.TRANSIENT, "the reply has neither result nor error")
    try:
        return read(reply["result"])
    except (ValueError, OverflowError) as error:
        raise rpc_error(label, RpcFault.TRANSIENT, str(error)) from None
