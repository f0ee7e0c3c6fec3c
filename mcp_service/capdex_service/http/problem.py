"""Errors over HTTP: every one is an RFC 9457 problem document with its P16 code."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from capdex.errors import CapdexError, Code, InvalidInput
from capdex_service.answers import errors
from capdex_service.limits.refusal import problem_document

Handler = Callable[[Request, Exception], Awaitable[Response]]


def problem(error: Exception, public: Collection[Code] = errors.PUBLIC) -> Response:
    """Return an error as a problem document, without internal details."""
    told = errors.public_error(error, public)
    after_s = (told.details or {}).get("retry_after_s", 1)
    retry = {"Retry-After": str(after_s)} if told.kind.retryable else {}
    return problem_document(told, told.kind.http, retry)


def exception_handlers(
    places: str, public: Collection[Code] = errors.PUBLIC
) -> dict[type[Exception], Handler]:
    """Return the handlers of an application.

    `places` says to strangers what it has, and where; `public` are the codes that they may see.
    """

    async def any_error(_: Request, error: Exception) -> Response:
        return problem(error, public)

    async def routing_error(_: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        if status == 404:
            refusal = InvalidInput("there is nothing here", Code.NOT_FOUND, fix=places)
        else:
            refusal = InvalidInput("that is not done here", fix=places)
        return problem_document(refusal, status, getattr(error, "headers", None) or {})

    return {CapdexError: any_error, HTTPException: routing_error, Exception: any_error}


EXCEPTION_HANDLERS: Final = exception_handlers("MCP is at /mcp; /openapi.json lists the rest")
