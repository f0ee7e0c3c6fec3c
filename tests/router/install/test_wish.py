"""A wish in words: names first, one good hit, or a list; never silently the wrong one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from capdex.errors import Code, InvalidInput, UsageError
from capdex_router.home.config import Config, NodeAddress
from capdex_router.install.resolve import NodeHit
from capdex_router.install.wish import candidates, choose, pick
from tests.indexer import making
from tests.router.simulated import Machine, SimulatedNode, weather

WEATHER = NodeHit("did:nuwa:cap:weather@1.0.0", "Weather", "Tells the weather.")
NORWAY = NodeHit("did:nuwa:cap:yr-norway@2.0.0", "Weather in Norwegian", "Yr.")


async def test_names_and_uris_are_not_searched_for() -> None:
    for text in ("weather", "did:nuwa:cap:weather", " weather@^1.2 ", "weather@>=1 <2"):
        assert (await choose(text, Config())).name == "weather"


@pytest.mark.parametrize(
    "text",
    [
        *("Weather@1", "did:nuwa:cap:Weather", "weather@banana", "weather.acp.yaml"),
        *("./weather", "../weather", "https://example.org/weather"),
    ],
)
async def test_a_wrong_name_is_not_taken_for_a_wish(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        await choose(text, Config())
    assert caught.value.code is Code.INVALID_INPUT


@pytest.mark.parametrize(
    "text", ["weather#now", "did:nuwa:cap:weather#now", "weather@1.0.0#now", "weather#now@1.0.0"]
)
async def test_the_name_of_a_tool_leads_to_its_package(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"#now.* names a tool") as caught:
        await choose(text, Config())
    shown = caught.value.fix.removeprefix("leave it out: ")
    assert (await choose(shown, Config())).name == "weather"


async def test_a_wish_with_a_number_sign_is_a_wish(
    machine: Callable[..., Machine], node: SimulatedNode
) -> None:
    node.publish(weather())
    config = machine(node).installer.config
    assert (await choose("weather in c#", config)).name == "weather"


@pytest.mark.parametrize("nodes", [(), (NodeAddress("http://127.0.0.1:1/mcp", ""),)])
async def test_without_a_node_that_gives_packages_a_wish_names_the_setting(
    nodes: tuple[NodeAddress, ...],
) -> None:
    with pytest.raises(UsageError) as caught:
        await choose("the weather please", Config(nodes))
    assert caught.value.code is Code.CONFIG
    assert "CAPDEX_NODE_URL" in caught.value.fix


async def test_a_wish_is_searched_for_on_the_node(
    machine: Callable[..., Machine], node: SimulatedNode
) -> None:
    node.publish(weather())
    config = machine(node).installer.config
    assert str(await choose("the weather please", config)) == "did:nuwa:cap:weather"
    node.publish(making.package_bytes("weather-maps", "1.0.0"))
    with pytest.raises(InvalidInput) as caught:
        await choose("the weather please", config)
    assert caught.value.code is Code.AMBIGUOUS
    names = [one["name"] for one in (caught.value.details or {})["candidates"]]
    assert names == ["weather", "weather-maps"]


def test_the_name_that_a_wish_spells_is_taken_and_a_title_never_is() -> None:
    assert pick("Yr Norway", [WEATHER, NORWAY]).name == "yr-norway"
    with pytest.raises(InvalidInput, match="may mean 2"):
        pick("Weather in Norwegian", [WEATHER, NORWAY])


def test_where_it_has_to_be_certain_one_hit_is_not_enough() -> None:
    assert pick("rain tomorrow", [WEATHER]).name == "weather"
    with pytest.raises(InvalidInput, match="may mean one capability, or none") as caught:
        pick("rain tomorrow", [WEATHER], certain=True)
    assert caught.value.code is Code.AMBIGUOUS


def test_several_versions_of_one_name_are_one_hit() -> None:
    assert pick("rain", [WEATHER, WEATHER._replace(uri="did:nuwa:cap:weather@2.0.0")])


def test_nothing_is_found() -> None:
    with pytest.raises(InvalidInput) as caught:
        pick("rain", [])
    assert caught.value.code is Code.NOT_FOUND


def test_texts_of_candidates_are_cleaned() -> None:
    (one,) = candidates([NodeHit(WEATHER.uri, "a\u202eb\n", "c\u001b[2J" * 100)])
    assert one["title"] == "ab"
    assert "\u001b" not in one["summary"]
    assert len(one["summary"]) == 160
