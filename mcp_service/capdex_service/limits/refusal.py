"""Refusals of whole requests, in the form that clients of the path read.

A page answers with a problem document (RFC 9457). MCP answers with a JSON-RPC error at the same
status: the Python SDK 2.x shows the message of nothing else, and the TypeScript SDKs show any body.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from capdex.errors import CapdexError

MCP_PATH: Final = "/mcp"  # and all below it
_INVALID_REQUEST: Final = -32600
_INTERNAL_ERROR: Final = -32603


async def refuse(
    error: CapdexError,
    scope: Scope,
    receive: Receive,
    send: Send,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Answer a request with an error, before its body was understood."""
    kind, said = error.kind, error.to_json()
    if scope["path"] == MCP_PATH or scope["path"].startswith(f"{MCP_PATH}/"):
        message = f"{error.code}: {error.message}. {error.fix}".rstrip()
        code = _INTERNAL_ERROR if kind.retryable else _INVALID_REQUEST
        fault = {"code": code, "message": message, "data": said}
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": None, "error": fault}
        media_type = "application/json"
    else:
        body = {"type": "about:blank", "title": error.message, "status": kind.http} | said
        media_type = "application/problem+json"
    retry = {"Retry-After": "1"} if kind.retryable else {}
    sent = {"Cache-Control": "no-store", **retry, **(headers or {})}
    await Response(orjson.dumps(body), kind.http, sent, media_type)(scope, receive, send)
