"""Packages made of what an author already has: an MCP server, tools, an API, a skill."""

from capdex_publisher.authoring.imports.detect import import_option_for
from capdex_publisher.authoring.imports.draft import Imported, write_package
from capdex_publisher.authoring.imports.mcp import import_mcp
from capdex_publisher.authoring.imports.openai import import_openai
from capdex_publisher.authoring.imports.openapi.tool import import_openapi
from capdex_publisher.authoring.imports.skill import import_skill
from capdex_publisher.authoring.imports.source import read_source

__all__ = [
    "Imported",
    "import_mcp",
    "import_openai",
    "import_openapi",
    "import_option_for",
    "import_skill",
    "read_source",
    "write_package",
]
