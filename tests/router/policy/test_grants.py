"""Grants: bound to content, tool and target, with an expiry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from capdex.errors import Code, UsageError
from capdex_router.policy.grants import MAX_GRANTS, Grant, Grants

HOST = Grant("did:nuwa:cap:weather", "aa", "now", "host:api.example.org", 100.0)
GRANTS = st.builds(
    Grant, st.text(), st.text(), st.text(), st.text(), st.none() | st.floats(0, 1e12)
)


def test_a_grant_is_for_one_content_tool_and_time() -> None:
    grants = Grants((HOST,))
    assert grants.of(HOST.name, "aa", "now", 99.0) == {"host:api.example.org"}
    assert grants.of(HOST.name, "aa", "now", 100.0) == frozenset()
    assert grants.of(HOST.name, "bb", "now", 99.0) == frozenset()
    assert grants.of(HOST.name, "aa", "later", 99.0) == frozenset()


def test_a_grant_with_the_name_of_another_capability_grants_nothing() -> None:
    assert Grants((HOST,)).of("did:nuwa:cap:evil", "aa", "now", 99.0) == frozenset()
    tool = Grant(f"{HOST.name}#now", "aa", "now", "effects")
    assert Grants((tool,)).of(HOST.name, "aa", "now", 99.0) == {"effects"}


def test_a_grant_may_be_for_every_tool_and_without_end() -> None:
    grants = Grants((Grant("did:nuwa:cap:weather", "aa", "*", "state.create"),))
    assert grants.of(HOST.name, "aa", "anything", 1e12) == {"state.create"}


def test_a_new_grant_replaces_an_equal_one_and_drops_expired_ones() -> None:
    renewed = Grant(HOST.name, HOST.digest, HOST.tool, HOST.target, 200.0)
    assert Grants((HOST,)).plus([renewed], 50.0).all == (renewed,)
    assert Grants((HOST,)).plus([], 100.0).all == ()


def test_grants_of_other_contents_tools_and_targets_stand_beside_each_other() -> None:
    others = [replace(HOST, **{name: "other"}) for name in ("digest", "tool", "target")]
    assert Grants((HOST,)).plus(others, 50.0).all == (HOST, *others)


def test_the_contents_with_a_right_are_those_that_have_it_for_every_tool_and_still() -> None:
    every = replace(HOST, tool="*")
    others = [
        HOST,
        replace(every, digest="bb", target="folder:/x"),
        replace(every, digest="cc", until=50.0),
    ]
    assert Grants((every, *others)).digests(HOST.target, 50.0) == {"aa"}
    assert Grants(tuple(others)).digests(HOST.target, 50.0) == frozenset()
    assert [grant.folder for grant in (every, *others)] == ["", "", "/x", ""]


def test_grants_are_taken_back_by_name_tool_and_target() -> None:
    now = Grant(f"{HOST.name}#now", "aa", "now", "state.create")
    alike = Grant(f"{HOST.name}-eu", "aa", "*", HOST.target)
    grants = Grants((HOST, now, alike))
    assert grants.minus(HOST.name).all == (alike,)
    assert grants.minus(now.name).all == (HOST, alike)
    assert grants.minus(HOST.name, "state.create").all == (HOST, alike)
    assert grants.minus("another") == grants


@given(st.lists(GRANTS, max_size=5))
def test_what_is_written_is_read(grants: list[Grant]) -> None:
    found = Grants.parse(Grants(tuple(grants)).to_bytes())
    assert sorted(map(repr, found.all)) == sorted(map(repr, grants))
    assert Grants(tuple(reversed(grants))).to_bytes() == found.to_bytes()


def test_the_grants_of_a_content_that_is_gone_are_left_out() -> None:
    other = replace(HOST, digest="bb")
    assert Grants((HOST, other)).without({"aa"}).all == (other,)


@given(st.binary(min_size=1))
def test_any_other_file_is_refused(data: bytes) -> None:
    with pytest.raises(UsageError) as refused:
        Grants.parse(data)
    assert refused.value.code == Code.CONFIG


@pytest.mark.parametrize(
    "data",
    [
        b'{"grants":[],"version":2}',
        b'{"grants":[]}',
        b'{"version":1}',
        *(
            start + b"[" * 100_000
            for start in (b"", b'{"grants":', b'{"grants":[{"name":', b'{"x":')
        ),
    ],
    ids=len,
)
def test_a_strange_file_is_refused(data: bytes) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        Grants.parse(data)


def test_there_is_a_limit() -> None:
    many = [Grant("n", str(number), "t", "x") for number in range(MAX_GRANTS + 1)]
    with pytest.raises(UsageError) as refused:
        Grants().plus(many, 0.0)
    assert refused.value.code == Code.TOO_LARGE
