"""Lines that nobody edited, and names that are required and not there."""

from __future__ import annotations

import pytest

from capdex.errors import InvalidInput
from capdex.ipld.cid import Cid
from capdex.manifest.manifest import read
from capdex.problems import Reason, Severity
from capdex_publisher.authoring.lint import lint, refuse_mistakes
from capdex_publisher.authoring.scaffold import PackageKind, scaffold
from capdex_publisher.authoring.validate import PackageFile, validate


def codes(text: str) -> list[tuple[Reason, str, int]]:
    return [(x.code, x.path, x.line) for x in lint(read(text.encode()))]


def test_each_line_of_the_template_is_named_with_its_place() -> None:
    text = scaffold("tea")
    found = codes(text)
    lines = text.splitlines()
    assert [(code, path) for code, path, _ in found] == [
        (Reason.UNEDITED, "metadata.description"),
        (Reason.UNEDITED, "tools[0].function.description"),
        (Reason.UNEDITED, "tool_bindings.get_answer.url"),
    ]
    assert [lines[number - 1].split(":")[0].strip() for _, _, number in found] == [
        "description",
        "description",
        "url",
    ]


def test_what_was_edited_is_not_named() -> None:
    assert codes(scaffold("tea", description="Tells.", kind=PackageKind.PROMPT)) == []
    edited = scaffold("tea", description="Tells.").replace("api.example.com", "api.tea.dev")
    edited = edited.replace("What the tool gives back, and when to call it.", "Tells the time.")
    assert codes(edited) == []


@pytest.mark.parametrize("host", ["example.com", "EXAMPLE.org", "a.b.example.net"])
def test_every_example_host_counts(host: str) -> None:
    text = scaffold("tea", description="Tells.").replace("api.example.com", host)
    assert (Reason.UNEDITED, "tool_bindings.get_answer.url") in [x[:2] for x in codes(text)]


def test_validate_warns_and_publish_refuses() -> None:
    data = scaffold("tea").encode()
    validation = validate(PackageFile("tea.acp.yaml", data))
    assert validation.valid
    warned = [x for x in validation.problems if x.code is Reason.UNEDITED]
    assert {x.severity for x in warned} == {Severity.WARNING}
    with pytest.raises(InvalidInput, match="lines of the template that are not edited") as told:
        refuse_mistakes(lint(read(data)))
    assert "metadata.description: " in told.value.why
    assert "(and 2 more)" in told.value.why
    assert told.value.details is not None
    assert told.value.details["reason"] == "UNEDITED"
    text = scaffold("tea", description="T.", kind=PackageKind.PROMPT)
    refuse_mistakes(lint(read(text.encode())))


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("required: [question]", "required: [qestion]", "tools[0].function.parameters.required"),
        ('"properties": {}', '"required": ["city"], "properties": {}', "schema"),
        (
            "required: [question]",
            "$defs: {day: {type: object, required: [a], properties: {b: {}}}}",
            "tools[0].function.parameters.$defs.day.required",
        ),
    ],
)
def test_a_required_name_without_a_property_is_a_warning(old: str, new: str, path: str) -> None:
    found = codes(scaffold("tea").replace(old, new))
    assert [x for code, x, _ in found if code is Reason.UNKNOWN_REQUIRED] == [path]


@pytest.mark.parametrize(
    "new",
    [
        "allOf: [{properties: {a: {}}}], required: [a]",
        "patternProperties: {'^x': {}}, required: [xa]",
        "properties: {required: {type: object}}",
        "default: {required: [a]}",
        "properties: {a: {}, b: {}}, not: {required: [a, b]}",
        "properties: {a: {}}, if: {required: [a]}, then: {required: [b]}",
        "properties: {a: {}}, dependentSchemas: {a: {required: [b]}}",
        "properties: {o: {properties: {a: {}, b: {}}, anyOf: [{required: [a]}, {required: [b]}]}}",
    ],
)
def test_a_property_that_another_place_describes_is_not_missing(new: str) -> None:
    text = scaffold("tea").replace(
        "        type: object\n        properties:\n"
        '          question: {type: string, description: "What is asked"}\n'
        "        required: [question]\n",
        f"        {{type: object, {new}}}\n".replace("        {", " {", 0),
    )
    reading = read(text.encode())
    assert reading.manifest is not None
    assert [x for x in codes(text) if x[0] is Reason.UNKNOWN_REQUIRED] == []


SELF = "{$ref: '#/$defs/a'}"
MANY = ", ".join(f"p{i}: {{type: string, enum: [a]}}" for i in range(600))


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (f"        properties: {{{MANY}}}", "too large"),
        (f"        anyOf: [{SELF}]\n        $defs: {{a: {{anyOf: [{SELF}]}}}}", "too complex"),
    ],
)
def test_a_schema_that_no_router_uses_is_named(lines: str, why: str) -> None:
    before, _, after = scaffold("tea").partition("        properties:\n")
    data = f"{before}{lines}\n{after.partition('[question]')[2].lstrip()}".encode()
    validation = validate(PackageFile("tea.acp.yaml", data))
    assert validation.valid
    (found,) = [x for x in validation.problems if x.code is Reason.TOO_LARGE]
    assert (found.path, found.severity) == ("tools[0].function.parameters", Severity.WARNING)
    assert why in found.message


@pytest.mark.parametrize("path", ["a/../b", "%2e%2E/b", "a/.;x/b"])
def test_a_url_that_no_router_calls_is_an_error_of_its_author(path: str) -> None:
    data = scaffold("tea").replace("example.com/tea", f"tea.dev/{path}").encode()
    validation = validate(PackageFile("tea.acp.yaml", data))
    assert not validation.valid
    assert read(data).manifest is not None  # to nodes it is a package
    (found,) = [x for x in validation.problems if x.code is Reason.BAD_BINDING]
    assert (found.path, found.severity) == ("tool_bindings.get_answer.url", Severity.ERROR)
    with pytest.raises(InvalidInput, match="what nobody can use") as told:
        refuse_mistakes(lint(read(data)))
    assert "no router calls such a URL" in told.value.why
    assert told.value.fix == found.hint == "write the path that it leads to"


def test_a_file_that_no_folder_of_a_skill_takes_is_an_error_of_its_author() -> None:
    cid = "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy"
    sha256 = Cid.parse(cid).digest.hex()
    text = scaffold("tea", description="Tells.", kind=PackageKind.PROMPT)
    for path, count in (("Skill.md/a.txt", 1), ("a/SKILL.md", 0)):
        file = f"path: {path}, cid: {cid}, sha256: {sha256}, size: 1, media_type: text/plain"
        problems = lint(read(f"{text}resources:\n  - {{{file}}}\n".encode()))
        found = [x.code for x in problems if x.severity is Severity.ERROR]
        assert found == [Reason.BAD_RESOURCE] * count


def test_state_verbs_without_a_scope_to_keep_objects_in_are_named() -> None:
    text = scaffold("tea", description="Tells.", kind=PackageKind.PROMPT)
    asked = text.replace("require: []", 'require: ["state.query", "mail.send"]')
    assert codes(asked) == []
    (found,) = lint(read(asked.replace("  memory_scope: sc:tea\n", "").encode()))
    assert (found.code, found.path) == (Reason.MISSING_FIELD, "metadata.memory_scope")
    assert found.message == "without it no router allows state.query"
    assert found.severity is Severity.WARNING
