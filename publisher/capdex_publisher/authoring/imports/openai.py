"""OpenAI's function tools as a package: a list of tools, or a request that has one."""

from __future__ import annotations

from typing import Any, Final

from capdex.errors import InvalidInput
from capdex.json import Json, object_of
from capdex.manifest.bindings.http_auth import SECRET_WORDS
from capdex.manifest.tools import MCP_HINTS
from capdex_publisher.authoring.imports.draft import Draft, DraftTool
from capdex_publisher.authoring.imports.references import write_pointers
from capdex_publisher.authoring.imports.report import DOCUMENT, Note, name_of, tool_name_of, written
from capdex_publisher.authoring.imports.schemas import Resolver, TooLarge
from capdex_publisher.authoring.imports.source import parse, utf8
from capdex_publisher.authoring.scaffold import placeholder_url

_EMPTY: Final[Json] = {"type": "object", "properties": {}}
SCHEMAS: Final = (
    *("parameters", "input_schema", "inputSchema", "parametersJsonSchema"),
    *("parameters_json_schema", "params_json_schema", "args_schema", "args"),
    "parameter_definitions",
)
# Words of a schema whose values are schemas: where none stands, each key may be a parameter.
_SCHEMA_WORDS: Final = frozenset(
    ["properties", "patternProperties", "additionalProperties", "$defs", "definitions", "not", "if"]
)
_OF_TOOL: Final = frozenset(["type", "function", "toolSpec", *SCHEMAS])  # of one without a list
_OUTPUTS: Final = ("outputSchema", "responseJsonSchema", "response_json_schema", "response")
_DESCRIPTIONS: Final = ("description", "title")  # the latter if there is no other
_LISTS: Final = ("tools", "functions", "function_declarations", "functionDeclarations")
_HOLDERS: Final = ("result", "toolConfig", "params", "session")  # MCP, Bedrock, OpenAI Realtime
_BESIDE: Final = {
    "nextCursor": "the list of the server goes on: --from-mcp reads all of it",
    **dict.fromkeys(
        ("instructions", "system", "systemInstruction"), "the prompt of a package may say it"
    ),
}
_READ_WORDS: Final = frozenset(
    ["name", "type", "annotations", "input_examples", *SCHEMAS, *_OUTPUTS]
)
_READ: Final = "read are those of OpenAI, Anthropic, Gemini and Bedrock, and replies to tools/list"
_FORM: Final = 'write [{"type": "function", "function": {"name": …, "parameters": …}}]'


def import_openai(data: bytes, name: str) -> Draft:
    """Return the draft of a JSON file with tools; `name` is the file's, without its ending.

    Read are `{type, function: {name, …}}`, `{type, name, …}`, the older `functions`, tools of
    Anthropic (`input_schema`), of a reply to `tools/list` (`inputSchema`), declarations of Gemini
    (`functionDeclarations`) and of Bedrock (`toolSpec`). How a call is carried out is not in them,
    so that each binding is a line to edit. Raises InvalidInput.
    """
    data, notes = utf8(data)
    value = parse(data, name)
    groups: list[Json] = []
    listed = tools_in(value, groups)
    if not is_tool_list(listed):
        raise InvalidInput(f"{name} holds no list of tools", why=_READ, fix=_FORM)
    own_name = name_of(name) or "my-tools"
    tools: list[DraftTool] = []
    if own_name != name:
        notes.append(Note(DOCUMENT, "name", "changed", name, own_name))
    held = object_of(object_of(value).get("result", value))
    for word, why in _BESIDE.items():
        notes += _unread(DOCUMENT, {word: held.get(word)}, why)
    for group in groups:
        kind = group.get("type", "group")
        words = {f"{x} of a {kind}": y for x, y in group.items() if x not in (*_LISTS, "type")}
        notes += _unread(DOCUMENT, words, "the tools of it are carried, and nothing else of it")
    for i, item in enumerate(listed):
        function = _function(item)
        if function is None:
            is_object = isinstance(item, dict)
            kind = (item.get("type") or ", ".join(item)) if is_object else type(item).__name__
            why = "it is not a function"
            notes.append(Note(DOCUMENT, f"entry {i + 1}", "refused", str(kind)[:40], why))
            continue
        source = str(function["name"])[:128]
        if function is not item:
            beside = {x: y for x, y in item.items() if y is not function and x != "type"}
            notes += _unread(source, beside)
        url = placeholder_url(f"{own_name}/{tool_name_of(source, ())}")
        tool, lost = tool_of(function, source, {"type": "http_post", "url": url})
        notes += lost
        tools.append(tool)
    if not tools:
        raise InvalidInput(f"{name} holds no function", fix=_FORM)
    why = "the file does not say how a call is carried out: edit tool_bindings"
    notes.append(Note(DOCUMENT, "bindings", "left out", "", why))
    return Draft(own_name, own_name.replace("-", " ").title(), tools=tools, notes=notes)


def tool_of(function: Json, source: str, binding: Json) -> tuple[DraftTool, list[Note]]:
    """Return a tool of a list or of a server, and what of it is not read or is changed."""
    word, schema = next(((x, function[x]) for x in SCHEMAS if x in function), ("", None))
    if isinstance(schema, dict) and schema.keys() == {"json"}:  # of Bedrock
        schema = schema["json"]
    if isinstance(schema, dict) and "input_examples" in function:  # of Anthropic
        schema = {"examples": function["input_examples"], **schema}
    parameters, notes = _adapted(_around(schema), source)
    output = next((function[x] for x in _OUTPUTS if x in function), None)
    output, lost = _copied(output, source, "output schema", "output ")
    told = [x for x in _DESCRIPTIONS if isinstance(function.get(x), str) and function[x]]
    description = function[told[0]] if told else ""
    unread = {x: y for x, y in function.items() if x not in (*_READ_WORDS, *told[:1])}
    unread |= {x: function[x] for x in SCHEMAS if x in function and x != word}
    if unread.get("execution") == {"taskSupport": "forbidden"}:
        del unread["execution"]  # as where nothing is said
    hints, odd = _annotations(function.get("annotations"), source)
    tool = DraftTool(source, description, parameters, binding, output, hints)
    return tool, notes + lost + _unread(source, unread) + odd


