"""What hosts make of tools for OpenAI, Gemini, Claude and Bedrock, by the packages of these."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from capdex_router.faces.tools import TOOLS
from capdex_service.mcp.tools import ALL
from tests.mcp_service.clients.conftest import PYTHON_1
from tests.mcp_service.clients.scripts import AGENTS

pytestmark = pytest.mark.real

Json = dict[str, Any]
EVERY = {tool["name"]: tool for tool in (*ALL, *TOOLS.values())}
CONVERTERS = ("openai", "gemini", "anthropic", "bedrock")
PREFIX = "mcp__plugin_capdex_capdex__"  # the longest that a host puts before a name
# What a converter to a closed form makes an empty object: the schema of `input` is that of the
# capability called. There a model gives `input_json`, a text.
OPEN = {("call", "input")}
KEYWORDS = {"type", "properties", "required", "items", "enum", "description", "default"}


@pytest.fixture(scope="module")
def converted() -> dict[str, dict[str, Json]]:
    """The schema or the error of each tool, by converter."""
    if not PYTHON_1.exists():
        pytest.fail("the converters are missing: run `make mcp1`", pytrace=False)
    text = json.dumps(list(EVERY.values()))
    command = [str(PYTHON_1), str(AGENTS / "convert.py")]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Json]] = json.loads(done.stdout)
    assert tuple(found) == CONVERTERS
    return found


def parts(schema: Json, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Json]]:
    """Yield each schema in a schema, with the names on the way to it."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from parts(inner, (*path, name))
    for key in ("items", "not", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from parts(schema[key], (*path, key))


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("converter", CONVERTERS)
def test_a_converter_takes_each_tool_and_keeps_its_properties(
    converted: dict[str, dict[str, Json]], converter: str, name: str
) -> None:
    found = converted[converter][name]
    assert "error" not in found
    before = {path for path, _ in parts(EVERY[name]["inputSchema"])}
    assert {path for path, _ in parts(found["schema"])} == before


@pytest.mark.parametrize("name", EVERY)
def test_openais_strict_form_closes_what_has_properties_and_nothing_else(
    converted: dict[str, dict[str, Json]], name: str
) -> None:
    for path, part in parts(converted["openai"][name]["schema"]):
        if part.get("type") != "object":
            continue
        assert part["additionalProperties"] is False
        assert set(part.get("required", ())) == set(part.get("properties", ()))
        assert part.get("properties") or (name, *path) in OPEN


@pytest.mark.parametrize("name", EVERY)
def test_gemini_gets_a_type_everywhere_and_the_values_of_each_enum(
    converted: dict[str, dict[str, Json]], name: str
) -> None:
    given = dict(parts(EVERY[name]["inputSchema"]))
    for path, part in parts(converted["gemini"][name]["schema"]):
        assert part["type"] == given[path]["type"].upper()
        assert part.get("enum") == given[path].get("enum")


@pytest.mark.parametrize("name", EVERY)
def test_a_schema_has_the_keywords_alone_that_all_converters_know(name: str) -> None:
    schema = EVERY[name]["inputSchema"]
    assert schema["type"] == "object"
    assert all(part.keys() <= KEYWORDS for _, part in parts(schema))
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", PREFIX + name)
