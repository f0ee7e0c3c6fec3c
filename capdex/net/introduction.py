"""What an MCP server says of itself: answers that never change, given without the SDK.

A host that starts a process waits for `initialize` and `tools/list`, often at every call, and the
SDK takes far longer to import than these answers take to write. Only messages of known members are
answered here; every other one is the SDK's. A test compares each answer with that of the SDK.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from capdex import __version__
from capdex.errors import CapdexError
from capdex.json import Json
from capdex.net.envelope import INTERNAL_ERROR, Fault, JsonRpcMessage

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSION: Final = "2026-07-28"
_META: Final = "io.modelcontextprotocol/"
_UNCACHED: Final[Json] = {"ttlMs": 0, "cacheScope": "private"}


class _Envelope(msgspec.Struct):
    meta: dict[str, msgspec.Raw] = msgspec.field(name="_meta", default_factory=dict)


class _Icon(msgspec.Struct):
    src: str
    mime_type: str | None = msgspec.field(name="mimeType", default=None)
    sizes: list[str] | None = None
    theme: Literal["light", "dark"] | None = None


class _Client(msgspec.Struct):
    name: str
    version: str
    title: str | None = None
    description: str | None = None
    website_url: str | None = msgspec.field(name="websiteUrl", default=None)
    icons: list[_Icon] | None = None


class _Roots(msgspec.Struct):
    changed: bool | None = msgspec.field(name="listChanged", default=None)


class _Capabilities(msgspec.Struct):
    experimental: dict[str, Json] | None = None
    extensions: dict[str, Json] | None = None
    sampling: dict[str, Json] | None = None
    elicitation: dict[str, Json] | None = None
    roots: _Roots | None = None
    tasks: dict[str, dict[str, dict[str, Json]]] | None = None


class _Meta(msgspec.Struct):  # hosts add members of their own, which change nothing
    progress: int | str = msgspec.field(name="progressToken", default=0)
    version: Any = msgspec.field(name=f"{_META}protocolVersion", default=msgspec.UNSET)
    capabilities: _Capabilities | msgspec.UnsetType = msgspec.field(
        name=f"{_META}clientCapabilities", default=msgspec.UNSET
    )
    client: _Client | None = msgspec.field(name=f"{_META}clientInfo", default=None)
    log: msgspec.Raw = msgspec.field(name=f"{_META}logLevel", default=msgspec.Raw())


class _Params(msgspec.Struct):
    meta: _Meta | None = msgspec.field(name="_meta", default=None)
    cursor: str | None = None


class _Hello(msgspec.Struct, kw_only=True):
    meta: _Meta | None = msgspec.field(name="_meta", default=None)
    version: str = msgspec.field(name="protocolVersion")
    capabilities: _Capabilities
    client: _Client = msgspec.field(name="clientInfo")


def is_modern(message: JsonRpcMessage) -> bool:
    """Return True for a request with the envelope of 2026-07-28, whose client sent no hello."""
    try:
        meta = msgspec.json.decode(message.params or b"{}", type=_Envelope).meta
    except msgspec.ValidationError:  # _meta is no object
        return False
    return message.method != "initialize" and f"{_META}protocolVersion" in meta


@dataclass(frozen=True, slots=True)
class Introduction:
    """A server's name, its tools in the form of the wire, and its capabilities.

    `capabilities` are those of the versions with a handshake, `modern` those of 2026-07-28.
    """

    name: str
    title: str
    instructions: str
    tools: Sequence[Json]
    capabilities: Mapping[str, Json]
    modern: Mapping[str, Json]

    def answer(self, message: JsonRpcMessage, greeted: bool) -> bytes | None:
        """Return the response to a request; None if it is the SDK's to answer.

        `greeted` says whether `initialize` was answered before.
        """
        try:
            result = self._result(message, greeted)
        except (msgspec.ValidationError, msgspec.DecodeError):
            return None
        return None if result is None else message.answer(result)

    def refusal(self, message: JsonRpcMessage, error: CapdexError) -> bytes:
        """Return the response to a request that cannot be served: a tool's error, or another."""
        parts = (f"{error.code}: {error.message}", error.why, error.fix)
        text = "; ".join(part for part in parts if part)
        if message.method != "tools/call":
            return Fault(INTERNAL_ERROR, text, message.id).answer()
        result: Json = {
            "content": [{"type": "text", "text": text}],
            "structuredContent": error.to_json(),
            "isError": True,
        }
        return message.answer(self._stamped(result) if is_modern(message) else result)

    def _result(self, message: JsonRpcMessage, greeted: bool) -> Json | None:
        method, params = message.method, message.params or b"{}"
        if method == "initialize":
            hello = msgspec.json.decode(params, type=_Hello)
            known = hello.version in HANDSHAKE_VERSIONS
            return {
                "protocolVersion": hello.version if known else HANDSHAKE_VERSIONS[-1],
                "capabilities": self.capabilities,
                "serverInfo": self._info,
                "instructions": self.instructions,
            }
        meta = msgspec.json.decode(params, type=_Params).meta or _Meta()
        if meta.version is msgspec.UNSET:
            if method == "ping":
                return {}
            return {"tools": self.tools} if method == "tools/list" and greeted else None
        if greeted or meta.version != MODERN_VERSION or meta.log:
            return None
        if meta.capabilities is msgspec.UNSET:
            return None
        if method == "tools/list":
            return self._stamped({"tools": self.tools}, **_UNCACHED)
        if method == "server/discover":
            offered = {"capabilities": self.modern, "instructions": self.instructions}
            return self._stamped(offered, supportedVersions=[MODERN_VERSION], **_UNCACHED)
        return None

    @property
    def _info(self) -> Json:
        return {"name": self.name, "title": self.title, "version": __version__}

    def _stamped(self, result: Json, **more: object) -> Json:
        """Return a result as 2026-07-28 has it."""
        stamp = {"resultType": "complete", "_meta": {f"{_META}serverInfo": self._info}}
        return result | stamp | more
