"""Tools and their bindings (P10)."""

from __future__ import annotations

from typing import Any

import pytest

from capdex.diagnostics import Findings
from capdex.manifest.bindings.binding import read_bindings
from capdex.manifest.fields import Fields
from capdex.manifest.tools import Annotations, Tool, read_tools
from capdex.problems import Problem, Reason, Severity

FUNCTION = "tools[0].function"
PACKAGE = {"type": "object", "properties": {"title": {"type": "string"}}}


def tool(name: Any = "find", **changes: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
    function = {"name": name, "description": "d", "parameters": parameters} | changes
    return {"type": "function", "function": {k: v for k, v in function.items() if v is not ...}}


def read(tools: Any, bindings: Any = None) -> tuple[list[Tool], dict[str, Any], list[Problem]]:
    findings = Findings()
    top = Fields({"tools": tools, "tool_bindings": bindings}, (), findings)
    found = read_tools(top, PACKAGE)
    bound = read_bindings(top, found, PACKAGE)
    return list(found.values()), bound, list(findings.problems())


def bind(**fields: Any) -> list[Problem]:
    return read([tool()], {"find": fields})[2]


def test_a_bound_tool_is_read() -> None:
    binding = {"type": "http_get", "url": "https://api.example.com/{city}"}
    tools, bindings, problems = read([tool(strict=True)], {"find": binding})
    assert [x.name for x in tools] == ["find"]
    assert bindings == {"find": binding}
    assert problems == []


def test_a_built_in_tool_needs_no_binding_and_may_take_the_schema() -> None:
    object_ = {"type": "object", "properties": {"object": {"$ref": "#/schema"}}}
    (found,), _, problems = read([tool("state.create", parameters=object_)])
    assert found.built_in
    assert problems == []


def test_a_tool_without_parameters_takes_none() -> None:
    (found,), _, _ = read([tool(parameters=...)])
    assert found.parameters == {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("item", "reason", "severity", "path"),
    [
        ("find", Reason.WRONG_TYPE, Severity.ERROR, "tools[0]"),
        ({"type": "function"}, Reason.MISSING_FIELD, Severity.ERROR, "tools[0].function"),
        ({**tool(), "type": "tool"}, Reason.BAD_TOOL, Severity.ERROR, "tools[0].type"),
        (tool(...), Reason.MISSING_FIELD, Severity.ERROR, "tools[0].function.name"),
        (tool("a b"), Reason.BAD_TOOL, Severity.ERROR, "tools[0].function.name"),
        (tool("a" * 65), Reason.BAD_TOOL, Severity.ERROR, "tools[0].function.name"),
        (tool("state.creat"), Reason.BAD_TOOL, Severity.ERROR, "tools[0].function.name"),
        (
            tool(description="d" * 2049),
            Reason.TOO_LARGE,
            Severity.ERROR,
            "tools[0].function.description",
        ),
        (
            tool(description=...),
            Reason.MISSING_FIELD,
            Severity.WARNING,
            "tools[0].function.description",
        ),
        (tool(strict="yes"), Reason.WRONG_TYPE, Severity.ERROR, "tools[0].function.strict"),
        (tool(parameters=[]), Reason.WRONG_TYPE, Severity.ERROR, "tools[0].function.parameters"),
        (
            tool(parameters={"type": "array"}),
            Reason.BAD_TOOL,
            Severity.ERROR,
            "tools[0].function.parameters.type",
        ),
        (tool(parameters={}), Reason.BAD_TOOL, Severity.WARNING, "tools[0].function.parameters"),
        (
            tool(parameters={"type": "object", "properties": {"a": {"type": "text"}}}),
            Reason.BAD_SCHEMA,
            Severity.ERROR,
            "tools[0].function.parameters.properties.a.type",
        ),
        (
            tool(parameters={"$ref": "https://example.org/"}),
            Reason.BAD_SCHEMA,
            Severity.ERROR,
            "tools[0].function.parameters.$ref",
        ),
        (tool(extra=1), Reason.UNKNOWN_FIELD, Severity.NOTE, "tools[0].function.extra"),
        (tool(output_schema=[]), Reason.WRONG_TYPE, Severity.ERROR, f"{FUNCTION}.output_schema"),
        (
            tool(output_schema={"type": "array"}),
            Reason.BAD_TOOL,
            Severity.ERROR,
            f"{FUNCTION}.output_schema.type",
        ),
        (tool(output_schema={}), Reason.BAD_TOOL, Severity.WARNING, f"{FUNCTION}.output_schema"),
        (
            tool(output_schema={"$ref": "file:///etc/passwd"}),
            Reason.BAD_SCHEMA,
            Severity.ERROR,
            f"{FUNCTION}.output_schema.$ref",
        ),
        (tool(annotations=True), Reason.WRONG_TYPE, Severity.ERROR, f"{FUNCTION}.annotations"),
        (
            tool(annotations={"read_only": "yes"}),
            Reason.WRONG_TYPE,
            Severity.ERROR,
            f"{FUNCTION}.annotations.read_only",
        ),
        (
            tool(annotations={"read_only": True, "destructive": True}),
            Reason.BAD_TOOL,
            Severity.ERROR,
            f"{FUNCTION}.annotations.destructive",
        ),
        (
            tool(annotations={"destructiveHint": True}),
            Reason.BAD_TOOL,
            Severity.WARNING,
            f"{FUNCTION}.annotations.destructiveHint",
        ),
        (
            tool(annotations={"safe": True}),
            Reason.UNKNOWN_FIELD,
            Severity.NOTE,
            f"{FUNCTION}.annotations.safe",
        ),
    ],
)
def test_a_faulty_tool_is_reported(
    item: Any, reason: Reason, severity: Severity, path: str
) -> None:
    problems = [x for x in read([item])[2] if x.code is not Reason.UNBOUND_TOOL]
    assert [(x.code, x.severity, x.path) for x in problems] == [(reason, severity, path)]


def test_what_a_tool_gives_and_does_is_read() -> None:
    output = {"type": "object", "properties": {"note": {"$ref": "#/schema"}}}
    stated = {"read_only": False, "idempotent": True}
    (found,), _, problems = read([tool(output_schema=output, annotations=stated)])
    assert [x.code for x in problems] == [Reason.UNBOUND_TOOL]
    assert found.output_schema == output
    assert found.annotations == Annotations(read_only=False, idempotent=True)
    (plain,), _, _ = read([tool()])
    assert (plain.output_schema, plain.annotations) == (None, Annotations())


@pytest.mark.parametrize("count", [999, 1000])
def test_an_output_schema_has_the_bounds_of_every_schema(count: int) -> None:
    output = {"type": "object", "properties": {f"p{i}": {} for i in range(count)}}
    codes = [x.code for x in read([tool(output_schema=output)])[2]]
    assert (Reason.TOO_MANY in codes) is (count == 1000)


def test_names_are_unique() -> None:
    tools, _, problems = read([tool(), tool("other"), tool()])
    assert [x.name for x in tools] == ["find", "other"]
    assert (problems[0].code, problems[0].path) == (Reason.BAD_TOOL, "tools[2].function.name")


def test_there_are_at_most_64_tools_and_bindings() -> None:
    many = {f"t{i}": {"type": "http_get", "url": "https://api.example.com/"} for i in range(65)}
    tools, bindings, problems = read([tool(name) for name in many], many)
    assert (len(tools), len(bindings)) == (64, 64)
    assert [x.code for x in problems] == [Reason.TOO_MANY, Reason.TOO_MANY]


def test_a_tool_that_nothing_can_call_is_warned_about() -> None:
    _, _, (problem,) = read([tool()])
    assert (problem.code, problem.severity) == (Reason.UNBOUND_TOOL, Severity.WARNING)


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "http_post", "url": "https://api.example.com/?q={city}"},
        {"type": "nuwa_a2a", "target_did": "{city}", "service_method": "tell"},
        {"type": "nuwa_a2a", "target_did": "did:web:example.com:{city}", "service_method": "tell"},
        {"type": "mcp_service", "service_uri": "did:nuwa:mcp:scraper:v1", "mcp_action": "a"},
        {"type": "mcp_service", "service_uri": "https://mcp.example.com/mcp", "mcp_action": "a"},
    ],
)
def test_the_four_types_bind(fields: dict[str, str]) -> None:
    assert bind(**fields) == []


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, Reason.MISSING_FIELD),
        ({"type": "http_get"}, Reason.MISSING_FIELD),
        ({"type": "http_get", "url": 1}, Reason.WRONG_TYPE),
        ({"type": "http_get", "url": "http://127.0.0.1:8545/"}, Reason.BAD_BINDING),
        ({"type": "http_get", "url": "https://{city}.example.com/"}, Reason.BAD_BINDING),
        ({"type": "http_get", "url": "https://api.example.com/{town}"}, Reason.BAD_BINDING),
        ({"type": "http_get", "url": "https://api.example.com/{}"}, Reason.BAD_BINDING),
        ({"type": "http_get", "url": "https://api.example.com/{city"}, Reason.BAD_BINDING),
        ({"type": "nuwa_a2a", "target_did": "did:x:y"}, Reason.MISSING_FIELD),
        ({"type": "nuwa_a2a", "target_did": "me", "service_method": "m"}, Reason.BAD_BINDING),
        ({"type": "mcp_service", "service_uri": "x", "mcp_action": "a"}, Reason.BAD_BINDING),
        ({"type": "mcp_service", "service_uri": "did:", "mcp_action": "a"}, Reason.BAD_BINDING),
        (
            {"type": "mcp_service", "service_uri": "file:///etc/passwd", "mcp_action": "a"},
            Reason.BAD_BINDING,
        ),
    ],
)
def test_a_faulty_binding_is_refused(fields: dict[str, Any], reason: Reason) -> None:
    errors = [x.code for x in bind(**fields) if x.severity is Severity.ERROR]
    assert errors == [reason]


