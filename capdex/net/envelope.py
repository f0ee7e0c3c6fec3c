"""The envelope of a message of MCP: JSON-RPC 2.0 as MCP restricts it, read before the SDK sees it.

The SDK takes a request whose id is null, a fraction or an object for a notification: it runs it and
never answers. Here it is an invalid request (MCP, "Requests": the id is a string or an integer, and
not null), and what is not a message at all gets the codes of JSON-RPC 2.0, section 5.1.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import orjson

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603

_INTEGER: Final = re.compile(rb"-?[0-9]{1,64}")
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_REPLACED: Final = rb"\ufffd"
_ABSENT: Final = msgspec.Raw(b"")


class _Envelope(msgspec.Struct):
    jsonrpc: msgspec.Raw = _ABSENT
    id: msgspec.Raw = _ABSENT
    method: msgspec.Raw = _ABSENT
    params: msgspec.Raw = _ABSENT
    result: msgspec.Raw = _ABSENT
    error: msgspec.Raw = _ABSENT


class _Params(msgspec.Struct):
    arguments: msgspec.Raw = _ABSENT


_read: Final = msgspec.json.Decoder(_Envelope).decode
_read_params: Final = msgspec.json.Decoder(_Params).decode


@dataclass(frozen=True, slots=True)
class JsonRpcMessage:
    """A message: `id` is None in a notification, `method` is None in a response.

    `params` is their JSON text, empty if they are absent or null.
    """

    text: bytes
    id: str | int | None
    method: str | None
    params: bytes

    @property
    def is_request(self) -> bool:
        """True if it is to be answered."""
        return self.id is not None and self.method is not None

    def answer(self, result: dict[str, Any]) -> bytes:
        """Return the response to this request."""
        id_ = json.dumps(self.id).encode()
        return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id_, orjson.dumps(result))


@dataclass(frozen=True, slots=True)
class Fault:
    """A JSON-RPC error for a message; `id` is None where the message has none that is valid."""

    code: int
    message: str
    id: str | int | None = None

    def answer(self) -> bytes:
        """Return the response."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        return json.dumps({"jsonrpc": "2.0", "id": self.id, "error": error}).encode()


_NOT_JSON: Final = "the message is not JSON"


def read(text: bytes) -> JsonRpcMessage | Fault:
    """Return the message that `text` (one JSON text) is, or why it is none."""
    try:
        envelope = _read(text)
        id_ = _read_id(bytes(envelope.id))
        name = bytes(envelope.method)
        method = msgspec.json.decode(name, type=str) if name[:1] == b'"' else None
        params = bytes(envelope.params)
        is_object = method is not None and params[:1] == b"{"
        arguments = bytes(_read_params(params).arguments) if is_object else b""
    except msgspec.ValidationError:  # another value than an object; batches are not offered
        if _is_json(text):
            return Fault(INVALID_REQUEST, "a message is one JSON object")
        return Fault(PARSE_ERROR, _NOT_JSON)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return Fault(PARSE_ERROR, _NOT_JSON, _id_beside_surrogates(text))
    if bytes(envelope.jsonrpc) != b'"2.0"':
        return Fault(INVALID_REQUEST, 'jsonrpc is not "2.0"', id_)
    if method is None and (name or not (bytes(envelope.result) or bytes(envelope.error))):
        return Fault(INVALID_REQUEST, "method is missing or not a string", id_)
    if method is not None and bytes(envelope.id) and id_ is None:
        return Fault(INVALID_REQUEST, "id is neither a string nor an integer")
    if method is not None and params and params[:1] != b"{" and params != b"null":
        return Fault(INVALID_REQUEST, "params is not an object", id_)
    if arguments and arguments[:1] != b"{" and arguments != b"null":
        return Fault(INVALID_PARAMS, 'arguments is not an object: give {"name": "value"}', id_)
    return JsonRpcMessage(text, id_, method, b"" if params == b"null" else params)


def _read_id(id_: bytes) -> str | int | None:
    """Return an id, None if it is absent or not valid; raises DecodeError, UnicodeDecodeError."""
    if id_[:1] == b'"':
        return msgspec.json.decode(id_, type=str)
    return int(id_) if _INTEGER.fullmatch(id_) else None


def _id_beside_surrogates(text: bytes) -> str | int | None:
    """Return the valid id of a message that has half of a surrogate pair elsewhere."""
    try:
        id_ = bytes(_read(_SURROGATE.sub(lambda _: _REPLACED, text)).id)
        return None if _REPLACED in id_ else _read_id(id_)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _is_json(message: bytes) -> bool:
    try:
        orjson.loads(message)
    except orjson.JSONDecodeError:
        return False
    return True
