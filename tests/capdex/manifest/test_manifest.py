"""Reading manifests: fields, problems and totality (NIP-7, P7 to P10a)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capdex.diff.diff import compare
from capdex.diff.semver_step import Step
from capdex.manifest.manifest import Manifest, read
from capdex.problems import Problem, Reason, Severity

HOSTILE = Path(__file__).parents[2] / "vectors" / "packages" / "hostile"
EXPECTED: dict[str, dict[str, Any]] = json.loads((HOSTILE / "expected.json").read_text("utf-8"))
EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.acp.yaml"))

SCHEMA = '{"$id": "did:nuwa:state:note#v1", "type": "object"}'


def package(metadata: str = "", rest: str = "", schema: str = SCHEMA, **changes: str) -> bytes:
    """A good package with further metadata lines, other sections and changed metadata fields."""
    fields = {
        "id": "did:nuwa:cap:note@1.0.0",
        "name": "Note",
        "description": "Keeps notes.",
        "triggers": "[{type: keyword, value: note}]",
        "permissions": '{require: ["state.create"]}',
    } | changes
    lines = [f"  {name}: {value}" for name, value in fields.items() if value != "-"]
    lines += ["  " + line for line in metadata.splitlines()]
    text = "metadata:\n" + "\n".join(lines) + f"\nschema: |\n  {schema}\n" + rest
    return text.encode()


def problems(data: bytes) -> list[Problem]:
    return list(read(data).problems)


def manifest(data: bytes) -> Manifest:
    reading = read(data)
    assert reading.manifest is not None, reading.problems
    return reading.manifest


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_hostile_packages_get_what_they_must(name: str) -> None:
    reading = read((HOSTILE / name).read_bytes())
    found = {
        "usable": reading.manifest is not None,
        "errors": sorted({x.code for x in reading.problems if x.severity is Severity.ERROR}),
        "warnings": sorted({x.code for x in reading.problems if x.severity is Severity.WARNING}),
    }
    assert found == EXPECTED[name]


def test_every_hostile_package_is_expected() -> None:
    indexed = {x["file"] for x in json.loads((HOSTILE / "index.json").read_text("utf-8"))}
    assert indexed == set(EXPECTED) == {x.name for x in HOSTILE.glob("*.yaml")}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_without_the_lint_the_manifest_and_the_errors_are_the_same(name: str) -> None:
    data = (HOSTILE / name).read_bytes()
    whole, without = read(data), read(data, lint=False)
    assert without.manifest == whole.manifest
    broad = (Reason.BAD_TRIGGER, Severity.WARNING)
    assert without.problems == tuple(
        x
        for x in whole.problems
        if not x.code.startswith("LINT_") and (x.code, x.severity) != broad
    )


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_have_no_problem_at_all(path: Path) -> None:
    reading = read(path.read_bytes())
    assert reading.problems == ()
    assert reading.manifest is not None


def test_norway_is_text() -> None:
    assert manifest((HOSTILE / "norway.acp.yaml").read_bytes()).title == "no"


def test_every_field_is_read() -> None:
    data = package(
        metadata="""\
memory_scope: sc:note
llm_requirements: {model_family: [gpt-4], min_context_window: 16000, required_features: []}
summary: One line
domain: productivity
tags: [notes]
languages: [en, zh-Hant]
license: MIT
homepage: http://example.org/
proof: https://example.org/.well-known/capdex.json
repository: https://git.example.org/note
author: did:key:z6Mk#z6Mk
publisher: eip155:1:0x00000000000000000000000000000000000000aa
examples: [{say: Keep this, tool: state.create, input: {a: 1}}]
signature: zSignature
""",
        rest="""\
prompt: You keep notes.
tools:
  - type: function
    function:
      name: state.create
      description: d
      parameters: {type: object, properties: {o: {$ref: "#/schema"}}}
