"""Wishes in words, which reach one intent or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from capdex.errors import InvalidInput
from router.runtime.invoke import Caller
from tests.router.runtime.conftest import Person
from tests.router.runtime.learned.programs import learned_inbox

IDS = {"ids": ["abc123", "def456"]}


async def test_a_wish_is_the_way_to_an_intent_too(tmp_path: Path) -> None:
    async with learned_inbox(tmp_path) as runtime:
        found = await runtime.intents.intent("check my email", {"other": 1}, Caller())
        assert found.output == {"result": [{"name": "work", "unread": 3}]}
        person = Person()
        found = await runtime.intents.intent("delete these emails", IDS, Caller(person))
        assert found.ok
        with pytest.raises(InvalidInput):
            await runtime.intents.intent("do not delete emails", IDS, Caller(person))
    assert len(person.asked) == 1
