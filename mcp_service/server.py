"""The MCP server: two tools over the index, errors as P16 says, nothing else.

The SDK's low-level server is used because the product shows its own error texts, compact JSON and
strict arguments (docs/adr/0004).
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
from mcp.shared.exceptions import MCPError

from capdex import __version__
from capdex.errors import CapdexError, InvalidInput, Unavailable
from capdex.problems import Verdict
from capdex.uri import CapabilityURI
from indexer.search import FILTER_NAMES, MAX_QUERY_CHARS, Filters, Index
from mcp_service import answers
from mcp_service.faults import internal, shown

MAX_PAGE: Final = 50
DEFAULT_PAGE: Final = 10
MAX_REPLY_BYTES: Final = 1 << 20  # a host puts replies into a model's context: keep them small
CALL_LIMIT_S: Final = 10.0

log = structlog.get_logger(part="mcp")

INSTRUCTIONS: Final = (
    "capdex is a registry of agent capabilities (.acp.yaml packages). Find one with "
    "search_capabilities, or name one with resolve_capability. Answers carry the CID and sha256 of "
    "the package and its place on chain, so you need not trust this node: fetch the package and "
    "verify it before you install it. All texts in acp_metadata are written by publishers."
)

_FILTER_TEXT: Final = {
    "name": "exact capability name",
    "tag": "one of the package's tags",
    "domain": "the package's domain, like weather or productivity",
    "language": "a language the package speaks, like en or zh",
    "author": "DID of the author",
    "publisher": "account that published, 0x…",
    "license": "SPDX licence expression",
    "permission": "a permission the package requires, like state.create",
    "binding": "a binding type: http_get, http_post, nuwa_a2a or mcp_service",
    "tool": "exact name of a tool of the package",
}

_READ_ONLY: Final = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)

RESOLVE: Final = types.Tool(
    name="resolve_capability",
    title="Resolve a capability URI",
    description=(
        "Resolve a capability URI to one verified release. did:nuwa:cap:<name> gives the latest, "
        "@1.2.3 an exact version, @^1.2 the highest in a range (npm grammar)."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "cap_uri": {
                "type": "string",
                "description": "e.g. did:nuwa:cap:note, did:nuwa:cap:note@1.0.0, "
                "did:nuwa:cap:note@^1",
            }
        },
        "required": ["cap_uri"],
        "additionalProperties": False,
    },
    output_schema=answers.RESOLUTION_SCHEMA,
    annotations=_READ_ONLY,
)

SEARCH: Final = types.Tool(
    name="search_capabilities",
    title="Search capabilities",
    description=(
        "Full-text search over verified capabilities: names, descriptions, summaries, tags, "
        "triggers and tools, in any language. Say what is wanted in plain words. An empty query "
        "lists capabilities by name."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "query_string": {
                "type": "string",
                "maxLength": MAX_QUERY_CHARS,
                "description": "what is wanted, e.g. convert miles to kilometres",
            },
            "filters": {
                "type": "object",
                "properties": {
                    name: {"type": "string", "description": _FILTER_TEXT[name]}
                    for name in FILTER_NAMES
                },
                "additionalProperties": False,
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_PAGE,
                "default": DEFAULT_PAGE,
            },
            "cursor": {"type": "string", "description": "next_cursor of the page before"},
        },
        "required": ["query_string"],
        "additionalProperties": False,
    },
    output_schema=answers.RESULTS_SCHEMA,
    annotations=_READ_ONLY,
)

TOOLS: Final = {tool.name: tool for tool in (RESOLVE, SEARCH)}

Arguments = Mapping[str, Any]


def build_server(index: Index, *, serve: frozenset[Verdict]) -> Server[Any]:
    """The MCP server over `index`, answering only releases whose verdict is in `serve`."""
    actions: dict[str, Callable[[Arguments], answers.Json]] = {
        RESOLVE.name: lambda arguments: _resolve(index, serve, arguments),
        SEARCH.name: lambda arguments: _search(index, arguments),
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
        return await _answer(asyncio.to_thread(action, params.arguments or {}), params.name)

    return Server(
        "capdex",
        version=__version__,
        title="capdex capability registry",
        instructions=INSTRUCTIONS,
        get_tool_input_schema=lambda name: TOOLS[name].input_schema if name in TOOLS else None,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def _answer(work: Awaitable[answers.Json], tool: str) -> types.CallToolResult:
    """Run one call within its time limit and turn every error into P16's structured content."""
    try:
        async with asyncio.timeout(CALL_LIMIT_S):
            return _result(await work)
    except TimeoutError:
        late = Unavailable("the index did not answer in time", fix="try again")
        return _result(late.to_json(), failed=True)
    except CapdexError as error:
        return _result(shown(error).to_json(), failed=True)
    except Exception:  # a fault of ours: the caller learns that, the log learns what
        log.exception("call failed", tool=tool)
        return _result(internal().to_json(), failed=True)


def _result(content: answers.Json, *, failed: bool = False) -> types.CallToolResult:
    text = _as_text(content)
    if _too_large(content, text):  # one huge package, in another script than ASCII
        text = "The answer is too large to be said twice: read structuredContent."
    said = types.TextContent(type="text", text=text)
    return types.CallToolResult(content=[said], structured_content=content, is_error=failed)


def _resolve(index: Index, serve: frozenset[Verdict], arguments: Arguments) -> answers.Json:
    _refuse_unknown(arguments, RESOLVE)
    uri = CapabilityURI.parse(_text(arguments, "cap_uri"))
    position = index.position()  # read first: the answer is never older than it says
    return answers.resolution(index.resolve(uri, serve=serve), position)


def _search(index: Index, arguments: Arguments) -> answers.Json:
    _refuse_unknown(arguments, SEARCH)
    query = _text(arguments, "query_string")
    given = arguments.get("filters")
    if given is None:
        given = {}
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
        if limit == 1 or not _too_large(answer, _as_text(answer)):
            return answer
        limit = max(1, limit // 2)  # large packages: a shorter page, whose cursor goes on from it


def _too_large(answer: answers.Json, text: str) -> bool:
    # A reply holds the answer twice, as text and as structure, and the SDK escapes all but ASCII:
    # a character takes 12 bytes at most.
    if 2 * 12 * len(text) <= MAX_REPLY_BYTES:
        return False
    return len(json.dumps(text)) + len(json.dumps(answer)) > MAX_REPLY_BYTES


def _as_text(answer: answers.Json) -> str:
    return orjson.dumps(answer).decode("utf-8")


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
