"""Recognise files that are not packages and that `init` can import."""

from __future__ import annotations

import re
from typing import Final

from capdex.errors import InvalidInput
from capdex.yaml.front_matter import FRONT
from capdex_publisher.authoring.imports.openai import is_tool_list, tools_in
from capdex_publisher.authoring.imports.servers import is_server, listed
from capdex_publisher.authoring.imports.source import parse, utf8

MAX_LOOKED_AT_BYTES: Final = 1024 * 1024
_CODEX: Final = re.compile(rb"(?m)^\[mcp_servers\.")  # its configuration is TOML

FORMATS: Final = {
    "--from-skill": "an Agent Skill",
    "--from-openapi": "an OpenAPI document",
    "--from-mcp": "a list of MCP servers",
    "--from-openai": "a list of tools",
}


def import_option_for(data: bytes) -> str:
    """Return the option of `capdex init` that imports such a file; empty if there is none."""
    if len(data) > MAX_LOOKED_AT_BYTES:
        return ""
    front = FRONT.match(data.removeprefix(b"\xef\xbb\xbf"))
    if front and re.search(rb"(?m)^name:", front[1]):
        return "--from-skill"
    try:
        value = parse(utf8(data)[0], "")
    except InvalidInput:
        value = None
    if not isinstance(value, dict | list) and _CODEX.search(data):
        return "--from-mcp"
    if isinstance(value, dict) and "metadata" in value:
        return ""  # a package with mistakes
    if isinstance(value, dict) and ("openapi" in value or "swagger" in value):
        return "--from-openapi"
    if isinstance(value, dict) and (listed(value) or is_server(value)):
        return "--from-mcp"
    return "--from-openai" if is_tool_list(tools_in(value, [])) else ""
