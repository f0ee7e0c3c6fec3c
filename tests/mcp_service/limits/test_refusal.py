"""Whole requests are refused in the form that clients of the path read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from capdex.errors import CapdexError, Code, InvalidInput, Unavailable
from capdex_service.limits.refusal import refuse

LARGE = InvalidInput("a request has at most 7 bytes", Code.TOO_LARGE)
BUSY = Unavailable("too many requests", Code.RATE_LIMITED, fix="wait a second")


async def refused(error: CapdexError, path: str) -> tuple[int, dict[str, str], Any]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("the body is not read")

    await refuse(error, {"type": "http", "path": path}, receive, send)
    headers = {key.decode(): value.decode() for key, value in sent[0]["headers"]}
    return sent[0]["status"], headers, json.loads(sent[1]["body"])


@pytest.mark.parametrize("path", ["/mcp", "/mcp/minimal"])
async def test_mcp_is_refused_by_a_json_rpc_error_without_an_id(path: str) -> None:
    status, headers, said = await refused(BUSY, path)
    assert (status, headers["content-type"]) == (429, "application/json")
    assert headers["retry-after"] == "1"
    assert (said["jsonrpc"], said["id"]) == ("2.0", None)
    assert said["error"] == {
        "code": -32603,
        "message": "RATE_LIMITED: too many requests. wait a second",
        "data": BUSY.to_json(),
    }
    assert (await refused(LARGE, path))[2]["error"]["code"] == -32600


@pytest.mark.parametrize("path", ["/v1/search", "/c/note.json", "/mcpx"])
async def test_a_page_is_refused_by_a_problem_document(path: str) -> None:
    status, headers, said = await refused(LARGE, path)
    assert (status, headers["content-type"]) == (413, "application/problem+json")
    assert "retry-after" not in headers
    assert (said["status"], said["code"]) == (413, "TOO_LARGE")
