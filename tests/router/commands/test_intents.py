"""Wishes in words, which reach one intent or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdex.errors import Code, InvalidInput
from capdex.json import Json
from capdex_router.invoke.invoke import Caller
from capdex_router.model.refs import InvokeResult
from capdex_router.runtime import Runtime, open_runtime
from tests.router.commands.programs import learned_inbox, write_boxes
from tests.router.small_runtime import Person

IDS = {"ids": ["abc123", "def456"]}


async def test_a_wish_reaches_no_command_that_was_made_from_a_help(tmp_path: Path) -> None:
    async with open_runtime(tmp_path / "router", work=tmp_path) as runtime:
        runtime.learning.keep(await runtime.learning.study(str(write_boxes(tmp_path))))
        for want in ("list", "boxes list", "Show the boxes", "run"):
            with pytest.raises(InvalidInput) as unknown:
                runtime.intents.named(want, {})
            assert unknown.value.code == Code.NOT_FOUND


async def wish(runtime: Runtime, want: str, given: Json, caller: Caller) -> InvokeResult:
    """Run the intent that a wish names."""
    uri, arguments = runtime.intents.named(want, given)
    return await runtime.invoker.invoke(uri, None, arguments, caller)


async def test_a_wish_is_the_way_to_an_intent_too(tmp_path: Path) -> None:
    async with learned_inbox(tmp_path) as runtime:
        found = await wish(runtime, "check my email", {"other": 1}, Caller())
        assert found.output == {"result": [{"name": "work", "unread": 3}]}
        person = Person()
        found = await wish(runtime, "delete these emails", IDS, Caller(person))
        assert found.ok
        with pytest.raises(InvalidInput):
            await wish(runtime, "do not delete emails", IDS, Caller(person))
    assert len(person.asked) == 1
