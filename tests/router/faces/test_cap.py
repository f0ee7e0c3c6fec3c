"""CAP's manifests and references: nothing in them says how a capability is reached."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import orjson
import pytest

from capdex.errors import CapdexError, InvalidInput
from capdex.uri import PREFIX
from capdex_router.catalog.catalog import Catalog
from capdex_router.catalog.installed import Installed
from capdex_router.faces.cap import Cap, read_ref
from capdex_router.invoke.invoke import Caller
from capdex_router.model.refs import CapabilityRef
from tests.indexer import making
from tests.router.faces.demo import actions
from tests.router.simulated import Machine, Person, SimulatedNode, uri

MANIFEST = {
    "type": "object",
    "required": [
        "capability_id", "version", "kind", "name", "description", "input_schema",
        "output_schema", "prompt_template", "resources", "required_permissions",
    ],
    "properties": {
        "kind": {"enum": ["tool", "skill"]},
        "input_schema": {"type": "object"},
        "output_schema": {"type": ["object", "null"]},
    },
}  # fmt: skip
TRANSPORT = ("http", "https:", "stdio", "sse", "url", "endpoint", "command", "socket", "argv")


def cap(path: Path) -> Cap:
    found = actions(path)
    return Cap(found.catalog, found.invoker)


async def test_every_manifest_has_its_fields_and_no_transport(tmp_path: Path) -> None:
    found = await cap(tmp_path).methods["capability.list"]({}, Caller())
    page = found.pop("capabilities")
    assert found == {}
    assert {manifest["kind"] for manifest in page} == {"tool", "skill"}
    for manifest in page:
        jsonschema.validate(manifest, MANIFEST)
        text = orjson.dumps(manifest).decode().casefold()
        assert [word for word in TRANSPORT if word in text] == []


async def test_a_package_whose_bytes_are_gone_hides_no_other(
    machine: Callable[..., Machine], node: SimulatedNode, person: Person, tmp_path: Path
) -> None:
    here = machine(node)
    for name in ("weather", "tides"):
        node.publish(making.package_bytes(name, "1.0.0"))
        await here.installer.install(uri(name), person)
    catalog = Catalog([Installed(here.home, here.rights, lambda package, tool: None)])
    assert len(list(catalog.listed())) == 2
    cid = here.installer.entry("tides").cid
    next(here.home.blocks.rglob(f"{cid}*")).unlink()
    found = await Cap(catalog, actions(tmp_path).invoker).methods["capability.list"]({}, Caller())
    shown = {manifest["capability_id"] for manifest in found["capabilities"]}
    assert shown == {f"{PREFIX}weather"}
    assert [x["capability_id"] for x in found["failed"]] == [f"{PREFIX}tides"]
    assert {x["error"]["code"] for x in found["failed"]} == {"IPFS_UNAVAILABLE"}


def test_a_reference_has_two_fields() -> None:
    assert CapabilityRef("a", "1.0.0").to_json() == {"capability_id": "a", "version": "1.0.0"}


@pytest.mark.parametrize("value", [None, [], {}, {"capability_id": "a"}, {"version": "1"}, "a"])
def test_what_is_no_reference_is_invalid_input(value: Any) -> None:
    with pytest.raises(InvalidInput):
        read_ref(value)


async def test_invoke_answers_a_result_whatever_comes(tmp_path: Path) -> None:
    invoke = cap(tmp_path).methods["capability.invoke"]
    for params in ({}, {"ref": 3}, {"ref": {"capability_id": "a", "version": "1.0.0"}}):
        result = await invoke(params, Caller())
        assert set(result) == {"ok", "output", "error", "duration_ms"}
        assert result["ok"] is False


async def test_describe_of_an_unknown_version_is_not_found(tmp_path: Path) -> None:
    describe = cap(tmp_path).methods["capability.describe"]
    with pytest.raises(CapdexError) as refused:
        await describe({"capability_id": "did:nuwa:cap:note", "version": "9.0.0"}, Caller())
    assert refused.value.kind.cap == "NOT_FOUND"
