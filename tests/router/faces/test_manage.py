"""`manage` over MCP in both eras: a person agrees to an installation, an upgrade and a removal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mcp import Client

from router.faces.actions import Actions
from router.faces.manage import Packages
from router.faces.server import build_server
from router.runtime.installed.source import Installed
from router.runtime.opened import opened
from tests.indexer import making
from tests.router.faces.conftest import ERAS, User, said
from tests.router.simulated import Machine, SimulatedNode, weather


async def test_a_person_agrees_to_each_step(
    machine: Callable[..., Machine], node: SimulatedNode, era: str, tmp_path: Path
) -> None:
    node.publish(weather())
    here = machine(node)
    source = Installed(here.home, here.rights, lambda package, tool: None)
    user = User()
    async with opened(here.home.path, [source]) as runtime:
        actions = Actions(
            runtime.catalog,
            runtime.search,
            runtime.invoker,
            runtime.results,
            manager=Packages(here.installer),
        )
        async with Client(
            build_server(actions), mode=ERAS[era], elicitation_callback=user
        ) as client:

            async def manage(action: str, target: str = "weather") -> str:
                return said(await client.call_tool("manage", {"action": action, "target": target}))

            assert await manage("install") == "weather 1.0.0: installed"
            assert "now: GET https://tools.example.org/do" in user.asked[0]
            found = await client.call_tool("find", {"want": "weather"})
            assert said(found).startswith("weather ")
            assert await manage("upgrade") == "weather 1.0.0: unchanged"
            node.publish(weather("1.1.0", permissions={"require": ["state.delete"]}))
            user.agree = False
            assert "not agreed to" in await manage("upgrade")
            user.agree = True
            assert await manage("upgrade") == "weather 1.1.0: upgraded, before 1.0.0"
            assert "state.delete" in user.asked[-1]
            assert await manage("remove") == "removed weather 1.1.0"
            assert said(await client.call_tool("find", {"want": "weather", "remote": False})) == (
                "nothing found"
            )


async def test_several_hits_are_candidates_for_the_model(
    machine: Callable[..., Machine], node: SimulatedNode
) -> None:
    node.publish(weather())
    node.publish(making.package_bytes("weather-maps", "1.0.0"))
    manager = Packages(machine(node).installer)
    assert [found.uri for found in await manager.search("weather", 5)] == [
        "did:nuwa:cap:weather@1.0.0",
        "did:nuwa:cap:weather-maps@1.0.0",
    ]
