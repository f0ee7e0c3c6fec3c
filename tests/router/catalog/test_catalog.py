"""The catalogue: each id and version once, and the names by which people and models call them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capdex.errors import Code, InvalidInput
from capdex_router.catalog.catalog import MAX_SEARCHED_CHARS, MAX_TERMS, Catalog, Fixed, split
from capdex_router.model.capability import Capability, Owner
from capdex_router.model.refs import CapabilityRef


def capability(capability_id: str, version: str = "1.0.0") -> Capability:
    owner = Owner("package", capability_id.partition("#")[0], "aa")
    return Capability(CapabilityRef(capability_id, version), "tool", capability_id, "", {}, owner)


def catalog(*ids: str) -> Catalog:
    return Catalog([Fixed(capability(*split_one(text)) for text in ids)])


def split_one(text: str) -> tuple[str, str]:
    capability_id, version = split(text)
    return capability_id, version or "1.0.0"


NOW = "did:nuwa:cap:weather#now"


@pytest.mark.parametrize(
    "name",
    [NOW, "weather#now", "weather.now", "weather_now", "now", "Now ", "DID:nuwa:cap:weather#now",
     f"{NOW}@1.0.0", "did:nuwa:cap:weather@1.0.0#now"],
)  # fmt: skip
def test_a_capability_has_short_names(name: str) -> None:
    found = catalog(NOW, "did:nuwa:cap:note#add").find(name)
    assert found.ref == CapabilityRef(NOW, "1.0.0")


def test_an_exact_id_comes_before_short_names() -> None:
    assert catalog("now", NOW).find("now").ref.capability_id == "now"


def test_a_name_of_two_capabilities_is_ambiguous() -> None:
    with pytest.raises(InvalidInput) as refused:
        catalog(NOW, "did:nuwa:cap:tides#now").find("now")
    assert refused.value.code == Code.AMBIGUOUS
    assert refused.value.details == {"candidates": ["did:nuwa:cap:tides#now", NOW]}


@pytest.mark.parametrize("name", ["", "@", "#", "nothing", f"{NOW}@2.0.0", "x" * 10_000])
def test_what_is_not_there_is_not_found(name: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        catalog(NOW).find(name)
    assert refused.value.code == Code.NOT_FOUND


@pytest.mark.parametrize("name", ["weather#then", "did:nuwa:cap:weather@1.0.0#then"])
def test_a_tool_that_a_package_lacks_is_answered_with_those_that_it_has(name: str) -> None:
    with pytest.raises(InvalidInput, match="weather has no tool 'then'") as refused:
        catalog(NOW, "did:nuwa:cap:note#add").find(name)
    assert (refused.value.code, refused.value.fix) == (Code.NOT_FOUND, "it has weather#now")


@pytest.mark.parametrize("tool", ["", "#", "#then"])
def test_a_tool_that_a_mounted_server_lacks_is_answered_with_those_that_it_has(tool: str) -> None:
    with pytest.raises(InvalidInput, match="mcp:files has no tool '") as refused:
        catalog("mcp:files#read", "mcp:file#write").find(f"mcp:files{tool}")
    assert refused.value.fix == "it has mcp:files#read"


def test_two_versions_stand_side_by_side_and_the_highest_is_meant() -> None:
    found = catalog(f"{NOW}@1.9.0", f"{NOW}@1.10.0", f"{NOW}@1.10.0-rc.1")
    assert found.find("now").ref.version == "1.10.0"
    assert found.find("now@1.9.0").ref.version == "1.9.0"
    assert len(list(found.listed())) == 3
    assert [listed.ref.version for listed in found.latest()] == ["1.10.0"]


def test_of_two_with_one_id_and_version_the_first_counts() -> None:
    first = capability(NOW)
    source = Fixed([first, capability(NOW)])
    assert source.load(first.ref) is first
    assert len(source.listed()) == 1


def test_what_is_searched_of_a_tool_is_bounded() -> None:
    schema = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(500)}}
    tool = replace(capability(NOW), description="x " * 9_000, input_schema=schema)
    (listed,) = Fixed([tool]).listed()
    assert len(listed.description) == MAX_SEARCHED_CHARS
    assert len(listed.terms.split()) == MAX_TERMS


def test_what_a_source_puts_later_is_seen() -> None:
    source = Fixed()
    found = Catalog([source])
    before = found.revision
    assert list(found.listed()) == []
    source.put([capability(NOW)])
    assert found.find("now").ref.capability_id == NOW
    assert found.revision != before


IDS = st.tuples(st.sampled_from([NOW, "a#b", "a", "b"]), st.sampled_from(["1.0.0", "2.0.0"]))


@given(st.lists(st.lists(IDS, unique=True, max_size=8), max_size=3))
@settings(max_examples=50)
def test_each_id_and_version_is_listed_once(sources: Sequence[Sequence[tuple[str, str]]]) -> None:
    made = [[capability(*pair) for pair in source] for source in sources]
    found = Catalog(list(map(Fixed, made)))
    first = {one.ref: one for source in reversed(made) for one in source}
    refs = [listed.ref for listed in found.listed()]
    assert len(refs) == len(set(refs))
    assert set(refs) == {CapabilityRef(*pair) for source in sources for pair in source}
    for ref in refs:
        assert found.get(ref.capability_id, ref.version) is first[ref]


def test_a_short_name_is_given_where_it_means_one_capability() -> None:
    package, learned = "did:nuwa:cap:rg#search", "learned:rg#search"
    assert catalog(package).short_name(package) == "rg#search"
    assert [catalog(package, learned).short_name(x) for x in (package, learned)] == [
        package,
        learned,
    ]
