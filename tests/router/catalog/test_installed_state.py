"""The state verbs of installed packages, through the one pipeline, as a host calls them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from capdex.package import VerifiedPackage, verify
from capdex.registry.events import Announcement
from capdex_router.bindings.egress import Egress
from capdex_router.catalog.installed import packages
from capdex_router.home.directory import Home
from capdex_router.install.facts import locked
from capdex_router.install.fetch import Cache
from capdex_router.install.lock_store import LockStore
from capdex_router.invoke.invoke import Caller
from capdex_router.invoke.validation import Validation
from capdex_router.policy.grant_file import GrantFile
from capdex_router.policy.secrets import Secrets
from capdex_router.runtime import Runtime, open_runtime
from tests.indexer import making
from tests.router.simulated import Person, all_grants

ID = "did:nuwa:cap:note"
URI = "did:nuwa:state:note#v1"
SCHEMA = {
    "$id": URI,
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "title": {"type": "string"},
        "tags": {"type": "array", "x-crdt": "grow_only_set"},
    },
    "required": ["id", "title"],
}
CREATE = {
    "name": "state.create",
    "description": "Keep a note.",
    "parameters": {
        "type": "object",
        "properties": {"schema_uri": {"enum": [URI]}, "object": {"type": "object"}},
        "required": ["object"],
    },
}


def package(name: str = "note", **metadata: Any) -> VerifiedPackage:
    document = {
        "metadata": {
            "id": f"did:nuwa:cap:{name}@1.0.0",
            "name": name,
            "description": f"What {name} does.",
            "memory_scope": "sc:note",
            "permissions": {"require": ["state.create", "state.query", "state.delete"]},
            **metadata,
        },
        "schema": json.dumps(SCHEMA | {"$id": f"did:nuwa:state:{name}#v1"}),
        "prompt": "Keep notes.",
        "tools": [{"type": "function", "function": CREATE}] if name == "note" else [],
    }
    data = making.signed(yaml.safe_dump(document, sort_keys=False))
    told = Announcement(
        making.CHAIN_ID, making.checksum_address(making.PUBLISHER), f"did:nuwa:cap:{name}@1.0.0",
        "1.0.0", making.Cid.of(data).text, making.Cid.of(data).digest,
    )  # fmt: skip
    return verify(told, data)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with two packages of the same scope that a person agreed to install."""
    made = Home.open(tmp_path / "router")
    rights = GrantFile(made.grants)
    for found in (package(), package("other")):
        Cache(made.blocks).put([found.data])
        announced = found.announcement
        chain = {"chain_id": announced.chain_id, "publisher": announced.publisher}
        store = LockStore(made.lock_file)
        store.write(store.read().plus([locked(found, "", chain)]))
        rights.grant(all_grants(found))
    return made


async def call(runtime: Runtime, name: str, arguments: Any, person: Person | None = None) -> Any:
    caller = Caller(person) if person else Caller()
    capability_id = name if ":" in name else f"{ID}#{name}"
    return (await runtime.invoker.invoke(capability_id, None, arguments, caller)).to_json()


async def test_an_installed_package_keeps_and_finds_its_objects(home: Home) -> None:
    secrets = Secrets(home.path / "secrets.json")
    async with (
        packages(home, GrantFile(home.grants), secrets, Egress(), Validation().check) as source,
        open_runtime(home.path, [source], hidden=secrets) as runtime,
    ):
        listed = {x.ref.capability_id.partition("#")[2] for x in source.listed()}
        assert listed == {"", "state.create", "state.query", "state.delete"}, "no state.update"
        person = Person()
        made = await call(runtime, "state.create", {"object": {"id": "a", "title": "x"}}, person)
        assert made["output"] == {"id": "a"}
        bad = await call(runtime, "state.create", {"object": {"id": "b"}}, person)
        assert bad["error"]["code"] == "INVALID_INPUT"
        queried = await call(runtime, "state.query", {"filter": {"title": "x"}}, person)
        assert queried["output"]["objects"] == [{"id": "a", "object": {"id": "a", "title": "x"}}]
        foreign = await call(runtime, "state.query", {"filter": {}, "schema_uri": "x"}, person)
        assert foreign["error"]["code"] in ("INVALID_INPUT", "PERMISSION_DENIED")
        other = await call(runtime, "did:nuwa:cap:other#state.query", {}, person)
        assert other["output"]["objects"] == [], "the same scope, another package"
        scope = {"object": {"id": "b", "title": "x"}, "memory_scope": "sc:other"}
        denied = await call(runtime, "state.create", scope, person)
        assert denied["error"]["code"] == "PERMISSION_DENIED"
        assert (await call(runtime, "state.update", {}, person))["error"]["code"] == "NOT_FOUND"
        asked = len(person.asked)
        hard = {"id": "a", "mode": "hard"}
        refused = await call(runtime, "state.delete", hard)
        assert refused["error"]["reason"] == "CONFIRM_NEEDED"
        assert (await call(runtime, "state.delete", hard, person))["ok"]
        assert len(person.asked) == asked + 1
        assert "for good" in person.lines
        assert (await call(runtime, "state.query", {}, person))["output"]["objects"] == []
    assert home.state.exists()


@pytest.mark.parametrize(
    "query", [{"filter": {}}, {"where": {}}, {"query": {"from": URI, "where": {}}}]
)
async def test_a_verb_that_no_package_describes_takes_all_its_words(home: Home, query: Any) -> None:
    secrets = Secrets(home.path / "secrets.json")
    async with (
        packages(home, GrantFile(home.grants), secrets, Egress(), Validation().check) as source,
        open_runtime(home.path, [source], hidden=secrets) as runtime,
    ):
        found = await call(runtime, "state.query", query, Person())
        assert found["output"] == {"objects": [], "cursor": None}
        unknown = await call(runtime, "state.query", {"sort": ["title"], **query}, Person())
        assert unknown["error"]["reason"] == "INVALID_INPUT"
        assert "order" in unknown["error"]["details"]["fix"], unknown
        scope = {"memory_scope": "sc:other", **query}
        other = await call(runtime, "state.query", scope, Person())
        assert other["error"]["code"] == "PERMISSION_DENIED"
