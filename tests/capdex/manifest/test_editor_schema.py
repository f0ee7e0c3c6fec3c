"""The published JSON Schema of packages: made of the code, and never stricter than the reader."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from referencing import Registry

from capdex.manifest import editor_schema as formats
from capdex.manifest.bindings.binding import FIELDS
from capdex.manifest.manifest import SECTIONS, read
from capdex.manifest.metadata import KNOWN
from capdex.problems import Reason, Severity
from capdex.yaml.reader import read_yaml
from capdex_publisher.authoring.scaffold import PackageKind, scaffold

ROOT = Path(__file__).parents[3]
PUBLISHED = ROOT / "docs" / "schema" / "acp-1.json"
EXAMPLES = sorted((ROOT / "examples").glob("*.acp.yaml"))
HOSTILE = sorted((ROOT / "tests" / "vectors" / "packages" / "hostile").glob("*.acp.yaml"))
SCHEMA = formats.document()
VALIDATOR = Draft202012Validator(SCHEMA, registry=Registry())  # nothing is fetched


def value_of(path: Path) -> Any:
    return read_yaml(path.read_bytes()).value


def errors(document: Any) -> list[Reason]:
    """What the reader refuses a document for."""
    problems = read(json.dumps(document).encode()).problems
    return [x.code for x in problems if x.severity is Severity.ERROR]


def faults(document: Any) -> list[str]:
    return [error.message[:200] for error in VALIDATOR.iter_errors(document)]


def minimal() -> dict[str, Any]:
    return {
        "metadata": {
            "id": "did:nuwa:cap:note@1.0.0",
            "name": "Note",
            "description": "Keeps notes.",
        },
        "schema": '{"$id": "did:nuwa:state:note#v1"}',
        "tools": [{"type": "function", "function": {"name": "look", "description": "Looks."}}],
    }


def tool(**parameters: Any) -> list[Any]:
    function = {"name": "look", "description": "Looks.", "parameters": parameters}
    return [{"type": "function", "function": function}]


def function(**fields: Any) -> list[Any]:
    return [{"type": "function", "function": {"name": "look", "description": "Looks.", **fields}}]


def http(**fields: Any) -> dict[str, Any]:
    return {"look": {"type": "http_get", "url": "https://example.com/", **fields}}


def put(path: str, value: Any) -> dict[str, Any]:
    """The smallest package, with another value at a path."""
    document: dict[str, Any] = minimal()
    *steps, last = path.split(".")
    at = document
    for step in steps:
        at = at.setdefault(step, {})
    at[last] = value
    return document


def test_the_published_file_is_what_the_code_says() -> None:
    made = json.dumps(SCHEMA, ensure_ascii=False, indent=2) + "\n"
    assert PUBLISHED.read_text("utf-8") == made, (
        "run: python -m capdex.manifest.editor_schema > docs/schema/…"
    )


def test_the_published_file_is_json_schema_that_refers_to_itself_alone() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    text = PUBLISHED.read_text("utf-8")
    references = set(re.findall(r'"\$ref": "([^"]*)"', text))
    assert references == {"#/$defs/schema", "#/$defs/keywords"}


def test_every_field_that_the_reader_knows_is_described() -> None:
    assert tuple(SCHEMA["properties"]) == SECTIONS
    assert set(SCHEMA["properties"]["metadata"]["properties"]) == set(KNOWN)

    def undescribed(schema: Any, path: str) -> Iterator[str]:
        for name, inner in schema.get("properties", {}).items():
            if isinstance(inner, dict):
                if not inner.get("description") and not inner.get("title") and "enum" not in inner:
                    yield f"{path}.{name}"
                yield from undescribed(inner, f"{path}.{name}")
                yield from undescribed(inner.get("items", {}), f"{path}.{name}[]")

    assert list(undescribed(SCHEMA, "")) == []


def test_every_field_that_a_binding_must_have_is_described() -> None:
    cases = SCHEMA["properties"]["tool_bindings"]["additionalProperties"]["allOf"]
    assert len(cases) == len(FIELDS)
    for case in cases:
        assert set(case["then"]["required"]) <= set(case["then"]["properties"])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_are_valid_and_so_are_their_schemas(path: Path) -> None:
    document = value_of(path)
    assert faults(document) == []
    held = SCHEMA["properties"]["schema"]["contentSchema"]
    inner = Draft202012Validator(held | {"$defs": SCHEMA["$defs"]}, registry=Registry())
    assert [x.message for x in inner.iter_errors(json.loads(document["schema"]))] == []


@pytest.mark.parametrize("kind", PackageKind)
def test_a_new_package_is_valid(kind: PackageKind) -> None:
    assert faults(read_yaml(scaffold("weather", kind=kind).encode()).value) == []


@pytest.mark.parametrize("path", HOSTILE, ids=lambda path: path.name)
def test_a_hostile_package_that_the_reader_takes_is_valid(path: Path) -> None:
    reading = read(path.read_bytes())
    if reading.manifest is not None:
        assert faults(reading.manifest.document) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.summary", " " * 2000),
        ("metadata.summary", None),
        ("metadata.name", "\nNote\n"),
        ("metadata.domain", "astrology"),
        ("metadata.permissions", {"require": ["state.fly"]}),
        ("metadata.publisher", "solana:mainnet:abc"),
        ("metadata.publisher", " "),
        ("metadata.triggers", [{"type": "keyword", "value": "x", "model": 1}]),
        ("metadata.anything", {"else": [1, 2.5, None]}),
        ("metadata.llm_requirements", None),
        ("prompt", ""),
        ("else", "kept"),
        ("tools", None),
        ("tools", tool(anything=1, properties={"a": {"x-crdt": "lww_register"}, "b": True})),
        ("tools", tool(type="object", maxProperties=3.0)),
        ("tool_bindings", {"look": {"type": "carrier_pigeon", "url": 1}}),
        ("tool_bindings", {"look": {"type": "http_get", "url": "HTTPS://example.com/{x}", "z": 1}}),
        ("tools", function(output_schema={"$ref": "#/schema"}, annotations={"x": 1})),
        ("tools", function(output_schema=None, annotations={"read_only": None})),
        ("tool_bindings", http(parameters=None, headers=None, auth=None)),
        ("tool_bindings", http(parameters={"x": {"in": "query", "name": " ", "z": 1}})),
        ("tool_bindings", http(headers={"Accept": ""})),
        ("tool_bindings", http(auth={"type": "header", "secret": "K", "name": "X-Key"})),
        ("tool_bindings", http(auth={"type": "bearer", "secret": "K"})),
    ],
)
def test_what_never_refuses_a_package_is_valid(path: str, value: Any) -> None:
    document = put(path, value)
    assert [x for x in errors(document) if x is not Reason.BAD_BINDING] == []
    assert faults(document) == []


def binding(**fields: Any) -> dict[str, Any]:
    return {"look": fields}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata", None),
        ("metadata", []),
        ("schema", None),
        ("schema", {"$id": "did:nuwa:state:note#v1"}),
        ("schema", " \n"),
        ("prompt", ["text"]),
        ("prompt", "x" * (64 * 1024 + 1)),
        ("metadata.id", "did:nuwa:cap:note"),
        ("metadata.id", "did:nuwa:cap:note@v1.0.0"),
        ("metadata.id", "did:nuwa:cap:note@1.0.0+build"),
        ("metadata.id", "did:nuwa:cap:Note@1.0.0"),
        ("metadata.name", 1),
        ("metadata.name", " "),
        ("metadata.name", "two\nlines"),
        ("metadata.name", "x" * 129),
        ("metadata.description", None),
        ("metadata.summary", "x" * 121),
        ("metadata.summary", "two\nlines"),
        ("metadata.tags", "weather"),
        ("metadata.tags", ["x"] * 11),
        ("metadata.tags", [None]),
        ("metadata.languages", ["english language"]),
        ("metadata.homepage", "ftp://example.com/"),
        ("metadata.publisher", "eip155:1:0xabc"),
        ("metadata.signature", 5),
        ("metadata.permissions", ["state.create"]),
        ("metadata.permissions", {"require": "state.create"}),
        ("metadata.llm_requirements", {"min_context_window": 0}),
        ("metadata.llm_requirements", {"min_context_window": True}),
        ("metadata.examples", [{"tool": "look"}]),
        ("metadata.examples", [{"say": "hello", "input": []}]),
        ("metadata.triggers", {"type": "keyword", "value": "x"}),
        ("metadata.triggers", [None]),
        ("metadata.triggers", [{"type": "glob", "value": "x"}]),
        ("metadata.triggers", [{"type": "keyword"}]),
        ("metadata.triggers", [{"type": "keyword", "value": "two\nlines"}]),
        ("metadata.triggers", [{"type": "regex", "value": "x" * 513}]),
        ("metadata.triggers", [{"type": "embedding", "value": "x y", "model": "m@1"}]),
        ("metadata.triggers", [{"type": "embedding", "value": "zabc", "model": None}]),
        ("metadata.triggers", [{"type": "keyword", "value": "x"}] * 65),
        ("tools", {}),
        ("tools", [{"type": "function"}]),
        ("tools", [{"type": "tool", "function": {"name": "x"}}]),
        ("tools", [{"type": "function", "function": {"name": "state.fly"}}]),
        ("tools", [{"type": "function", "function": {"name": "a", "strict": "yes"}}]),
        ("tools", tool(type="array")),
        ("tools", tool(properties={"a": {"type": "text"}})),
        ("tools", tool(properties={"a": {"maxLength": -1}})),
        ("tools", tool(properties={"a": 1})),
        ("tools", tool(required=["a", "a"])),
        ("tools", tool(allOf=[])),
        ("tools", tool(properties={"a": {"$ref": "https://example.com/schema.json"}})),
        ("tools", tool(**{"$id": "did:nuwa:state:note#v1"})),
        ("tool_bindings", binding()),
        ("tool_bindings", binding(type="http_get")),
        ("tool_bindings", binding(type="http_get", url="http://example.com/")),
        ("tool_bindings", binding(type="nuwa_a2a", target_did="did:x:y")),
        ("tool_bindings", binding(type="mcp_service", service_uri="file:///x", mcp_action="x")),
        ("tool_bindings", {"state.create": {"type": "http_get", "url": "https://example.com/"}}),
        ("tools", function(output_schema={"type": "array"})),
        ("tools", function(output_schema=[])),
        ("tools", function(annotations=[])),
        ("tools", function(annotations={"idempotent": 1})),
        ("tools", function(annotations={"read_only": True, "destructive": True})),
        ("tool_bindings", http(parameters=[])),
        ("tool_bindings", http(parameters={"x": None})),
        ("tool_bindings", http(parameters={"x": {"name": "y"}})),
        ("tool_bindings", http(parameters={"x": {"in": "cookie"}})),
        ("tool_bindings", http(headers={"X-A": 5})),
        ("tool_bindings", http(headers={"a b": "x"})),
        ("tool_bindings", http(headers={"X-A": "two\nlines"})),
        ("tool_bindings", http(auth={"type": "bearer"})),
        ("tool_bindings", http(auth={"type": "digest", "secret": "K"})),
        ("tool_bindings", http(auth={"type": "bearer", "secret": "hunter2"})),
        ("tool_bindings", http(auth={"type": "bearer", "secret": "K", "value": "x"})),
        ("tool_bindings", http(auth={"type": "header", "secret": "K"})),
    ],
)
def test_a_fault_of_shape_is_refused_by_both(path: str, value: Any) -> None:
    document = put(path, value)
    assert errors(document)
    assert faults(document)


ODD = st.one_of(
    st.sampled_from([None, True, 1, 1.5, "", " ", "x", "\nx", "x\ny", "state.create", "regex"]),
    st.sampled_from(
        [[], [1], ["x"], [None], {}, {"x": 1}, {"type": "object"}, {"type": "keyword"}]
    ),
    st.sampled_from(["x" * 130, " " * 3000, "https://example.com/{x}", "did:x:y", "#/schema"]),
    st.text("aZ0 -:\n中", max_size=5),
)


def mutate(document: Any, draw: st.DataObject) -> None:
    """Replace, remove, double or rename one thing somewhere in a document."""
    at = document
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = draw.draw(st.sampled_from(keys))
        inner = at[key]
        if isinstance(inner, dict | list) and inner and draw.draw(st.integers(0, 3)):
            at = inner
            continue
        match draw.draw(st.sampled_from(["replace", "remove", "double", "rename"])):
            case "remove" if at is not document or len(at) > 1:
                del at[key]
            case "double" if isinstance(at, list):
                at.append(deepcopy(inner))
            case "rename" if isinstance(at, dict):
                at[draw.draw(st.sampled_from([*KNOWN, "type", "value", "model", "x"]))] = deepcopy(
                    inner
                )
            case _:
                at[key] = deepcopy(draw.draw(ODD))
        return


# What JSON Schema can say as the reader does: these refuse a document in both.
SHAPE = {Reason.MISSING_FIELD, Reason.WRONG_TYPE}


@settings(max_examples=300)
@given(st.sampled_from(EXAMPLES), st.data())
def test_a_mutated_example_is_valid_where_the_reader_takes_it(
    path: Path, draw: st.DataObject
) -> None:
    document = value_of(path)
    for _ in range(draw.draw(st.integers(1, 3))):
        if isinstance(document, dict) and document:
            mutate(document, draw)
    refused = errors(document)
    event("refused" if refused else "taken")
    if not refused:
        assert faults(document) == []
    elif SHAPE & set(refused):
        assert faults(document)