def test_placeholders_are_checked_wherever_they_stand() -> None:
    more = {"x-city": ["{town}"]}
    problems = bind(type="http_get", url="https://api.example.com/", more=more)
    assert {(x.code, x.path) for x in problems} == {
        (Reason.UNKNOWN_FIELD, "tool_bindings.find.more"),
        (Reason.BAD_BINDING, "tool_bindings.find.more.x-city[0]"),
    }


def test_placeholders_may_name_the_fields_of_the_schema() -> None:
    item = tool(parameters={"$ref": "#/schema"})
    binding = {"type": "http_get", "url": "https://api.example.com/{title}"}
    assert read([item], {"find": binding})[2] == []


def test_an_unknown_type_is_kept_and_warned_about() -> None:
    binding = {"type": "http_gett", "url": "anything {x}"}
    _, bindings, (problem,) = read([tool()], {"find": binding})
    assert bindings == {"find": binding}
    assert (problem.severity, problem.hint) == (Severity.WARNING, "did you mean http_get?")


@pytest.mark.parametrize("name", ["state.create", "fnd"])
def test_a_binding_for_a_built_in_or_for_no_tool_is_refused(name: str) -> None:
    url = {"type": "http_get", "url": "https://api.example.com/"}
    _, _, problems = read([tool()], {"find": url, name: url})
    assert [(x.code, x.severity) for x in problems] == [(Reason.BAD_BINDING, Severity.ERROR)]


def test_a_binding_is_a_mapping() -> None:
    assert [x.code for x in read([tool()], {"find": "x"})[2]] == [Reason.WRONG_TYPE]