tool_bindings: {}
""",
    )
    reading = read(data)
    assert reading.problems == ()
    m = manifest(data)
    assert (str(m.uri), m.title, m.description) == (
        "did:nuwa:cap:note@1.0.0",
        "Note",
        "Keeps notes.",
    )
    assert (m.summary, m.domain, m.tags, m.languages, m.license) == (
        "One line",
        "productivity",
        ("notes",),
        ("en", "zh-Hant"),
        "MIT",
    )
    assert (m.homepage, m.repository) == ("http://example.org/", "https://git.example.org/note")
    assert m.proof == "https://example.org/.well-known/capdex.json"
    assert [(x.type, x.value, x.model) for x in m.triggers] == [("keyword", "note", None)]
    assert [x.name for x in m.tools] == ["state.create"]
    assert (m.bindings, m.permissions, m.memory_scope) == ({}, ("state.create",), "sc:note")
    assert m.llm_requirements["min_context_window"] == 16000
    assert (m.schema, m.schema_uri) == (json.loads(SCHEMA), "did:nuwa:state:note#v1")
    assert (m.prompt, m.author, m.signature) == (
        "You keep notes.",
        "did:key:z6Mk#z6Mk",
        "zSignature",
    )
    assert m.publisher == "eip155:1:0x00000000000000000000000000000000000000aa"
    assert m.examples == ({"say": "Keep this", "tool": "state.create", "input": {"a": 1}},)
    assert m.metadata == m.document["metadata"]
    assert json.loads(json.dumps(m.document)) == m.document


def test_what_is_optional_may_be_absent() -> None:
    m = manifest(package())
    assert (m.domain, m.summary, m.prompt, m.signature) == ("other", None, None, None)
    assert (m.tools, m.bindings, m.tags, m.examples) == ((), {}, (), ())


@pytest.mark.parametrize(
    ("data", "reason", "path"),
    [
        (b"[]\n", Reason.WRONG_TYPE, ""),
        (b"text\n", Reason.WRONG_TYPE, ""),
        (b"---\n", Reason.WRONG_TYPE, ""),
        (b"{}\n", Reason.MISSING_FIELD, "metadata"),
        (package(id="-"), Reason.MISSING_FIELD, "metadata.id"),
        (package(id=""), Reason.MISSING_FIELD, "metadata.id"),
        (package(id="1"), Reason.WRONG_TYPE, "metadata.id"),
        (package(id="did:nuwa:cap:note"), Reason.BAD_ID, "metadata.id"),
        (package(id="did:nuwa:cap:note@^1.0.0"), Reason.BAD_ID, "metadata.id"),
        (package(id="did:nuwa:cap:Note@1.0.0"), Reason.BAD_ID, "metadata.id"),
        (package(name="-"), Reason.MISSING_FIELD, "metadata.name"),
        (package(name="1"), Reason.WRONG_TYPE, "metadata.name"),
        (package(name="' '"), Reason.BAD_VALUE, "metadata.name"),
        (package(name='"a\\nb"'), Reason.BAD_VALUE, "metadata.name"),
        (package(name="a" * 129), Reason.TOO_LARGE, "metadata.name"),
        (package(description="-"), Reason.MISSING_FIELD, "metadata.description"),
        (package(description="é" * 1025), Reason.TOO_LARGE, "metadata.description"),
        (package(triggers="{}"), Reason.WRONG_TYPE, "metadata.triggers"),
        (package(permissions="[]"), Reason.WRONG_TYPE, "metadata.permissions"),
        (
            package(permissions="{require: [1]}"),
            Reason.WRONG_TYPE,
            "metadata.permissions.require[0]",
        ),
        (package("summary: " + "a" * 121), Reason.TOO_LARGE, "metadata.summary"),
        (package(f"tags: {list(range(11))}"), Reason.TOO_MANY, "metadata.tags"),
        (package("tags: ['']"), Reason.BAD_VALUE, "metadata.tags[0]"),
        (package("tags: [[]]"), Reason.WRONG_TYPE, "metadata.tags[0]"),
        (package("languages: [en, english!]"), Reason.BAD_VALUE, "metadata.languages[1]"),
        (package('homepage: "javascript:alert(1)"'), Reason.BAD_VALUE, "metadata.homepage"),
        (package("repository: https://10.0.0.1/"), Reason.BAD_VALUE, "metadata.repository"),
        (package("publisher: '0x00'"), Reason.BAD_VALUE, "metadata.publisher"),
        (package("publisher: eip155:1:0x00"), Reason.BAD_VALUE, "metadata.publisher"),
        (package("author: 1"), Reason.WRONG_TYPE, "metadata.author"),
        (package("signature: 1"), Reason.WRONG_TYPE, "metadata.signature"),
        (package("signature: 'zA'"), Reason.SIGNATURE_ENCODING, "metadata.signature"),
        (package("signature: |\n  zA"), Reason.SIGNATURE_ENCODING, "metadata.signature"),
        (package("signature: zA\n  zB"), Reason.SIGNATURE_ENCODING, "metadata.signature"),
        (package("llm_requirements: []"), Reason.WRONG_TYPE, "metadata.llm_requirements"),
        (
            package("llm_requirements: {min_context_window: 0}"),
            Reason.BAD_VALUE,
            "metadata.llm_requirements.min_context_window",
        ),
        (package("examples: [x]"), Reason.WRONG_TYPE, "metadata.examples[0]"),
        (package("examples: [{tool: x}]"), Reason.MISSING_FIELD, "metadata.examples[0].say"),
        (package(schema=""), Reason.BAD_VALUE, "schema"),
        (package(schema="{}"), Reason.BAD_SCHEMA_URI, "schema.$id"),
        (package(schema="[]"), Reason.BAD_SCHEMA, "schema"),
        (package(rest="prompt: " + "x" * 65537 + "\n"), Reason.TOO_LARGE, "prompt"),
        (package(rest="tools: {}\n"), Reason.WRONG_TYPE, "tools"),
        (package(rest="tool_bindings: []\n"), Reason.WRONG_TYPE, "tool_bindings"),
        (package(rest="tool_bindings: {a: {type: x}}\n"), Reason.BAD_BINDING, "tool_bindings.a"),
    ],
)
def test_a_faulty_field_is_refused_at_its_place(data: bytes, reason: Reason, path: str) -> None:
    reading = read(data)
    assert reading.manifest is None
    errors = [(x.code, x.path) for x in reading.problems if x.severity is Severity.ERROR]
    assert (reason, path) in errors


def test_an_undeclared_permission_is_refused() -> None:
    tools = "tools: [{type: function, function: {name: state.delete, description: d}}]\n"
    (problem,) = problems(package(rest=tools))
    assert (problem.code, problem.severity) == (Reason.UNDECLARED_PERMISSION, Severity.ERROR)


def test_a_schema_written_as_yaml_gets_a_hint() -> None:
    data = package().replace(b"schema: |\n ", b"schema:\n ")
    errors = [x for x in problems(data) if x.severity is Severity.ERROR]
    assert [(x.code, x.path) for x in errors] == [(Reason.WRONG_TYPE, "schema")]
    assert "schema: |" in errors[0].hint


@pytest.mark.parametrize(
    ("data", "severity", "hint"),
    [
        (package("licence: MIT"), Severity.NOTE, "did you mean license?"),
        (package(rest="promt: x\n"), Severity.NOTE, "did you mean prompt?"),
        (package("domain: wether"), Severity.WARNING, "did you mean weather?"),
        (
            package(permissions='{require: ["state.creat"]}'),
            Severity.WARNING,
            "did you mean state.create?",
        ),
    ],
)
def test_a_near_miss_gets_a_hint(data: bytes, severity: Severity, hint: str) -> None:
    reading = read(data)
    assert reading.manifest is not None
    assert [(x.severity, x.hint) for x in reading.problems] == [(severity, hint)]


def test_an_unknown_domain_counts_as_other() -> None:
    assert manifest(package("domain: astrology")).domain == "other"


def test_an_example_of_no_tool_is_warned_about() -> None:
    (problem,) = problems(package("examples: [{say: a, tool: b}]"))
    assert (problem.severity, problem.path) == (Severity.WARNING, "metadata.examples[0].tool")


def test_a_proof_is_passed_over_beside_a_homepage_that_is_no_address() -> None:
    data = package("homepage: 'https://['\nproof: https://example.org/.well-known/capdex.json")
    assert {x.path: x.severity for x in problems(data)} == {
        "metadata.homepage": Severity.ERROR,
        "metadata.proof": Severity.WARNING,
    }


@pytest.mark.parametrize("value", ["", "~", "''", '" "'])
def test_an_empty_signature_is_none(value: str) -> None:
    assert manifest(package(f"signature: {value}")).signature is None


def test_an_empty_optional_field_is_noted_and_absent() -> None:
    data = package("summary: ''")
    assert manifest(data).summary is None
    assert [x.severity for x in problems(data)] == [Severity.NOTE]


def test_unknown_fields_are_kept_and_their_number_is_told() -> None:
    data = package(rest="".join(f"k{i}: {i}\n" for i in range(30)))
    assert manifest(data).document["k29"] == 29
    found = problems(data)
    assert len(found) == 21
    assert "10 more fields are unknown" in {x.message for x in found}


def test_a_fault_inside_the_schema_has_its_own_line() -> None:
    data = package(schema='{\n    "a": 1,\n    "b": nul\n  }')
    (problem,) = problems(data)
    lines = data.decode().split("\n")
    assert lines[problem.line - 1][problem.column - 1 :] == "nul"
    (quoted,) = problems(package().replace(f"|\n  {SCHEMA}".encode(), b"'[1,\n\n  nul]'"))
    assert (quoted.path, quoted.column) == ("schema", len("schema: ") + 1)


def test_all_problems_are_reported_at_once() -> None:
    data = package("tags: 1\nsummary: &a x\n\tb", name="1", id="x", schema="{", rest="tools: 1\n")
    data = data.replace(b"\n  \tb", b"")
    assert [(x.code, x.path) for x in problems(data)] == [
        (Reason.BAD_ID, "metadata.id"),
        (Reason.WRONG_TYPE, "metadata.name"),
        (Reason.WRONG_TYPE, "metadata.tags"),
        (Reason.YAML_FEATURE, "metadata.summary"),
        (Reason.BAD_SCHEMA, "schema"),
        (Reason.WRONG_TYPE, "tools"),
    ]


def placed(data: bytes) -> bool:
    lines = data.decode("utf-8", "replace").split("\n")
    return all(
        1 <= x.line <= len(lines) and 1 <= x.column <= len(lines[x.line - 1]) + 1
        for x in read(data).problems
    )


@given(st.binary())
def test_any_bytes_give_a_reading(data: bytes) -> None:
    reading = read(data)
    assert reading.manifest is None
    assert any(x.severity is Severity.ERROR for x in reading.problems)
    assert placed(data)


WORDS = ["  ", ": ", "- ", "&a ", "*a", "null", "state.create", "type", "$ref", "did:", "{x}", "<<"]
PIECES = st.sampled_from([*"\n{}[]\"'|#~1\\é😀\u202e\r\x00", *WORDS])


@settings(max_examples=300)
@given(st.sampled_from(EXAMPLES), st.data())
def test_a_mutated_example_gives_a_reading(path: Path, draw: st.DataObject) -> None:
    text = path.read_text("utf-8")
    for _ in range(draw.draw(st.integers(1, 4))):
        at = draw.draw(st.integers(0, len(text)))
        cut = draw.draw(st.integers(0, 12))
        text = text[:at] + draw.draw(PIECES) + text[at + cut :]
    data = text.encode()
    reading = read(data)
    failed = any(x.severity is Severity.ERROR for x in reading.problems)
    assert (reading.manifest is None) == failed
    assert placed(data)


ODD = st.sampled_from([None, True, 1, 1.5, "", "x", "state.create", [], [1], ["x"], {}, {"x": 1}])


@settings(max_examples=300)
@given(st.sampled_from(EXAMPLES), st.data())
def test_an_odd_value_anywhere_gives_a_reading(path: Path, draw: st.DataObject) -> None:
    document = manifest(path.read_bytes()).document
    at: Any = document
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = draw.draw(st.sampled_from(keys))
        inner = at[key]
        if not isinstance(inner, dict | list) or not inner or draw.draw(st.booleans()):
            at[key] = draw.draw(ODD)
            break
        at = inner
    data = json.dumps(document).encode()
    assert placed(data)


def test_a_fault_in_a_schema_that_is_folded_is_placed_at_the_section() -> None:
    """Lines that YAML joins are no lines of the text: where in them a fault is cannot be told."""
    data = package().replace(b"schema: |\n", b"schema: >\n").replace(b': "obj', b':\n  "obj"\n  ,"')
    (problem,) = [x for x in problems(data) if x.severity is Severity.ERROR]
    assert (problem.code, problem.path) == (Reason.BAD_SCHEMA, "schema")
    assert data.splitlines()[problem.line - 1].startswith(b"schema")


def test_extension_fields_are_kept_without_a_note_at_every_level() -> None:
    tool = (
        "tools:\n  - type: function\n    x-acme-owner: me\n    function: {name: a, description: b,"
        " x-acme-cost: {cents: 2}}\n"
        "tool_bindings:\n  a: {type: http_get, url: 'https://rain.dev/', x-acme-region: eu}\n"
    )
    data = package("x-acme-team: [one, two]", rest="x-acme-build: 7\nprompt: Do it.\n" + tool)
    assert problems(data) == []
    found = manifest(data)
    assert found.metadata["x-acme-team"] == ["one", "two"]
    assert compare(found, manifest(package())).required >= Step.PATCH


@pytest.mark.parametrize("name", ["x-team", "X-acme-team", "x-acme-Team", "x--team", "x_acme_team"])
def test_a_field_without_a_namespace_is_noted(name: str) -> None:
    [problem] = problems(package(f"{name}: 1"))
    assert (problem.code, problem.severity) == (Reason.UNKNOWN_FIELD, Severity.NOTE)
