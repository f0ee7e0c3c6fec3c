"""Request bodies reach the application whole, or not at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response
from structlog.testing import capture_logs

from capdex_service.limits.bodies import MAX_BODY_BYTES, WholeBody
from capdex_service.limits.client_faults import ClientFaults

GONE = {"type": "http.disconnect"}


def piece(data: bytes, *, more: bool) -> dict[str, Any]:
    return {"type": "http.request", "body": data, "more_body": more}


async def send_to_echo(
    *messages: dict[str, Any], length: str | None = None
) -> tuple[int | None, bytes]:
    """The status and the body of an application that answers with the body it received."""
    waiting, sent = list(messages), []

    async def receive() -> Any:
        return waiting.pop(0) if waiting else GONE

    async def send(message: Any) -> None:
        sent.append(message)

    async def echo(scope: Any, receive: Any, send: Any) -> None:
        response = Response(await Request(scope, receive).body())
        await response(scope, receive, send)

    headers = [] if length is None else [(b"content-length", length.encode())]
    scope = {"type": "http", "method": "POST", "path": "/", "headers": headers}
    await WholeBody(echo, faults=ClientFaults())(scope, receive, send)
    status = next((x["status"] for x in sent if "status" in x), None)
    return status, b"".join(x.get("body", b"") for x in sent)


@pytest.mark.parametrize(
    "messages",
    [
        [piece(b"abc", more=False)],
        [piece(b"a", more=True), piece(b"", more=True), piece(b"bc", more=False)],
    ],
)
async def test_a_whole_body_is_passed_on(messages: list[dict[str, Any]]) -> None:
    assert await send_to_echo(*messages, length="3") == (200, b"abc")


async def test_a_body_of_exactly_the_limit_is_passed_on() -> None:
    body = b"x" * MAX_BODY_BYTES
    assert await send_to_echo(piece(body, more=False), length=str(len(body))) == (200, body)


@pytest.mark.parametrize("messages", [[GONE], [piece(b"a", more=True), GONE]])
async def test_a_request_that_is_cut_off_never_reaches_the_application(
    messages: list[dict[str, Any]],
) -> None:
    with capture_logs() as lines:
        assert await send_to_echo(*messages, length="3") == (None, b"")
    assert [x["kind"] for x in lines] == ["cut off"]


@pytest.mark.parametrize(
    ("messages", "length"),
    [
        ([], str(MAX_BODY_BYTES + 1)),
        ([], "9" * 5000),
        ([piece(b"x" * MAX_BODY_BYTES, more=True), piece(b"x", more=False)], None),
        ([piece(b"x" * MAX_BODY_BYTES, more=True), piece(b"x", more=False)], "3"),
    ],
)
async def test_a_body_over_the_limit_is_too_large(
    messages: list[dict[str, Any]], length: str | None
) -> None:
    status, body = await send_to_echo(*messages, length=length)
    assert status == 413
    said = json.loads(body)
    assert (said["code"], said["status"], said["retryable"]) == ("TOO_LARGE", 413, False)
