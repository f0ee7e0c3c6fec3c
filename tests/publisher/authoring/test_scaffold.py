"""A scaffold reads back what it was given, whatever that was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import InvalidInput
from capdex.manifest import manifest
from capdex.yaml.characters import forbidden
from capdex_publisher.authoring.scaffold import PackageKind, scaffold

names = st.from_regex(r"[a-z][a-z0-9]{1,9}(-[a-z0-9]{1,9}){0,4}", fullmatch=True)
characters = st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"])


def printable(most):
    return st.text(characters, min_size=1, max_size=most).filter(
        lambda text: text.strip() and not any(forbidden(text))
    )


def read(text):
    reading = manifest.read(text.encode())
    assert reading.problems == ()
    assert reading.manifest is not None
    return reading.manifest


@given(name=names, title=printable(60), description=printable(300), keyword=printable(30))
def test_what_goes_in_reads_back_the_same(name, title, description, keyword):
    try:
        text = scaffold(name, title=title, description=description, keywords=[keyword])
    except InvalidInput as refusal:
        # A field may refuse a value, but then by name, and never by writing another.
        assert refusal.details  # noqa: PT017
        return
    package = read(text)
    assert package.uri.name == name
    assert (package.title, package.description) == (title, description)
    assert [trigger.value for trigger in package.triggers] == [keyword]


@pytest.mark.parametrize(
    "value",
    [
        'quoted "twice"',
        "a: b # no comment",
        "- item",
        "{curly} [square] %percent @at `tick`",
        "back\\slash \\n",
        "no",
        "010",
        "1:30",
        "null",
        "'single'",
        "*alias &anchor !tag",
        "日本語の説明 👩‍💻",
        " leading and trailing ",
    ],
)
def test_what_yaml_would_read_otherwise_stays_text(value):
    package = read(scaffold("note", title=value, description=value, summary=value))
    assert (package.title, package.description, package.summary) == (value, value, value)


@pytest.mark.parametrize("kind", list(PackageKind))
def test_every_kind_is_valid_without_any_value(kind):
    package = read(scaffold("city-weather", kind=kind))
    assert package.title == "City Weather"
    assert str(package.uri) == "did:nuwa:cap:city-weather@0.1.0"
    assert [tool.name for tool in package.tools] == (
        ["get_answer"] if kind is PackageKind.TOOL else []
    )
    assert package.triggers
    assert package.prompt


def test_optional_fields_are_written():
    package = read(
        scaffold(
            "note",
            version="1.0.0-rc.1",
            summary="short",
            tags=["a", "b"],
            domain="productivity",
            license="MIT",
            homepage="https://example.com/",
            repository="https://example.com/git",
        )
    )
    assert package.summary == "short"
    assert package.tags == ("a", "b")
    assert package.license == "MIT"
    assert (package.homepage, package.repository) == (
        "https://example.com/",
        "https://example.com/git",
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "Note"},
        {"version": "1.0"},
        {"version": "1.0.0+build"},
        {"summary": "x" * 500},
        {"title": "two\nlines"},
        {"title": "bidi \u202e trick"},
        {"description": "\ud800"},
        {"homepage": "javascript:alert(1)"},
        {"domain": "no such domain"},
    ],
)
def test_a_value_that_does_not_fit_is_refused(wrong):
    with pytest.raises(InvalidInput):
        scaffold(**({"name": "note"} | wrong))
