"""Scope tokens: for the verbs of one call alone, within its time, and with that call alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from capdex.errors import Code, Refused
from capdex_router.policy.tokens import Token, bearer, carrying, check

NOW = 1_000.0
TOKEN = Token(
    "aa", "sc:note", frozenset({"state.create", "state.query"}), frozenset({"u#v1"}), NOW + 60
)
WANTED = {"package": "aa", "verb": "state.create", "scope": "sc:note", "schema": "u#v1"}


def test_a_token_allows_its_verbs_in_its_scope_until_it_expires() -> None:
    with carrying(TOKEN):
        check(NOW, **WANTED)
        check(NOW + 59, **WANTED | {"verb": "state.query"})


@pytest.mark.parametrize(
    ("changes", "wanted", "now", "why"),
    [
        ({}, {"verb": "state.delete"}, NOW, "it does not allow state.delete"),
        ({}, {"scope": "sc:other"}, NOW, "it is for another package or scope"),
        ({}, {"package": "bb"}, NOW, "it is for another package or scope"),
        ({}, {"schema": "u#v2"}, NOW, "it is for another schema"),
        ({"schema_uris": frozenset()}, {}, NOW, "it is for another schema"),
        ({}, {}, NOW + 60, "it has expired"),
    ],
)
def test_nothing_else_is_allowed(
    changes: dict[str, Any], wanted: dict[str, str], now: float, why: str
) -> None:
    with carrying(replace(TOKEN, **changes)), pytest.raises(Refused) as refused:
        check(now, **WANTED | wanted)
    assert (refused.value.code, refused.value.why) == (Code.PERMISSION_DENIED, why)


def test_the_token_of_a_call_is_with_that_call_alone() -> None:
    assert bearer() is None
    with carrying(TOKEN):
        assert bearer() == TOKEN
        with carrying(None):
            assert bearer() is None
    with pytest.raises(Refused, match="does not allow"):
        check(NOW, **WANTED)
