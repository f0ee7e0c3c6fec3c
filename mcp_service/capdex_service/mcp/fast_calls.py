"""Plain `tools/call` messages, answered without the SDK.

It takes only messages that it understands whole: known headers, each once, and a body with known
members. It hands every other message to the SDK's transport, which stays the one authority on the
protocol; a test sends the same messages to both and compares the answers.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec
import orjson
from mcp.server.lowlevel import Server
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    SERVER_INFO_META_KEY,
    ClientCapabilities,
    Implementation,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_MODERN_VERSION
from pydantic import ValidationError
from starlette.types import ASGIApp, Receive, Scope, Send

from capdex_service.limits.bodies import replay
from capdex_service.mcp.calls import ToolResult, call
from capdex_service.mcp.tools import Profile
from capdex_service.queries.reader import Reader

MAX_BODY_BYTES: Final = 64 * 1024  # a larger one takes the SDK's path, with its limit
JSON_TYPE: Final = b"application/json"
# Ids of another form take the SDK's path.
_ID: Final = re.compile(rb'-?[0-9]{1,15}|"[ !#-\[\]-~]{0,128}"')
_LEGACY: Final = frozenset(version.encode("ascii") for version in HANDSHAKE_PROTOCOL_VERSIONS)
_MODERN: Final = LATEST_MODERN_VERSION.encode("ascii")
_ROUTING: Final = (b"content-type", b"accept", b"mcp-protocol-version", b"mcp-method", b"mcp-name")
_UNUSUAL: Final = (b"mcp-session-id", b"last-event-id", b"content-encoding")


P = TypeVar("P")


class _Meta(msgspec.Struct):  # hosts add members of their own, which change nothing
    progress: int | str = msgspec.field(name="progressToken", default=0)


class _ModernMeta(_Meta, kw_only=True):
    version: str = msgspec.field(name=PROTOCOL_VERSION_META_KEY)
    capabilities: msgspec.Raw = msgspec.field(name=CLIENT_CAPABILITIES_META_KEY)
    client: msgspec.Raw = msgspec.field(name=CLIENT_INFO_META_KEY, default=msgspec.Raw())


class _Parameters(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, Any] = {}
    meta: _Meta | msgspec.UnsetType = msgspec.field(name="_meta", default=msgspec.UNSET)


class _ModernParameters(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    name: str
    arguments: dict[str, Any] = {}
    meta: _ModernMeta = msgspec.field(name="_meta")


class _Call(msgspec.Struct, Generic[P], forbid_unknown_fields=True):
    jsonrpc: Literal["2.0"]
    id: msgspec.Raw
    method: Literal["tools/call"]
    params: P


_read_legacy: Final = msgspec.json.Decoder(_Call[_Parameters]).decode
_read_modern: Final = msgspec.json.Decoder(_Call[_ModernParameters]).decode


class FastCalls:
    """Answers plain calls of `tools`; `transport` is the SDK's, for all other messages."""

    def __init__(
        self, reader: Reader, server: Server[Any], profile: Profile, transport: ASGIApp
    ) -> None:
        self._reader, self._transport = reader, transport
        self._tools = profile.names
        stamp = {SERVER_INFO_META_KEY: server.server_info_stamp}
        self._modern = b'"resultType":"complete","_meta":' + orjson.dumps(stamp) + b","

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one POST, or pass it on."""
        protocol = _protocol(scope["headers"])
        if protocol is None:
            await self._transport(scope, receive, send)
            return
        body = (await receive()).get("body", b"")  # `WholeBody` gives it in one part
        plain_call = self._read(protocol, body) if len(body) <= MAX_BODY_BYTES else None
        if plain_call is None:
            await self._transport(scope, replay(body, receive), send)
            return
        id_, name, arguments = plain_call
        result = await call(self._reader, name, arguments)
        reply = _reply(id_, result, b"" if protocol == HANDSHAKE else self._modern)
        length = str(len(reply)).encode("ascii")
        headers = [(b"content-length", length), (b"content-type", JSON_TYPE)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": reply})

    def _read(self, protocol: bytes, body: bytes) -> tuple[bytes, str, dict[str, Any]] | None:
        """Return id, tool and arguments of a plain call; None for any other message."""
        try:
            if protocol == HANDSHAKE:
                message: _Call[Any] = _read_legacy(body)
            else:
                message = _read_modern(body)
                named, meta = message.params.name.encode(), message.params.meta
                if meta.version != LATEST_MODERN_VERSION or named != protocol:
                    return None
                if not _is_client(bytes(meta.capabilities), bytes(meta.client)):
                    return None
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            return None
        id_, params = bytes(message.id), message.params
        if params.name not in self._tools or not _ID.fullmatch(id_):
            return None
        return id_, params.name, params.arguments


# Protocols with a handshake; the later one is told by the tool in `Mcp-Name`.
HANDSHAKE: Final = b""


def _protocol(headers: list[tuple[bytes, bytes]]) -> bytes | None:
    """Return the protocol of a plain call by headers: `HANDSHAKE` or the tool named; else None."""
    routing: dict[bytes, bytes] = {}
    for key, value in headers:
        if key in _ROUTING:
            if key in routing:
                return None
            routing[key] = value
        elif key in _UNUSUAL or key.startswith(b"mcp-param-"):
            return None
    if routing.get(b"content-type") != JSON_TYPE or not _accepts(routing.get(b"accept", b"")):
        return None
    version = routing.get(b"mcp-protocol-version")
    if version is None or version in _LEGACY:
        return HANDSHAKE
    name = routing.get(b"mcp-name", b"")
    plain = version == _MODERN and routing.get(b"mcp-method") == b"tools/call"
    return name if plain and name else None


@lru_cache(maxsize=256)
def _is_client(capabilities: bytes, info: bytes) -> bool:
    """Return True if these are capabilities and a client as the protocol defines them."""
    try:
        ClientCapabilities.model_validate_json(capabilities)
        if info:
            Implementation.model_validate_json(info)
    except ValidationError:
        return False
    return True


@lru_cache(maxsize=256)
def _accepts(accept: bytes) -> bool:
    """Return True if an Accept header takes JSON."""
    kinds = {kind.split(b";")[0].strip().lower() for kind in accept.split(b",")}
    return not kinds.isdisjoint((JSON_TYPE, b"application/*", b"*/*"))


def _reply(id_: bytes, result: ToolResult, more: bytes) -> bytes:
    """Return the JSON-RPC response; `more` are members of the result in one protocol."""
    return b"".join(
        (
            b'{"jsonrpc":"2.0","id":',
            id_,
            b',"result":{',
            more,
            b'"content":[{"type":"text","text":',
            result.text_json,
            b'}],"structuredContent":',
            result.body,
            b',"isError":true}}' if result.failed else b',"isError":false}}',
        )
    )
