"""The MCP server: two tools over the index, with errors as P16 specifies.

It uses the SDK's low-level server, because error texts, compact JSON and the strict check of
arguments are the product's own (docs/adr/0004).
"""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import mcp_types as types
import orjson
import structlog
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from capdex import __version__
from capdex.errors import CapdexError, InvalidInput, Unavailable
from capdex.problems import Verdict
from capdex.uri import CapabilityURI
from indexer.query import Filters, Index
from mcp_service.answers import errors
from mcp_service.answers import release as answers
from mcp_service.mcp.tools import DEFAULT_PAGE, MAX_PAGE, RESOLVE, SEARCH, TOOLS
from mcp_service.queries import proofs

MAX_REPLY_BYTES: Final = 1 << 20  # a host puts replies into a model's context: keep them small
CALL_LIMIT_S: Final = 10.0

log = structlog.get_logger(part="mcp")

INSTRUCTIONS: Final = (
    "capdex is a registry of agent capabilities (.acp.yaml packages). Find one with "
    "search_capabilities, or name one with resolve_capability. Answers carry the CID and sha256 of "
    "the package and its place on chain, so you need not trust this node: fetch the package and "
    "verify it before you install it. All texts in acp_metadata are written by publishers."
)

Arguments = Mapping[str, Any]


def build_server(
    index: Index,
    *,
    serve: frozenset[Verdict],
    prover: proofs.Prover | None = None,
    warning: Callable[[], str | None] = lambda: None,
) -> Server[Any]:
    """Return the MCP server over `index`; it resolves only releases with a verdict in `serve`.

    Without a `prover` it refuses requests for proofs. `warning` returns the reason why the index
    may not be up to date.
    """
    actions: dict[str, Callable[[Arguments], Awaitable[answers.Json]]] = {
        RESOLVE.name: lambda arguments: _resolve(index, serve, prover, arguments),
        SEARCH.name: lambda arguments: asyncio.to_thread(_search, index, arguments),
    }

    async def list_tools(
        _: ServerRequestContext[Any], __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=list(TOOLS.values()))

    async def call_tool(
        _: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        action = actions.get(params.name)
        if action is None:
            raise MCPError(types.INVALID_PARAMS, f"no tool {params.name[:64]!r} here")
        return await _answer(action(params.arguments or {}), params.name, warning)

    return Server(
        "capdex",
        version=__version__,
        title="capdex capability registry",
        instructions=INSTRUCTIONS,
        get_tool_input_schema=lambda name: TOOLS[name].input_schema if name in TOOLS else None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def serve_stdio(
    index: Index, *, serve: frozenset[Verdict], prover: proofs.Prover | None = None
) -> None:
    """Serve MCP on stdin and stdout until stdin closes; nothing else may print on stdout."""
    server = build_server(index, serve=serve, prover=prover)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def _answer(
    work: Awaitable[answers.Json], tool: str, warning: Callable[[], str | None]
) -> types.CallToolResult:
    """Run one call within its time limit and turn every error into structured content (P16)."""
    try:
        async with asyncio.timeout(CALL_LIMIT_S):
            return _result(answers.with_warning(await work, warning()))
    except TimeoutError:
        failure: CapdexError = Unavailable("the index did not answer in time", fix="try again")
    except CapdexError as error:
        failure = errors.public_error(error)
    except Exception as error:  # a bug: details only in the log
        log.exception("call failed", tool=tool)
        failure = errors.public_error(error)
    return _result(failure.to_json(), failed=True)


def _result(content: answers.Json, *, failed: bool = False) -> types.CallToolResult:
    shown = _without_proof(content)
    text = orjson.dumps(shown).decode("utf-8")
    if _too_large(shown, text):  # one huge package, in another script than ASCII
        text = "The answer is too large to be repeated as text: read structuredContent."
    block = types.TextContent(type="text", text=text)
    return types.CallToolResult(content=[block], structured_content=content, is_error=failed)


async def _resolve(
    index: Index, serve: frozenset[Verdict], prover: proofs.Prover | None, arguments: Arguments
) -> answers.Json:
    _refuse_unknown(arguments, RESOLVE)
    uri = CapabilityURI.parse(_text(arguments, "cap_uri"))
    kind, block = proofs.read_request(arguments)
    if kind != "none":
        return await proofs.resolve(index, serve, prover, uri, kind, block)
    return await asyncio.to_thread(_resolve_now, index, serve, uri)


def _resolve_now(index: Index, serve: frozenset[Verdict], uri: CapabilityURI) -> answers.Json:
    position = index.position()  # read first: the answer is never older than this block
    return answers.resolution(index.resolve(uri, serve=serve), position)


def _search(index: Index, arguments: Arguments) -> answers.Json:
    _refuse_unknown(arguments, SEARCH)
    query = _text(arguments, "query_string")
    given = {} if arguments.get("filters") is None else arguments["filters"]
    if not isinstance(given, dict):
        raise InvalidInput("filters is not an object")
    filters = Filters.parse(given)
    limit = arguments.get("limit", DEFAULT_PAGE)
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_PAGE:
        raise InvalidInput(f"limit is not a whole number from 1 to {MAX_PAGE}")
    cursor = arguments.get("cursor")
    if cursor is not None and not isinstance(cursor, str):
        raise InvalidInput("cursor is not a string")
    while True:
        position = index.position()
        page = index.search(query, filters, limit=limit, cursor=cursor)
        answer = answers.results(page, position)
        if limit == 1 or not _too_large(answer, orjson.dumps(answer).decode("utf-8")):
            return answer
        limit = max(1, limit // 2)  # large packages: a shorter page, whose cursor goes on from it


def _without_proof(content: answers.Json) -> answers.Json:
    """Return the content without its proof: megabytes for programs, which no model should read."""
    shown = {key: value for key, value in content.items() if key != "proof"}
    if isinstance(details := shown.get("details"), dict) and "proof" in details:
        shown["details"] = {key: value for key, value in details.items() if key != "proof"}
    return shown


def _too_large(answer: answers.Json, text: str) -> bool:
    # A reply contains the answer twice, as text and as structure, and the SDK escapes all but
    # ASCII: a character takes 12 bytes at most.
    if 2 * 12 * len(text) <= MAX_REPLY_BYTES:
        return False
    return len(json.dumps(text)) + len(json.dumps(answer)) > MAX_REPLY_BYTES


def _text(arguments: Arguments, key: str) -> str:
    value = arguments.get(key)
    if not isinstance(value, str):
        came = "nothing" if value is None else type(value).__name__
        raise InvalidInput(f"{key} is missing or not a string", why=f"it is {came}")
    return value


def _refuse_unknown(arguments: Arguments, tool: types.Tool) -> None:
    known = list(tool.input_schema["properties"])
    for key in arguments:
        if key not in known:
            near = difflib.get_close_matches(str(key)[:64], known, n=1)
            fix = f"did you mean {near[0]}?" if near else f"it takes {', '.join(known)}"
            raise InvalidInput(f"{tool.name} takes no argument {str(key)[:64]!r}", fix=fix)