def _around(schema: Any) -> Any:
    """Return the schema of an object for parameters without one around them.

    LangChain, Cohere, Bedrock's agents and xLAM have them by name, Qwen-Agent in a list.
    """
    if isinstance(schema, list) and all(isinstance(object_of(x).get("name"), str) for x in schema):
        schema = {x["name"]: {k: v for k, v in x.items() if k != "name"} for x in schema}
    named = isinstance(schema, dict) and all(isinstance(x, dict) for x in schema.values())
    if not named or not schema or not _SCHEMA_WORDS.isdisjoint(schema):
        return schema
    required = [name for name, x in schema.items() if x.get("required") is True]
    properties = {
        name: {k: v for k, v in x.items() if k != "required" or isinstance(v, list)}
        for name, x in schema.items()
    }
    return {"type": "object", "properties": properties, "required": required}


def _adapted(schema: object, source: str) -> tuple[Json, list[Note]]:
    """Return the schema of a tool's parameters, and what was left out of it.

    Older drafts' words are written in those of 2020-12. Anything but the schema of an object
    becomes that of an object without parameters.
    """
    converted, notes = _copied(schema, source, "parameters")
    why = "an argument, which a model is asked for"
    keys = filter(SECRET_WORDS.fullmatch, (converted or _EMPTY).get("properties", {}))
    notes += [Note(source, f"parameter {x}", "changed", "a secret by its name", why) for x in keys]
    if converted == {"type": "object"}:
        none = "none: a router refuses an argument that the schema does not name"
        notes.append(Note(source, "parameters", "changed", "any argument", none))
    return converted or dict(_EMPTY), notes


def _copied(
    schema: Any, source: str, what: str, prefix: str = ""
) -> tuple[Json | None, list[Note]]:
    """Return the schema of an object, None if there is none that a package can carry."""
    if schema is None:
        return None, []
    if not _is_object(schema):
        return None, [Note(source, what, "left out", "", "no schema of an object")]
    write_pointers(schema)
    resolver = Resolver(root=schema)
    try:
        made = resolver.schema(schema)
    except TooLarge as fault:
        return None, [Note(source, what, "left out", str(fault), "too large")]
    # Only objects follow it: its type stands first.
    made = {"type": "object", **made} | {"type": "object"}
    return made, [
        Note(source, f"{prefix}{subject}", fate, before, why)
        for subject, fate, before, why in resolver.lost
    ]


def _is_object(schema: Any) -> bool:
    """Return True for a schema that objects may follow."""
    given = schema.get("type", "object") if isinstance(schema, dict) else None
    names = given if isinstance(given, list) else [given]
    return any(str(x).lower() in ("object", "dict") for x in names)


def _unread(source: str, words: Json, why: str = "a package has no such word") -> list[Note]:
    return [
        Note(source, x, "left out", written(y), why)
        for x, y in words.items()
        if y not in (None, "")
    ]


def _annotations(given: object, source: str) -> tuple[dict[str, bool], list[Note]]:
    """Return what a server states of a tool's effects, and what of it is not read."""
    hints = object_of(given)
    stated = {ours: hints[x] for x, ours in MCP_HINTS.items() if isinstance(hints.get(x), bool)}
    odd = {f"annotation {x}": y for x, y in hints.items() if MCP_HINTS.get(x) not in stated}
    odd |= {"annotations": given} if not isinstance(given, dict) else {}
    lost = _unread(source, odd, "a package says true or false of " + ", ".join(MCP_HINTS.values()))
    if stated.get("read_only"):  # it destroys nothing, whatever the other hint is (MCP)
        stated.pop("destructive", None)
    return stated, lost


def tools_in(value: Any, groups: list[Json], depth: int = 0) -> Any:
    """Return the list of tools that a value is or has; if none, what may be a tool by itself.

    `groups` gets the entries of lists that have lists of their own.
    """
    if isinstance(value, list):
        tools: list[Any] = []
        for entry in value:
            inner = [object_of(entry).get(word) for word in _LISTS]
            is_group = depth < 2 and any(isinstance(x, list) for x in inner)
            groups += [entry] if is_group else []
            tools += tools_in(entry, groups, depth + 1) if is_group else [entry]
        return tools
    for words in (_LISTS, _HOLDERS) if isinstance(value, dict) and depth < 4 else ():
        held = [value[x] for x in words if isinstance(value.get(x), dict | list)]
        if held:
            return [tool for part in held for tool in tools_in(part, groups, depth + 1)]
    return [value] if isinstance(value, dict) and not _OF_TOOL.isdisjoint(value) else []


def is_tool_list(value: object) -> bool:
    """Return True for a list with at least one function tool."""
    return isinstance(value, list) and any(_function(item) for item in value)


def _function(item: object) -> Json | None:
    if not isinstance(item, dict):
        return None
    own = item.get("type", "function")
    if own != "function" and not (own == "custom" and "input_schema" in item):
        return None
    function = item.get("function", item.get("toolSpec", item))
    if isinstance(function, dict) and isinstance(function.get("name"), str) and function["name"]:
        return function
    return None
