"""Check of a message's envelope over HTTP, in front of the SDK (`capdex.net.envelope`)."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from capdex.net import envelope


class CheckedMessages:
    """Answers POSTs with a bad envelope by status 400 and an error; passes the others to `app`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one POST whose body is whole, or pass it on."""
        body = await Request(scope, receive).body()
        found = envelope.read(body)
        if isinstance(found, envelope.Fault):
            response = Response(found.answer(), 400, media_type="application/json")
            await response(scope, receive, send)
            return
        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return whole.pop() if whole else await receive()

        await self._app(scope, replay, send)
