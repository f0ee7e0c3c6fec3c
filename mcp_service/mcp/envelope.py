"""Check of a message's envelope, in front of the SDK: JSON-RPC 2.0 as MCP restricts it.

The SDK takes a request whose id is null, a fraction or an object for a notification: it runs it and
never answers. Here it is an invalid request (MCP, "Requests": the id is a string or an integer, and
not null), and what is not a message at all gets the codes of JSON-RPC 2.0, section 5.1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import mcp_types as types
import msgspec
import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_INTEGER: Final = re.compile(rb"-?[0-9]{1,64}")
_ABSENT: Final = msgspec.Raw(b"")


class _Envelope(msgspec.Struct):
    jsonrpc: msgspec.Raw = _ABSENT
    id: msgspec.Raw = _ABSENT
    method: msgspec.Raw = _ABSENT
    params: msgspec.Raw = _ABSENT
    result: msgspec.Raw = _ABSENT
    error: msgspec.Raw = _ABSENT


_read: Final = msgspec.json.Decoder(_Envelope).decode


@dataclass(frozen=True, slots=True)
class Fault:
    """A JSON-RPC error for a message; `id` is None where the message has none that is valid."""

    code: int
    message: str
    id: str | int | None = None

    def error(self) -> types.JSONRPCError:
        """Return the response as the SDK's type."""
        error = types.ErrorData(code=self.code, message=self.message)
        return types.JSONRPCError(jsonrpc="2.0", id=self.id, error=error)


_NOT_JSON: Final = Fault(types.PARSE_ERROR, "the message is not JSON")


def fault(message: bytes) -> Fault | None:
    """Return why `message` (one JSON text) is not a message of MCP; None if its envelope is one."""
    try:
        found = _read(message)
        id_ = bytes(found.id)
        known = _read_id(id_)
    except msgspec.ValidationError:  # another value than an object; batches are not offered
        if _is_json(message):
            return Fault(types.INVALID_REQUEST, "a message is one JSON object")
        return _NOT_JSON
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return _NOT_JSON
    if bytes(found.jsonrpc) != b'"2.0"':
        return Fault(types.INVALID_REQUEST, 'jsonrpc is not "2.0"', known)
    method, params = bytes(found.method), bytes(found.params)
    if not method and (bytes(found.result) or bytes(found.error)):
        return None  # a response
    if method[:1] != b'"':
        return Fault(types.INVALID_REQUEST, "method is missing or not a string", known)
    if id_ and known is None:
        return Fault(types.INVALID_REQUEST, "id is neither a string nor an integer")
    if params and params[:1] != b"{" and params != b"null":
        return Fault(types.INVALID_REQUEST, "params is not an object", known)
    return None


def _read_id(id_: bytes) -> str | int | None:
    """Return an id, None if it is absent or not valid; raises DecodeError, UnicodeDecodeError."""
    if id_[:1] == b'"':
        return msgspec.json.decode(id_, type=str)
    return int(id_) if _INTEGER.fullmatch(id_) else None


def _is_json(message: bytes) -> bool:
    try:
        orjson.loads(message)
    except orjson.JSONDecodeError:
        return False
    return True


class CheckedMessages:
    """Answers POSTs with a bad envelope by status 400 and an error; passes the others to `app`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one POST whose body is whole, or pass it on."""
        body = await Request(scope, receive).body()
        found = fault(body)
        if found is not None:
            shown = found.error().model_dump_json(by_alias=True, exclude_unset=True)
            response = Response(shown, 400, media_type="application/json")
            await response(scope, receive, send)
            return
        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return whole.pop() if whole else await receive()

        await self._app(scope, replay, send)
