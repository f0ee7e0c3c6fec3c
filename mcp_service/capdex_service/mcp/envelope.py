"""Check of a message's envelope over HTTP, in front of the SDK (`capdex.net.envelope`)."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from capdex.net import envelope
from capdex.net.introduction import HANDSHAKE_VERSIONS, MODERN_VERSION
from capdex_service.limits.bodies import replay

_VERSIONS: Final = (*HANDSHAKE_VERSIONS, MODERN_VERSION)
_ITS_OWN: Final = b"io.modelcontextprotocol/protocolVersion"  # which the SDK compares


class CheckedMessages:
    """Answers POSTs with a bad envelope by status 400 and an error; passes the others to `app`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one POST whose body is whole, or pass it on."""
        body = await Request(scope, receive).body()
        message = envelope.read(body)
        version = Headers(scope=scope).get("mcp-protocol-version")
        if (
            isinstance(message, envelope.JsonRpcMessage)
            and version not in (None, *_VERSIONS)
            and _ITS_OWN not in message.params
        ):
            words = f"MCP-Protocol-Version is none of {', '.join(_VERSIONS)}: initialize again"
            message = envelope.Fault(envelope.INVALID_REQUEST, words, message.id)
        if isinstance(message, envelope.Fault):
            response = Response(message.answer(), 400, media_type="application/json")
            await response(scope, receive, send)
            return
        await self._app(scope, replay(body, receive), send)
