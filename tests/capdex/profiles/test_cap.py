"""CAP manifests made of packages: those of the examples, and of one with references."""

from __future__ import annotations

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from capdex.errors import Code, InvalidInput
from capdex.ipld.cid import Cid
from capdex.manifest.manifest import Manifest, read
from capdex.profiles import cap
from tests.indexer import making

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.acp.yaml"))
REQUIRED = {
    *("capability_id", "version", "kind", "name", "description", "input_schema", "output_schema"),
    *("prompt_template", "resources", "required_permissions"),
}


def package(name: str) -> Manifest:
    return read((EXAMPLES[0].parent / f"{name}.acp.yaml").read_bytes()).require()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_gives_one_skill_and_a_tool_for_each_of_its_tools(path: Path) -> None:
    manifest = read(path.read_bytes()).require()
    made = list(cap.manifests(manifest))
    assert [x["kind"] for x in made] == ["skill", *["tool"] * len(manifest.tools)]
    assert len({(x["capability_id"], x["version"]) for x in made}) == len(made)
    for x in made:
        assert x.keys() >= REQUIRED
        Draft202012Validator.check_schema(x["input_schema"])
        assert "#/schema" not in str(x["input_schema"])
    named = [{key: x[key] for key in ("capability_id", "version")} for x in made]
    assert made[0]["tools"] == named[1:]


def test_a_skill_takes_a_message_and_carries_prompt_resources_and_permissions() -> None:
    skill = cap.skill(package("note"))
    assert skill["capability_id"] == "did:nuwa:cap:note"
    assert skill["version"] == "1.0.0"
    takes = Draft202012Validator(skill["input_schema"])
    assert [takes.is_valid(x) for x in ({"message": "note this"}, {}, {"message": 1})] == [
        True, True, False,
    ]  # fmt: skip
    assert skill["prompt_template"].startswith("You are Note Assistant.")
    assert [x["uri"] for x in skill["resources"]] == [
        "capdex://note/1.0.0/package",
        "capdex://note/1.0.0/schema",
    ]
    assert skill["required_permissions"] == ["state.create", "state.update", "state.query"]
    assert [x["capability_id"] for x in skill["tools"]] == [
        f"did:nuwa:cap:note#{tool.name}" for tool in package("note").tools
    ]


def test_a_skill_takes_the_placeholders_of_its_prompt_too() -> None:
    found = read(making.package_bytes(prompt="Say {{ greeting }} to {{name}}.")).require()
    taken = cap.skill(found)["input_schema"]["properties"]
    assert list(taken) == ["greeting", "name", "message"]
    assert taken["name"] == {"type": "string"}


def test_a_skill_without_a_prompt_has_a_manifest() -> None:
    skill = cap.skill(read(making.package_bytes(prompt=None)).require())
    assert skill["prompt_template"] is None
    assert list(skill["input_schema"]["properties"]) == ["message"]
    assert (len(skill["resources"]), skill["required_permissions"]) == (2, [])


def test_files_of_a_package_are_resources_with_their_size_and_address() -> None:
    found = read(making.package_bytes(files={"scripts/fill.py": b"print()"})).require()
    *own, file = cap.skill(found)["resources"]
    assert [x["name"] for x in own] == ["package", "schema"]
    assert file == {
        "uri": f"ipfs://{Cid.of(b'print()')}",
        "name": "scripts/fill.py",
        "mimeType": "text/plain",
        "size": 7,
    }


def test_the_schema_of_a_tool_can_be_used_without_the_package() -> None:
    found = package("note")
    tool = cap.tool_manifest(found, cap.find_tool(found, "state.create"))
    note = {"id": "1", "title": "t", "body": "b", "createdAt": "c", "updatedAt": "u"}
    takes = Draft202012Validator(tool["input_schema"])
    assert takes.is_valid({"schema_uri": "did:nuwa:state:note#v1", "object": note})
    assert not takes.is_valid({"schema_uri": "did:nuwa:state:note#v1", "object": {}})
    assert tool["required_permissions"] == ["state.create"]


def test_a_tool_has_the_output_schema_that_its_package_states() -> None:
    note = package("note")
    assert cap.tool_manifest(note, cap.find_tool(note, "state.create"))["output_schema"] is None
    stated = {"type": "object", "properties": {"note": {"$ref": "#/schema"}}}
    schema = cap.tool_manifest(note, note.tools[0]._replace(output_schema=stated))["output_schema"]
    gives = Draft202012Validator(schema)
    assert gives.is_valid({})
    assert not gives.is_valid({"note": {"title": "t"}})
    assert "#/schema" not in str(schema)


def test_no_manifest_says_how_a_tool_is_reached() -> None:
    fields = ("url", "service_uri", "target_did", "headers", "auth")
    shown = 0
    for path in EXAMPLES:
        manifest = read(path.read_bytes()).require()
        words = str(list(cap.manifests(manifest)))
        for binding in manifest.bindings.values():
            for told in (binding[name] for name in fields if name in binding):
                assert str(told) not in words, (path.name, told)
                shown += 1
    assert shown > len(EXAMPLES) / 2  # the examples do have bindings


def test_an_unknown_tool_is_not_found_and_the_known_ones_are_named() -> None:
    with pytest.raises(InvalidInput) as refusal:
        cap.find_tool(package("note"), "sing")
    assert refusal.value.code is Code.NOT_FOUND
    assert "fetch_web_content" in refusal.value.fix


def test_an_id_names_the_package_and_the_tool() -> None:
    assert cap.capability_id("note") == "did:nuwa:cap:note"
    assert cap.capability_id("note", "state.create") == "did:nuwa:cap:note#state.create"
