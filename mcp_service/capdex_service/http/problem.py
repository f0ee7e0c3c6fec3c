"""Errors over HTTP: every one is an RFC 9457 problem document with its P16 code."""

from __future__ import annotations

from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from capdex.errors import CapdexError, Code, InvalidInput
from capdex_service.answers import errors
from capdex_service.limits.refusal import problem_document

_PLACES: Final = "MCP is at /mcp; /openapi.json lists the rest"


def problem(error: Exception) -> Response:
    """Return an error as a problem document, without internal details."""
    found = errors.public_error(error)
    after_s = (found.details or {}).get("retry_after_s", 1)
    retry = {"Retry-After": str(after_s)} if found.kind.retryable else {}
    return problem_document(found, found.kind.http, retry)


async def _error(_: Request, error: Exception) -> Response:
    return problem(error)


async def _routing_error(_: Request, error: Exception) -> Response:
    """Return an error of the routing (no such page, wrong method) as a problem document."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 404:
        found = InvalidInput("there is nothing here", Code.NOT_FOUND, fix=_PLACES)
    else:
        found = InvalidInput("that is not done here", fix=_PLACES)
    return problem_document(found, status, getattr(error, "headers", None) or {})


EXCEPTION_HANDLERS: Final = {CapdexError: _error, HTTPException: _routing_error, Exception: _error}
