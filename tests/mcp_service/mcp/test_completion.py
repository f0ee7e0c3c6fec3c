"""Completion of names and versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mcp
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference

from capdex_service.mcp.completion import MAX_VALUES

ERAS = ("auto", "legacy")
NAME = ResourceTemplateReference(uri="capdex://{name}")
PACKAGE = ResourceTemplateReference(uri="capdex://{name}/{version}/package")
PROMPT = ResourceTemplateReference(uri="capdex://{name}/{version}/prompt")


@pytest.fixture
def names(growing: Any) -> Any:
    """A registry of names that begin alike."""
    for version in ("1.0.0", "1.1.0", "1.10.0", "2.0.0-rc.1"):
        growing.publish("note", version)
    growing.publish("notebook", prompt=None)
    growing.publish("weather")
    growing.chain.mine(growing.making.yanked("note", "1.1.0"))
    growing.publish("loose", bound=False)
    growing.follow()
    return growing


@pytest.mark.parametrize("era", ERAS)
async def test_names_and_versions_are_completed(
    era: str, names: Any, client_of: Callable[..., mcp.Client]
) -> None:
    async with client_of(mode=era) as client:

        async def ask(ref: Any, argument: str, typed: str, **known: str) -> list[str]:
            given = {"name": argument, "value": typed}
            return (await client.complete(ref, given, known or None)).completion.values

        assert await ask(NAME, "name", "") == ["note", "notebook", "weather"]
        assert await ask(PACKAGE, "name", " NOTE") == ["note", "notebook"]
        assert await ask(PROMPT, "name", "note") == ["note"]
        assert await ask(PACKAGE, "name", "\0é") == []
        every = ["latest", "2.0.0-rc.1", "1.10.0", "1.0.0"]
        assert await ask(PACKAGE, "version", "", name="note") == every
        assert await ask(PACKAGE, "version", "1.1", name="note") == ["1.10.0"]
        assert await ask(PACKAGE, "version", "lat", name="note") == ["latest"]
        assert await ask(PACKAGE, "version", "") == []
        assert await ask(PACKAGE, "version", "", name="absent") == []
        assert await ask(PACKAGE, "version", "", name="loose") == []
        prompt = PromptReference(name="note")
        assert await ask(prompt, "version", "1.") == ["1.10.0", "1.0.0"]
        assert await ask(prompt, "message", "no") == []
        for wrong in (ResourceTemplateReference(uri="file:///{x}"), PromptReference(name="NO")):
            with pytest.raises(MCPError) as refused:
                await ask(wrong, "name", "")
            assert refused.value.error.code == -32602


async def test_no_more_values_are_given_than_are_allowed(
    growing: Any, client_of: Callable[..., mcp.Client]
) -> None:
    for i in range(MAX_VALUES + 1):
        growing.publish(f"name-{i:03}")
    growing.follow()
    async with client_of() as client:
        found = (await client.complete(NAME, {"name": "name", "value": "name-"})).completion
    assert (len(found.values), found.has_more) == (MAX_VALUES, True)
