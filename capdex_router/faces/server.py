"""The MCP server of the router, over stdio: five tools, the same for nothing or 10 000 packages."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeAlias

import mcp_types as types
import orjson
import structlog
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from capdex import __version__
from capdex.errors import CapdexError, Code, ExecutionFailed, InvalidInput
from capdex.json import Json
from capdex.json_schema.arguments import came, check_names, read_arguments, read_text
from capdex.net.stdio import Stdio
from capdex_router.faces.actions import Actions
from capdex_router.faces.arguments import read_call
from capdex_router.faces.context import Offered
from capdex_router.faces.elicitation import Elicitation, Questions
from capdex_router.faces.tools import CALL, DESCRIBE, FIND, INTRODUCTION, MANAGE, ROUTE, TOOLS
from capdex_router.invoke.invoke import Caller
from capdex_router.model.images import Image
from capdex_router.model.refs import BUG, InvokeResult
from capdex_router.policy.consent import AnswerLater
from capdex_router.policy.quoting import seen, visible

Context: TypeAlias = ServerRequestContext[Any]
Result: TypeAlias = types.CallToolResult | types.InputRequiredResult

log = structlog.get_logger(part="router")


def build_server(actions: Actions) -> Server[Any]:
    """Return the server for one connection."""
    questions, offered = Questions(), Offered(actions)

    async def list_tools(
        _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult.model_validate({"tools": INTRODUCTION.tools})

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> Result:
        run = _RUNS.get(params.name)
        if run is None:
            words = f"no tool {params.name[:64]!r} here, but {', '.join(TOOLS)}"
            raise MCPError(types.INVALID_PARAMS, words)
        asker = Elicitation(context, params, questions)
        schema = TOOLS[params.name]["inputSchema"]
        given = read_arguments(schema, params.arguments or {})
        try:
            if params.name != CALL:  # which takes a capability's input beside its uri, too
                check_names(params.name, schema["properties"], given)
            return await run(actions, given, Caller(asker))
        except AnswerLater as later:
            return asker.required(later.proposal)
        except CapdexError as error:
            return _failed(error)
        except Exception:  # a bug of ours: its details only in the log
            log.exception("call failed", tool=params.name)
            return _failed(ExecutionFailed("a fault of the router", Code.INTERNAL, fix=BUG))

    return Server(
        INTRODUCTION.name,
        version=__version__,
        title=INTRODUCTION.title,
        instructions=INTRODUCTION.instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=offered.list_prompts,
        on_get_prompt=offered.get_prompt,
        on_list_resources=offered.list_resources,
        on_list_resource_templates=offered.list_templates,
        on_read_resource=offered.read_resource,
    )


async def serve_stdio(actions: Actions, stdio: Stdio | None = None) -> None:
    """Serve on stdin and stdout until stdin closes; what else is printed goes to stderr."""
    await (stdio or Stdio(INTRODUCTION)).serve(lambda: build_server(actions))


async def _find(actions: Actions, arguments: Json, _: Caller) -> Result:
    limit, remote = arguments.get("limit", 5), arguments.get("remote", True)
    fix = "give one, or leave it out"
    if type(limit) is not int:
        raise InvalidInput("limit is not an integer", why=came(limit), fix=fix)
    if not isinstance(remote, bool):  # the wish stays here unless it is clear that it may leave
        raise InvalidInput("remote is not true or false", why=came(remote), fix=fix)
    want = _text({"want": ""} | arguments, "want")
    return _said(await actions.find(want, limit, remote=remote))


async def _describe(actions: Actions, arguments: Json, _: Caller) -> Result:
    answer = actions.describe(_text(arguments, "uri"), arguments.get("level", 3))
    return _said(answer if isinstance(answer, str) else orjson.dumps(answer).decode("utf-8"))


async def _call(actions: Actions, arguments: Json, caller: Caller) -> Result:
    return _shown(*await actions.call(read_call(arguments), caller))


async def _route(actions: Actions, arguments: Json, _: Caller) -> Result:
    return _said(orjson.dumps(actions.route(_text(arguments, "message"))).decode("utf-8"))


async def _manage(actions: Actions, arguments: Json, caller: Caller) -> Result:
    action, target = _text(arguments, "action"), _text({"target": ""} | arguments, "target")
    return _said(await actions.manage(action, target, caller.asker))


_EXAMPLES: Final = {
    "want": "the weather in Oslo",
    "uri": "weather#now",
    "message": "will it rain?",
    "action": "list",
    "target": "weather",
}
_RUNS: Final[dict[str, Callable[[Actions, Json, Caller], Awaitable[Result]]]] = {
    FIND: _find,
    DESCRIBE: _describe,
    CALL: _call,
    ROUTE: _route,
    MANAGE: _manage,
}


def _text(arguments: Json, name: str) -> str:
    example = orjson.dumps({name: _EXAMPLES[name]}).decode()
    return read_text(arguments, name, f"give it as in {example}")


def _said(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


def _shown(result: InvokeResult, images: Sequence[Image] = ()) -> types.CallToolResult:
    """Return CAP's result without the members that say nothing: hosts give it to a model whole.

    Beside images there is no structured content, since many hosts would give a model that alone.
    """
    told = {x: y for x, y in result.to_json().items() if y is not None and x != "duration_ms"}
    words = orjson.dumps(told).decode("utf-8")
    if result.error:
        told["error"], words = seen(result.error), _line(result.error)
    shown = [types.ImageContent(type="image", data=x.data, mime_type=x.mime_type) for x in images]
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=words), *shown],
        structured_content=None if images else told,
        is_error=not result.ok,
    )


def _line(error: Json) -> str:
    """Return an error as one line: its code, message, cause and fix, then what else it says."""
    details = {x: y for x, y in error["details"].items() if x != "sent"}  # for programs
    parts = (error["message"], details.pop("why", ""), details.pop("fix", ""))
    said = "; ".join(filter(None, parts))
    for key, value in details.items():
        words = value if isinstance(value, list) else [value]
        numbers = re.findall(r"-?\d+", said)
        if not all(x in said if isinstance(x, str) else str(x) in numbers for x in words):
            said += f"; {key} {orjson.dumps(value).decode('utf-8')}"
    return visible(f"{error['reason']}: {said}".replace("\n", " "))


def _failed(error: CapdexError) -> types.CallToolResult:
    return _shown(InvokeResult.of_error(error, 0))
