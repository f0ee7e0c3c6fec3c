"""Convert tools as hosts do for OpenAI, Gemini, Claude and Bedrock: to schemas, or errors.

stdin has a JSON list of tools as MCP has them; stdout has an object by converter and tool.
"""

from __future__ import annotations

import copy
import json
import re
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import botocore.session
import pydantic
from agents.strict_schema import ensure_strict_json_schema
from anthropic import transform_schema
from anthropic.types import ToolParam
from botocore.validate import ParamValidator
from google.genai import types
from google.genai._mcp_utils import mcp_to_gemini_tool

Json = dict[str, Any]
SPECIFICATION = (
    botocore.session.get_session()
    .get_service_model("bedrock-runtime")
    .shape_for("ToolSpecification")
)


def openai(tool: Json) -> Json:
    return ensure_strict_json_schema(tool["inputSchema"])


def gemini(tool: Json) -> Json:
    """Convert as the SDK does for a session; a keyword that it would leave out is an error."""
    types.Schema.model_validate(tool["inputSchema"])
    types.Schema.from_json_schema(
        json_schema=types.JSONSchema.model_validate(tool["inputSchema"]),
        raise_error_on_unsupported_field=True,
    )
    found: Any = mcp_to_gemini_tool(SimpleNamespace(**tool))
    (declared,) = found.function_declarations
    assert (declared.name, declared.description) == (tool["name"], tool["description"])
    shown: Json = declared.parameters.model_dump(mode="json", by_alias=True, exclude_none=True)
    return shown


def anthropic(tool: Json) -> Json:
    schema = transform_schema(tool["inputSchema"])
    sent = {"name": tool["name"], "description": tool["description"], "input_schema": schema}
    pydantic.TypeAdapter(ToolParam).validate_python(sent)
    return schema


def bedrock(tool: Json) -> Json:
    sent = {"name": tool["name"], "description": tool["description"]}
    schema = tool["inputSchema"]
    report = ParamValidator().validate(sent | {"inputSchema": {"json": schema}}, SPECIFICATION)
    if report.has_errors():
        raise ValueError(report.generate_report())
    pattern = SPECIFICATION.members["name"].metadata["pattern"]
    if not re.fullmatch(pattern, tool["name"]):
        raise ValueError(f"the name does not match {pattern}")
    return dict(schema)


def tried(convert: Callable[[Json], Json], tool: Json) -> Json:
    try:
        return {"schema": convert(copy.deepcopy(tool))}
    except Exception as error:  # noqa: BLE001 - what converters raise is the result
        return {"error": f"{type(error).__name__}: {error}"}


TOOLS = json.load(sys.stdin)
CONVERTERS = (openai, gemini, anthropic, bedrock)
print(json.dumps({x.__name__: {y["name"]: tried(x, y) for y in TOOLS} for x in CONVERTERS}))  # noqa: T201
