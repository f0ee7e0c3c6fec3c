"""OpenAI's function tools as a package: a list of tools, or a request that has one."""

from __future__ import annotations

from typing import Any, Final

from capdex.errors import InvalidInput
from publisher.authoring.imports.draft import Draft, DraftTool, Json
from publisher.authoring.imports.report import DOCUMENT, Note
from publisher.authoring.imports.schemas import adapted
from publisher.authoring.imports.source import parse
from publisher.authoring.imports.text import name_of, tool_name_of
from publisher.authoring.scaffold import placeholder_url

_SCHEMAS: Final = ("parameters", "input_schema", "inputSchema")
_FORM: Final = 'write [{"type": "function", "function": {"name": …, "parameters": …}}]'


def import_openai(data: bytes, name: str) -> Draft:
    """Return the draft of a JSON file with tools; `name` is the file's, without its ending.

    Both forms are read, `{type, function: {name, …}}` and `{type, name, …}`, and the schema of
    arguments also by the names that it has in other lists of tools (`input_schema` of Anthropic,
    `inputSchema` of MCP). How a call is carried out is not in them, so that each binding is a line
    to edit. Raises InvalidInput.
    """
    value = parse(data, name)
    listed: Any = value.get("tools", [value]) if isinstance(value, dict) else value
    if not is_tool_list(listed):
        raise InvalidInput(f"{name} holds no list of OpenAI tools", fix=_FORM)
    own_name = name_of(name) or "my-tools"
    tools: list[DraftTool] = []
    notes: list[Note] = []
    for i, item in enumerate(listed):
        function = _function(item)
        if function is None:
            kind = item.get("type") if isinstance(item, dict) else type(item).__name__
            why = "it is not a function"
            notes.append(Note(DOCUMENT, f"entry {i + 1}", "refused", str(kind)[:40], why))
            continue
        source = str(function["name"])[:128]
        schema = next((function[x] for x in _SCHEMAS if x in function), None)
        parameters, lost = adapted(schema, source)
        notes += lost
        if function.get("strict"):
            why = "each request to a model sets it for itself"
            notes.append(Note(source, "strict", "left out", "true", why))
        made = tool_name_of(source, [x.name for x in tools])
        description = str(function.get("description") or "")
        binding: Json = {"type": "http_post", "url": placeholder_url(f"{own_name}/{made}")}
        tools.append(DraftTool(made, source, description, parameters, binding))
    if not tools:
        raise InvalidInput(f"{name} holds no function", fix=_FORM)
    why = "the file does not say how a call is carried out: edit tool_bindings"
    notes.append(Note(DOCUMENT, "bindings", "left out", "", why))
    return Draft(own_name, own_name.replace("-", " ").title(), tools=tools, notes=notes)


def is_tool_list(value: Any) -> bool:
    """Return True for a list with at least one function tool."""
    return isinstance(value, list) and any(_function(item) for item in value)


def _function(item: Any) -> Json | None:
    if not isinstance(item, dict) or item.get("type", "function") != "function":
        return None
    function = item.get("function", item)
    if isinstance(function, dict) and isinstance(function.get("name"), str) and function["name"]:
        return function
    return None
