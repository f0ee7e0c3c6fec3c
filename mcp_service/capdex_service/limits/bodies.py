"""Request bodies: received whole and within a limit before anything else sees the request."""

from __future__ import annotations

from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from capdex.errors import Code, InvalidInput
from capdex_service.limits.client_faults import ClientFaults
from capdex_service.limits.refusal import refuse

MAX_BODY_BYTES: Final = 256 * 1024  # a call is a few hundred bytes


class WholeBody:
    """Receive the body of a request, and pass the request on with it.

    A body over the limit is answered 413. A request whose client hangs up first is dropped: no
    code behind this has to expect half a body.
    """

    def __init__(
        self, app: ASGIApp, *, faults: ClientFaults, max_bytes: int = MAX_BODY_BYTES
    ) -> None:
        self.app = app
        self.faults = faults
        self.max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, answer 413, or drop it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if _declared_bytes(scope) > self.max_bytes:
            await self._too_large(scope, receive, send)
            return
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                self.faults.note("cut off")
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self.max_bytes:
                await self._too_large(scope, receive, send)
                return
        await self.app(scope, replay(bytes(body), receive), send)

    async def _too_large(self, scope: Scope, receive: Receive, send: Send) -> None:
        what = f"a request has at most {self.max_bytes} bytes"
        error = InvalidInput(what, Code.TOO_LARGE, fix="send less at a time")
        await refuse(error, scope, receive, send)


def replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the whole body first."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


def _declared_bytes(scope: Scope) -> int:
    """Return the declared length of the body, 0 if it is not declared."""
    for key, value in scope["headers"]:
        if key == b"content-length" and value.strip().isdigit():
            return int(value.strip()[:20])
    return 0
