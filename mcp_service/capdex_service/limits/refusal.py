"""Refusals of whole requests, in the form that clients of the path read.

A page answers with a problem document (RFC 9457). MCP answers with a JSON-RPC error at the same
status: the Python SDK 2.x shows the message of nothing else, and the TypeScript SDKs show any body.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from capdex.errors import CapdexError

MCP_PATH: Final = "/mcp"  # and all below it
_INVALID_REQUEST: Final = -32600
_INTERNAL_ERROR: Final = -32603
# An error is of this moment: what is not there now may be there a second later.
_HEADERS: Final = {"Cache-Control": "no-store"}


def problem_document(error: CapdexError, status: int, headers: Mapping[str, str]) -> Response:
    """Return an error as a problem document."""
    body = {"type": "about:blank", "title": error.message, "status": status} | error.to_json()
    sent = {**_HEADERS, **headers}
    return Response(orjson.dumps(body), status, sent, "application/problem+json")


async def refuse(
    error: CapdexError,
    scope: Scope,
    receive: Receive,
    send: Send,
    headers: Mapping[str, str] | None = None,
    *,
    status: int | None = None,
) -> None:
    """Answer a request with an error, before its body was understood.

    `status` is there where HTTP has one for just this.
    """
    kind = error.kind
    status = status or kind.http
    sent = {**({"Retry-After": "1"} if kind.retryable else {}), **(headers or {})}
    if scope["path"] == MCP_PATH or scope["path"].startswith(f"{MCP_PATH}/"):
        message = f"{error.code}: {error.message}. {error.fix}".rstrip()
        code = _INTERNAL_ERROR if kind.retryable else _INVALID_REQUEST
        fault = {"code": code, "message": message, "data": error.to_json()}
        body = orjson.dumps({"jsonrpc": "2.0", "id": None, "error": fault})
        response = Response(body, status, _HEADERS | sent, "application/json")
    else:
        response = problem_document(error, status, sent)
    await response(scope, receive, send)
