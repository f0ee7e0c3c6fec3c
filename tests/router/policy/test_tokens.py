"""Scope tokens: only those of this installation, within time, never wider than a parent."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import Code, Refused
from router.policy.tokens import Authority, Token, bearer, carrying, replace_token

NOW = 1_000.0
AUTHORITY = Authority(b"k" * 32)
TOKEN = Token("1", "aa", "sc:note", ("state.create", "state.query"), ("u#v1",), NOW + 60)
TEXT = AUTHORITY.sign(TOKEN)


def allowed(text: str | None, **changes: str) -> Token:
    wanted = {"verb": "state.create", "scope": "sc:note", "schema": "u#v1", **changes}
    return AUTHORITY.check(text, NOW, **wanted)


def why(text: str | None, **changes: str) -> str:
    with pytest.raises(Refused) as refused:
        allowed(text, **changes)
    assert refused.value.code == Code.PERMISSION_DENIED
    return refused.value.why


def test_a_token_allows_its_verbs_in_its_scope() -> None:
    assert allowed(TEXT) == TOKEN


def test_nothing_else_is_allowed() -> None:
    assert why(None) == "there is none"
    assert why(TEXT, verb="state.delete") == "it does not allow state.delete"
    assert why(TEXT, scope="sc:other") == "it is for another scope"
    assert why(TEXT, schema="u#v2") == "it is for another schema"


def test_a_token_expires() -> None:
    with pytest.raises(Refused) as refused:
        AUTHORITY.read(TEXT, NOW + 60)
    assert refused.value.why == "it has expired"


def test_a_token_of_another_key_is_refused() -> None:
    assert why(Authority(b"x" * 32).sign(TOKEN)) == "its signature is wrong"


def test_a_token_widened_by_hand_is_refused() -> None:
    wider = AUTHORITY.sign(replace_token(TOKEN, verbs=("state.create", "state.delete")))
    assert why(wider.split(".")[0] + "." + TEXT.split(".")[1]) == "its signature is wrong"


def test_a_child_has_fewer_rights() -> None:
    child = AUTHORITY.narrow(TEXT, NOW, jti="2", verbs=["state.query"], expires=NOW + 1)
    found = allowed(child, verb="state.query")
    assert (found.parent, found.verbs, found.expires) == ("1", ("state.query",), NOW + 1)
    assert why(child) == "it does not allow state.create"


@pytest.mark.parametrize(
    "wider",
    [{"verbs": ["state.delete"]}, {"schema_uris": ["u#v2"]}, {"expires": NOW + 61}],
    ids=str,
)
def test_a_child_with_more_rights_is_refused(wider: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        AUTHORITY.narrow(TEXT, NOW, jti="2", **wider)
    assert refused.value.why == "it would have more rights than its parent"


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_no_other_text_is_a_token(text: str) -> None:
    with pytest.raises(Refused):
        AUTHORITY.read(text, NOW)


@given(st.integers(0, len(TEXT) - 1), st.characters())
def test_an_altered_token_grants_nothing_new(place: int, other: str) -> None:
    altered = TEXT[:place] + other + TEXT[place + 1 :]
    with suppress(Refused):
        assert AUTHORITY.read(altered, NOW) == TOKEN


def test_the_token_of_a_call_is_with_that_call_alone() -> None:
    assert bearer() is None
    with carrying(TEXT):
        assert bearer() == TEXT
    assert bearer() is None


def test_a_short_key_is_a_fault_of_ours() -> None:
    with pytest.raises(ValueError, match="3 bytes"):
        Authority(b"abc")
