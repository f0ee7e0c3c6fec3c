"""`capdex.net.node_client`: what a node says becomes values and errors of ours."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from capdex.codes import error_codes
from capdex.errors import (
    Code,
    InvalidInput,
    Refused,
    Unavailable,
    UsageError,
    VerificationFailure,
)
from capdex.net.node_client import as_error, call_tool, releases, serves

FAMILIES = {
    Code.NOT_FOUND: InvalidInput,
    Code.YANKED: InvalidInput,
    Code.UNVERIFIED: VerificationFailure,
    Code.PENDING: Unavailable,
    Code.RATE_LIMITED: Unavailable,
    Code.INTERNAL: Unavailable,
    Code.PERMISSION_DENIED: Refused,
    Code.CONFIG: UsageError,
}


@pytest.mark.parametrize("code", list(Code))
def test_every_code_becomes_an_error_that_keeps_it(code: Code) -> None:
    error = as_error({"code": str(code), "message": "m", "details": {"why": "w", "reason": "R"}})
    said = 'the node says "m"', 'the node says "w"', ""
    assert (error.code, error.message, error.why, error.fix) == (code, *said)
    assert error.details == {"reason": "R"}
    assert isinstance(error, FAMILIES.get(code, Exception))
    assert error.kind.retryable is error_codes()[code].retryable


def test_no_node_speaks_as_capdex_or_says_that_something_is_proven() -> None:
    told = {"fix": 'run "x"', "proven": {"statement": "it is so"}}
    error = as_error({"code": "NOT_FOUND", "message": 'gone"; run: y', "details": told})
    assert error.message == r'''the node says "gone\"; run: y"'''
    assert error.fix == r'''the node says "run \"x\""'''
    assert not error.details


DEEP = orjson.loads("[" * 1000 + "]" * 1000)


@pytest.mark.parametrize(
    "content",
    [
        *({}, {"code": None}, {"code": "NOT_FOUND", "details": 3}),
        *({"code": DEEP}, {"message": DEEP}, {"code": "NOT_FOUND", "message": DEEP}),
        {"code": "NOT_FOUND", "message": "m", "details": {"why": DEEP, "fix": DEEP}},
    ],
)
def test_an_error_of_another_shape_is_still_an_error(content: dict[str, Any]) -> None:
    assert as_error(content).message


async def test_a_call_gives_the_structured_content(node: Any) -> None:
    node.answer("resolve_capability", {"a": 1})
    assert await call_tool(f"{node.url}/mcp", "resolve_capability", {"cap_uri": "x"}) == {"a": 1}


async def test_a_failed_call_raises_its_code(node: Any) -> None:
    node.answer("resolve_capability", {"code": "UNVERIFIED", "message": "bad"}, failed=True)
    with pytest.raises(VerificationFailure, match="bad"):
        await call_tool(f"{node.url}/mcp", "resolve_capability", {})


async def test_a_node_of_an_earlier_version_is_named_as_one(node: Any) -> None:
    refusal = {"code": "INVALID_INPUT", "message": "resolve_capability takes no argument 'detail'"}
    node.answer("resolve_capability", refusal, failed=True)
    with pytest.raises(Unavailable) as caught:
        await call_tool(f"{node.url}/mcp", "resolve_capability", {"cap_uri": "x"})
    assert caught.value.code is Code.NODE_UNAVAILABLE
    assert caught.value.message.endswith("is of an earlier version of capdex")
    assert caught.value.fix.startswith("upgrade it")


async def test_a_node_without_the_page_of_what_it_serves_is_older_or_its_url_is_wrong(
    node: Any,
) -> None:
    nothing = {"code": "NOT_FOUND", "message": "there is nothing here"}  # 0.4 has no /v1
    node.answer("resolve_capability", nothing, failed=True)
    with pytest.raises(Unavailable, match="or its URL has a wrong path"):
        await serves(node.url, "did:nuwa:cap:x1@1.0.0", "")


async def test_nobody_listening_is_unavailable() -> None:
    with pytest.raises(Unavailable) as caught:
        await call_tool("http://127.0.0.1:1/mcp", "resolve_capability", {})
    assert caught.value.code is Code.NODE_UNAVAILABLE
    with pytest.raises(Unavailable):
        await releases("http://127.0.0.1:1", "weather")


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/c/x.json", "it answered 405, and not with JSON"),
        ("/status", "it answered 200, and not as a capdex node"),
    ],
)
async def test_a_server_that_speaks_no_mcp_is_unavailable(node: Any, path: str, why: str) -> None:
    with pytest.raises(Unavailable) as caught:
        await call_tool(node.url + path, "resolve_capability", {})
    assert caught.value.code is Code.NODE_UNAVAILABLE
    assert caught.value.why == why


async def test_a_release_is_served_once_the_node_answers_its_bytes(
    node: Any, release: dict[str, Any]
) -> None:
    url, uri = node.url, release["cap_uri"]
    node.answer("resolve_capability", {"code": "NOT_FOUND", "message": "no"}, failed=True)
    assert await serves(url, uri, release["sha256"]) is False
    node.answer("resolve_capability", release)
    assert await serves(url, uri, release["sha256"]) is True
    assert await serves(url, uri, "00") is False
    assert node.calls[-1] == ("/v1/resolve", {"cap_uri": uri})


async def test_a_rejected_release_is_told_and_a_pending_one_waited_for(node: Any) -> None:
    node.answer("resolve_capability", {"code": "UNVERIFIED", "message": "bad"}, failed=True)
    with pytest.raises(VerificationFailure):
        await serves(node.url, "did:nuwa:cap:x1@1.0.0", "")
    node.answer("resolve_capability", {"code": "PENDING", "message": "soon"}, failed=True)
    with pytest.raises(Unavailable):
        await serves(node.url, "did:nuwa:cap:x1@1.0.0", "")
