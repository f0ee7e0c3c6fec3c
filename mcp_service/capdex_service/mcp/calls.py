"""Calls of tools: arguments in, the bytes of a result or of a typed error out (P16).

Both the SDK's server and `FastCalls` answer with these bytes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson
import structlog

from capdex.errors import CapdexError, InvalidInput
from capdex.json_schema.arguments import (
    MAX_NAME_CHARS,
    check_names,
    one_of,
    read_arguments,
    read_text,
)
from capdex_indexer.query.index import in_time
from capdex_indexer.query.search.page import MAX_PAGE
from capdex_service.answers import errors
from capdex_service.answers.paging import read_limit
from capdex_service.answers.rendered import Answer
from capdex_service.mcp.tools import BROWSE, DESCRIBE, GET, LIST, RESOLVE, ROUTE, SEARCH, TOOLS
from capdex_service.queries import capabilities, proofs
from capdex_service.queries.reader import Reader
from capdex_service.queries.resolve import WHOLE, cached, read_include, resolve
from capdex_service.queries.route import DEFAULT_ROUTES, route
from capdex_service.queries.search import DETAILS, SearchRequest, search

MAX_NAMES: Final = 4  # of arguments, in an error

Arguments = Mapping[str, Any]

# Of each tool that has an argument which must be given.
EXAMPLES: Final[dict[str, dict[str, str]]] = {
    RESOLVE: {"cap_uri": "did:nuwa:cap:weather@^1"},
    SEARCH: {"query_string": "will it rain tomorrow"},
    ROUTE: {"message": "will it rain tomorrow?"},
    GET: {"cap_uri": "did:nuwa:cap:weather@^1"},
    DESCRIBE: {"capability_id": "did:nuwa:cap:weather"},
    BROWSE: {"level": "domains"},
}

log = structlog.get_logger(part="mcp")


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call: `text_json` is the text as JSON, `body` the structured content.

    That is the one for a model, or the whole answer if the call asked for it.
    """

    text_json: bytes
    body: bytes
    failed: bool = False


async def call(reader: Reader, name: str, arguments: Arguments) -> ToolResult:
    """Call a tool within its time limit; every error becomes a result with its code."""
    arguments = read_arguments(TOOLS[name]["inputSchema"], arguments)
    try:
        whole = _is_whole(arguments)
        uri = arguments.get("cap_uri")
        answer = None
        if name in _CACHED and isinstance(uri, str) and len(arguments) == 1:
            answer = cached(reader, uri, whole=_CACHED[name])
        if answer is None:
            async with in_time():
                answer = await _ACTIONS[name](reader, _known(arguments, name))
        return ToolResult(answer.text_json, answer.body if whole else answer.brief)
    except Exception as error:  # noqa: BLE001 - `failure_of` logs a bug
        failure = failure_of(error, tool=name)
    words = errors.for_model(failure)
    return ToolResult(orjson.dumps(words), orjson.dumps(failure.to_json()), failed=True)


def failure_of(error: Exception, **called: str) -> CapdexError:
    """Return the error for a client of a call that failed; `called` says to the log which."""
    if not isinstance(error, CapdexError):  # a bug: details only in the log
        log.error("call failed", exc_info=error, **called)
    return errors.public_error(error)


async def _resolve(reader: Reader, arguments: Arguments) -> Answer:
    cap_uri = read_text(arguments, "cap_uri")
    proof = proofs.read_request(arguments)
    return await proofs.answer(reader, cap_uri, proof, read_include(arguments.get("include")))


async def _search(reader: Reader, arguments: Arguments) -> Answer:
    return await search(reader, SearchRequest.parse(arguments))


async def _route(reader: Reader, arguments: Arguments) -> Answer:
    limit = read_limit(arguments.get("limit", DEFAULT_ROUTES), MAX_PAGE)
    return await route(reader, read_text(arguments, "message"), limit)


async def _get(reader: Reader, arguments: Arguments) -> Answer:
    short = arguments.get("detail") != "full"
    return await resolve(reader, read_text(arguments, "cap_uri"), WHOLE, whole=short)


async def _list(reader: Reader, arguments: Arguments) -> Answer:
    kind, cursor = arguments.get("kind"), _maybe(arguments, "cursor")
    limit = arguments.get("limit", capabilities.DEFAULT_PAGE)
    return await capabilities.list_capabilities(reader, kind=kind, limit=limit, cursor=cursor)


async def _describe(reader: Reader, arguments: Arguments) -> Answer:
    version = _maybe(arguments, "version")
    return await capabilities.describe(reader, read_text(arguments, "capability_id"), version)


async def _browse(reader: Reader, arguments: Arguments) -> Answer:
    of, cursor = _maybe(arguments, "of"), _maybe(arguments, "cursor")
    return await capabilities.read_level(reader, arguments["level"], of, cursor=cursor)


_ACTIONS: Final[dict[str, Callable[[Reader, Arguments], Awaitable[Answer]]]] = {
    RESOLVE: _resolve,
    SEARCH: _search,
    ROUTE: _route,
    GET: _get,
    LIST: _list,
    DESCRIBE: _describe,
    BROWSE: _browse,
}


_CACHED: Final = {RESOLVE: False, GET: True}  # whether they answer the whole package


def _is_whole(arguments: Arguments) -> bool:
    """Return True if the structured content is the whole answer (P15), not the one for a model."""
    detail = one_of("detail", arguments.get("detail", "brief"), DETAILS)
    proof = arguments.get("proof", "none") != "none"
    return detail == "full" or proof or "include" in arguments


def _maybe(arguments: Arguments, key: str) -> str | None:
    return read_text(arguments, key) if key in arguments else None


def _known(arguments: Arguments, tool: str) -> Arguments:
    """Return the arguments; raise InvalidInput for a missing one, or one that is not taken."""
    schema = TOOLS[tool]["inputSchema"]
    for key in schema.get("required", ()):
        if key not in arguments:
            example = orjson.dumps(EXAMPLES[tool]).decode()
            names = ", ".join(str(x)[:MAX_NAME_CHARS] for x in list(arguments)[:MAX_NAMES])
            raise InvalidInput(
                f"{tool} needs the argument {key}",
                why=f"it has {names}" if names else "it has none",
                fix=f"for example {example}",
            )
    check_names(tool, schema["properties"], arguments)
    return arguments
