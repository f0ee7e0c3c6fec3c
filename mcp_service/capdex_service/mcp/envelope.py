"""Check of a message's envelope over HTTP, in front of the SDK (`capdex.net.envelope`)."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from capdex.net import envelope
from capdex_service.limits.bodies import replay, whole_body


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
        await self._app(scope, replay([whole_body(body)], receive), send)
