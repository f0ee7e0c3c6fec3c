"""The four verbs: what they touch, the token they need, and what they answer."""

# ruff: noqa: E501 - tables

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from capdex.errors import Code, InvalidInput, Refused
from capdex.json import Json
from capdex.manifest.tools import BUILT_IN
from capdex_router.invoke.validation import Validation
from capdex_router.model.capability import Owner
from capdex_router.model.requests import StateRequest
from capdex_router.policy.tokens import Token, carrying
from capdex_router.state.store import ObjectStore
from capdex_router.state.strategies import Model, model
from capdex_router.state.sync import SyncEntry, entries, merge_entries
from capdex_router.state.tools import StateTool

URI = "did:nuwa:state:note#v1"
SCHEMA: Json = {
    "$id": URI,
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "title": {"type": "string", "maxLength": 20},
        "tags": {"type": "array", "maxItems": 2, "x-crdt": "grow_only_set"},
        "mood": {"type": "string", "x-crdt": "mv_register"},
        "visits": {"type": "integer", "x-crdt": "counter"},
    },
    "required": ["id", "title"],
    "additionalProperties": False,
}
OWNER = Owner("package", "did:nuwa:cap:note", "aa" * 32, "sc:note", BUILT_IN)
REQUESTS = frozenset(
    StateRequest(verb, "sc:note", URI, hard) for verb in BUILT_IN for hard in (False, True)
)
TOKEN = Token(OWNER.digest, REQUESTS, float("inf"))


class Note:
    """The tools of one package over one store; each call has a token for it."""

    def __init__(self, path: Path, owner: Owner = OWNER, found: Model | None = None) -> None:
        self.store = ObjectStore(path)
        check = Validation().check
        used = found or model(URI, SCHEMA)
        self.tools = {verb: StateTool(verb, owner, used, self.store, check) for verb in BUILT_IN}
        self.token: Token | None = replace(TOKEN, package=owner.digest)

    async def __call__(self, verb: str, **arguments: Any) -> Json:
        with carrying(self.token):
            return await self.tools[f"state.{verb}"].run(arguments, timeout_s=5.0)

    async def objects(self, **query: Any) -> list[Json]:
        return list((await self("query", **query))["objects"])


@pytest.fixture
def note(tmp_path: Path) -> Iterator[Note]:
    made = Note(tmp_path / "state.sqlite")
    yield made
    made.store.close()


async def test_an_object_lives_from_create_to_delete(note: Note) -> None:
    made = await note("create", schema_uri=URI, object={"title": "one", "visits": 1})
    id_ = made["id"]
    assert len(id_) == 36
    changed = await note("update", id=id_, patch=[{"op": "add", "path": "/tags", "value": ["b"]}])
    assert changed == {
        "id": id_,
        "object": {"id": id_, "tags": ["b"], "title": "one", "visits": 1},
    }
    await note("update", id=id_, patch={"$inc": {"visits": 2}, "$push": {"tags": "a"}})
    expected = {"id": id_, "tags": ["a", "b"], "title": "one", "visits": 3}
    for query in (
        {"filter": {"tags": {"$contains": "a"}}},
        {"where": {"visits": {"$gte": 3}}},
        {"query": {"from": URI, "where": {"title": "one"}, "order": [{"field": "visits"}]}},
        {},
    ):
        assert await note.objects(**query) == [{"id": id_, "object": expected}]
    shown = await note.objects(query={"select": ["title"]})
    assert shown == [{"id": id_, "object": {"title": "one"}}]
    assert await note("delete", id=id_) == {"id": id_, "deleted": "soft"}
    assert await note("delete", id=id_, mode="hard") == {"id": id_, "deleted": "hard"}
    assert await note.objects() == []


def test_what_a_call_touches_is_stated_before_it_runs(note: Note) -> None:
    requests = note.tools["state.delete"].requests({"id": "a", "mode": "hard"})
    assert requests == [StateRequest("state.delete", "sc:note", URI, hard=True)]
    soft = note.tools["state.delete"].requests({"id": "a"})
    assert soft == [StateRequest("state.delete", "sc:note", URI)]
    other = note.tools["state.query"].requests({"memory_scope": "sc:other"})
    assert other == [StateRequest("state.query", "sc:other", URI)], "which policy then refuses"


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("create", {}), ("create", {"object": []}), ("create", {"object": {"title": 1}}),
        ("create", {"object": {"title": "x", "more": 1}}), ("create", {"object": {"id": "", "title": "x"}}),
        ("create", {"object": {"id": 5, "title": "x"}}), ("create", {"object": {"title": "x", "id": "y" * 600}}),
        ("create", {"object": {"title": "x" * 21}}), ("create", {"thing": 1}),
        ("update", {"id": "a", "patch": "x"}), ("update", {"id": "none", "patch": []}),
        ("update", {"id": "a", "patch": [{"op": "replace", "path": "", "value": []}]}),
        ("update", {"id": "a", "patch": [{"op": "replace", "path": "/id", "value": "b"}]}),
        ("update", {"id": "a", "patch": [{"op": "remove", "path": "/title"}]}),
        ("update", {"id": "a", "patch": [{"op": "replace", "path": "/tags", "value": []}]}),
        ("update", {"id": "a", "patch": {"$inc": {"title": 1}}}),
        ("update", {"id": "a", "patch": [{"op": "copy", "from": "", "path": "/x"}] * 64}),
        ("update", {"id": "a", "patch": [{"op": "add", "path": "/a~1b", "value": 1}]}),
        ("update", {"id": "a", "patch": [{"op": "add", "path": "/__proto__", "value": 1}]}),
        ("query", {"where": {"$where": "1"}}), ("query", {"query": {}, "where": {}}),
        ("query", {"query": []}), ("query", {"where": {"title": {"$regex": "("}}}),
        ("delete", {"id": "a", "mode": "soon"}), ("delete", {}), ("delete", {"id": 1}),
        ("delete", {"id": "a", "id2": 1}),
    ],
)  # fmt: skip
async def test_bad_arguments_change_nothing(note: Note, verb: str, arguments: Json) -> None:
    await note("create", object={"id": "a", "title": "one", "tags": ["t"]})
    before = await note.objects()
    with pytest.raises(InvalidInput):
        await note(verb, **arguments)
    assert await note.objects() == before


