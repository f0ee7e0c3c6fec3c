"""Errors of the methods beside tools: P16 errors as JSON-RPC errors of the revision spoken."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final, TypeVar

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from capdex.errors import CapdexError
from capdex_indexer.query.index import in_time
from capdex_service.answers import errors
from capdex_service.mcp.calls import failure_of

RESOURCE_NOT_FOUND: Final = -32002  # up to 2025-11-25; 2026-07-28 has INVALID_PARAMS instead

T = TypeVar("T")


async def answer(work: Awaitable[T], method: str, version: str, uri: str | None = None) -> T:
    """Await a method's result within the time limit of a call; raises MCPError.

    The error's data is that of P16; for a resource it has its `uri`, too.
    """
    try:
        async with in_time():
            return await work
    except MCPError:
        raise
    except Exception as error:  # noqa: BLE001 - `failure_of` logs a bug
        failure = failure_of(error, method=method)
    data = failure.to_json() | ({} if uri is None else {"uri": uri})
    raise MCPError(_code(failure, version, uri), errors.for_model(failure), data)


def _code(failure: CapdexError, version: str, uri: str | None) -> int:
    if failure.kind.http >= 500 or failure.kind.retryable:
        return types.INTERNAL_ERROR
    if uri is None or failure.kind.http == 400 or version in MODERN_PROTOCOL_VERSIONS:
        return types.INVALID_PARAMS
    return RESOURCE_NOT_FOUND
