"""Scope tokens: for the verbs of one call alone, within its time, and with that call alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from capdex.errors import Code, Refused
from capdex_router.model.requests import StateRequest
from capdex_router.policy.tokens import Token, bearer, carrying, check

NOW = 1_000.0
CREATE = StateRequest("state.create", "sc:note", "u#v1")
QUERY = replace(CREATE, verb="state.query")
TOKEN = Token("aa", frozenset((CREATE, QUERY)), NOW + 60)
ELSE = "it is for another package, verb, scope or schema"


def test_a_token_allows_its_requests_until_it_expires() -> None:
    with carrying(TOKEN):
        check(NOW, "aa", CREATE)
        check(NOW + 59, "aa", QUERY)


@pytest.mark.parametrize(
    ("now", "package", "wanted", "why"),
    [
        (NOW, "aa", replace(CREATE, verb="state.delete"), ELSE),
        (NOW, "aa", replace(CREATE, scope="sc:other"), ELSE),
        (NOW, "aa", replace(CREATE, schema_uri="u#v2"), ELSE),
        (NOW, "aa", replace(CREATE, hard=True), ELSE),
        (NOW, "bb", CREATE, ELSE),
        (NOW + 60, "aa", CREATE, "it has expired"),
    ],
)
def test_nothing_else_is_allowed(now: float, package: str, wanted: StateRequest, why: str) -> None:
    with carrying(TOKEN), pytest.raises(Refused) as refused:
        check(now, package, wanted)
    assert (refused.value.code, refused.value.why) == (Code.PERMISSION_DENIED, why)


def test_the_token_of_a_call_is_with_that_call_alone() -> None:
    assert bearer() is None
    with carrying(TOKEN):
        assert bearer() == TOKEN
        with carrying(None):
            assert bearer() is None
    with pytest.raises(Refused, match="does not allow"):
        check(NOW, "aa", CREATE)