@pytest.mark.parametrize(
    "changes",
    [
        {"expires": time.time() - 1},
        {"package": "bb" * 32},
        {"requests": frozenset({StateRequest("state.create", "sc:other", URI)})},
        {"requests": frozenset({StateRequest("state.query", "sc:note", URI)})},
        {"requests": frozenset({StateRequest("state.create", "sc:note", f"{URI}.1")})},
        {"requests": frozenset()},
    ],
)
async def test_a_token_for_something_else_is_refused(note: Note, changes: Json) -> None:
    note.token = replace(TOKEN, **changes)
    with pytest.raises(Refused) as caught:
        await note("create", object={"id": "a", "title": "x"})
    assert caught.value.code is Code.PERMISSION_DENIED


async def test_without_a_token_nothing_is_read(note: Note) -> None:
    note.token = None
    with pytest.raises(Refused):
        await note("query")


@pytest.mark.parametrize(
    "arguments",
    [
        {"memory_scope": "sc:other"},
        {"scope": "sc:other"},
        {"memory_scope": None},
        {"schema_uri": "did:nuwa:state:other#v1"},
        {"query": {"from": "did:nuwa:state:other#v1"}},
        {"schema_uri": "did:nuwa:state:other#v1", "query": {"from": URI}},
    ],
)
async def test_another_scope_or_schema_is_refused(note: Note, arguments: Json) -> None:
    for scope in ("sc:note", "sc:other"):  # not even with a token for it
        uris = (URI, "did:nuwa:state:other#v1")
        wanted = frozenset(StateRequest("state.query", scope, uri) for uri in uris)
        note.token = replace(TOKEN, requests=wanted)
        with pytest.raises(Refused) as caught:
            await note("query", **arguments)
        assert caught.value.code is Code.PERMISSION_DENIED


async def test_a_package_without_a_scope_keeps_nothing(tmp_path: Path) -> None:
    owner = Owner("package", "did:nuwa:cap:note", "aa" * 32, None, BUILT_IN)
    note = Note(tmp_path / "state.sqlite", owner)
    with pytest.raises(Refused):
        await note("query")
    note.store.close()


async def test_the_same_scope_of_another_package_is_another_one(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    first = Note(path)
    other = Note(path, Owner("package", "did:nuwa:cap:other", "bb" * 32, "sc:note", BUILT_IN))
    await first("create", object={"id": "a", "title": "mine"})
    assert await other.objects() == []
    with pytest.raises(InvalidInput, match="no object"):
        await other("delete", id="a", mode="hard")
    first.store.close()
    other.store.close()


async def test_a_merge_that_breaks_the_schema_is_served_as_not_valid(tmp_path: Path) -> None:
    here, there = Note(tmp_path / "a.sqlite"), Note(tmp_path / "b.sqlite")
    await here("create", object={"id": "a", "title": "x", "tags": ["1"], "mood": "good"})
    merge_entries(there.store, OWNER.name, list(entries(here.store, OWNER.name)))
    for side, tag in ((here, "2"), (there, "3")):
        patch = [{"op": "add", "path": "/tags/-", "value": tag},
                 {"op": "replace", "path": "/mood", "value": tag}]  # fmt: skip
        await side("update", id="a", patch=patch)
    merge_entries(here.store, OWNER.name, list(entries(there.store, OWNER.name)))
    [found] = await here.objects()
    assert found["valid"] is False, "three tags, where the schema allows two"
    assert found["object"]["tags"] == ["1", "2", "3"]
    assert sorted(found["conflicts"]["mood"]) == ["2", "3"]
    with pytest.raises(InvalidInput, match="breaks the schema"):
        await here("update", id="a", patch=[{"op": "replace", "path": "/title", "value": "y"}])
    here.store.close()
    there.store.close()


async def test_an_entry_without_a_model_is_merged_before_its_package_runs(tmp_path: Path) -> None:
    here, there = Note(tmp_path / "a.sqlite"), Note(tmp_path / "b.sqlite")
    await here("create", object={"id": "a", "title": "x", "tags": ["1"], "visits": 2})
    found: list[SyncEntry] = list(entries(here.store, OWNER.name))
    merge_entries(there.store, OWNER.name, found)
    assert await there.objects() == await here.objects()
    here.store.close()
    there.store.close()
