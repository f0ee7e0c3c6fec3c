"""Effects of tools: what a package states counts, else what the kind of the tool implies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from capdex.manifest.manifest import Effects, Manifest, effects, read

FILE = """\
metadata: {{id: did:nuwa:cap:note@1.0.0, name: Note, description: Notes.,
  permissions: {{require: [state.create, state.query, state.delete]}}}}
schema: |
  {{"$id": "did:nuwa:state:note#v1"}}
tools:
  - {{type: function, function: {{name: {name}, description: Does it., annotations: {stated}}}}}
tool_bindings: {bindings}
"""
BINDINGS = {
    "http_get": "{look: {type: http_get, url: 'https://example.com/'}}",
    "http_post": "{look: {type: http_post, url: 'https://example.com/'}}",
}


def found(kind: str, stated: str = "null") -> Effects:
    name, bindings = (kind, "{}") if kind.startswith("state.") else ("look", BINDINGS[kind])
    file = FILE.format(name=name, stated=stated, bindings=bindings)
    manifest = read(file.encode()).require()
    return effects(manifest, manifest.tools[0])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("http_get", (True, False, True)),
        ("http_post", (False, True, False)),
        ("state.create", (False, False, False)),
        ("state.query", (True, False, True)),
        ("state.delete", (False, True, False)),
    ],
)
def test_where_nothing_is_stated_the_kind_counts(kind: str, expected: Any) -> None:
    assert found(kind) == expected


@pytest.mark.parametrize(
    ("kind", "stated", "expected"),
    [
        ("http_post", "{read_only: true}", (True, False, True)),
        ("http_post", "{destructive: false}", (False, False, False)),
        ("http_post", "{idempotent: true}", (False, True, True)),
        ("http_get", "{read_only: false}", (False, True, False)),
        ("http_get", "{destructive: true}", (False, True, False)),
        ("http_get", "{read_only: null}", (True, False, True)),
        ("state.delete", "{read_only: true}", (False, True, False)),
    ],
)
def test_what_is_stated_counts_but_not_of_a_built_in_tool(
    kind: str, stated: str, expected: Any
) -> None:
    assert found(kind, stated) == expected


def test_a_tool_that_nothing_runs_is_taken_for_destructive() -> None:
    file = FILE.format(name="look", stated="null", bindings="{}")
    manifest = read(file.encode()).require()
    assert effects(manifest, manifest.tools[0]) == Effects()


@pytest.mark.parametrize(
    "path",
    sorted((Path(__file__).parents[3] / "examples").glob("*.acp.yaml")),
    ids=lambda path: path.name,
)
def test_no_tool_is_read_only_and_destructive(path: Path) -> None:
    manifest: Manifest = read(path.read_bytes()).require()
    for tool in manifest.tools:
        stated = effects(manifest, tool)
        assert not (stated.read_only and stated.destructive)
