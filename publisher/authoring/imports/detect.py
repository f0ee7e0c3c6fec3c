"""Recognise files that are not packages and that `init` can import."""

from __future__ import annotations

from typing import Final

from capdex.errors import InvalidInput
from publisher.authoring.imports.openai import is_tool_list, tools_in
from publisher.authoring.imports.source import parse

MAX_LOOKED_AT_BYTES: Final = 1024 * 1024


FORMATS: Final = {
    "--from-skill": "an Agent Skill",
    "--from-openapi": "an OpenAPI document",
    "--from-mcp": "a list of MCP servers",
    "--from-openai": "a list of OpenAI tools",
}


def import_option_for(data: bytes) -> str:
    """Return the option of `capdex init` that imports such a file; empty if there is none."""
    begin = data.removeprefix(b"\xef\xbb\xbf")[:512]
    if begin.startswith(b"---") and b"\nname:" in begin and b"\nmetadata:" not in begin:
        return "--from-skill"
    if len(data) > MAX_LOOKED_AT_BYTES:
        return ""
    try:
        value = parse(data, "")
    except InvalidInput:
        return ""
    if isinstance(value, dict) and "metadata" in value:
        return ""  # a package with mistakes
    if isinstance(value, dict) and ("openapi" in value or "swagger" in value):
        return "--from-openapi"
    if isinstance(value, dict) and (
        "mcpServers" in value or "servers" in value or _is_server(value)
    ):
        return "--from-mcp"
    if is_tool_list(tools_in(value)):
        return "--from-openai"
    return ""


def _is_server(value: dict[str, object]) -> bool:
    """Return True for a server.json of the MCP registry."""
    return "remotes" in value or ("packages" in value and "name" in value)
