"""`mcp_service`: a tool call as a call of another MCP server (NIP-7, Tool Bindings)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from capdex.errors import Code, InvalidInput, Unavailable
from capdex.json import Json
from capdex_router.bindings.egress import Egress
from capdex_router.bindings.mcp_session import Forgotten, McpSession
from capdex_router.bindings.mcp_transport import GuardedTransport
from capdex_router.bindings.pins import Pins, fingerprint
from capdex_router.model.refs import AUTHOR
from capdex_router.model.requests import ServiceRequest

MAX_SESSIONS: Final = 16


class McpTool:
    """A tool bound to an action of an MCP service; `capability` is the name that its pin has."""

    def __init__(
        self, binding: Mapping[str, Any], *, capability: str, services: McpServices
    ) -> None:
        self._request = ServiceRequest(binding["service_uri"], binding["mcp_action"])
        self._capability = capability
        self._services = services

    def requests(self, arguments: Json) -> Sequence[ServiceRequest]:
        """Return the one call that a run makes; raises Refused if there is no way to it."""
        self._services.egress.located(self._request.service_uri)
        return [self._request]

    async def run(self, arguments: Json, *, timeout_s: float) -> Json:
        """Call the action; return its output as `McpSession.call` does.

        Raises as that, Refused if its definition changed, Unavailable if the service is late.
        """
        return await self._services.call(self._capability, self._request, arguments, timeout_s)


class McpServices:
    """Sessions with MCP services, opened at first use and kept; close it after use.

    Without `pins` a service may change its tools.
    """

    def __init__(self, egress: Egress, pins: Pins | None = None) -> None:
        self.egress = egress
        self._pins = pins
        self._sessions: dict[str, McpSession] = {}
        self._closing: dict[asyncio.Task[None], McpSession] = {}

    async def close(self) -> None:
        """End all sessions."""
        for uri in list(self._sessions):
            self._drop(uri, self._sessions[uri])
        for session in self._closing.values():
            session.hurry()
        await asyncio.gather(*self._closing)

    async def call(
        self, capability: str, request: ServiceRequest, arguments: Json, timeout_s: float
    ) -> Json:
        """Call an action of a service whose definition is the pinned one.

        Raises InvalidInput NOT_FOUND for an unknown action, else as `McpTool.run`.
        """
        uri = request.service_uri
        session = self._session(uri)
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                try:
                    return await self._once(session, capability, request, arguments)
                except Forgotten:  # the service did not act: the call is made again, once
                    session = self._session(uri)
                    return await self._once(session, capability, request, arguments)
        self._drop(uri, session)  # what a late service still sends is for nobody
        why = f"{uri[:200]} had {timeout_s:.3g} s"
        raise Unavailable("the MCP service did not answer in time", why=why, fix="try again later")

    async def _once(
        self, session: McpSession, capability: str, request: ServiceRequest, arguments: Json
    ) -> Json:
        uri, action = request.service_uri, request.action
        async with session.used():
            try:
                tool = (await session.tools()).get(action)
                if tool is None:
                    raise InvalidInput(
                        f"the MCP service has no tool {action[:64]!r}",
                        Code.NOT_FOUND,
                        why=uri[:200],
                        fix=f"{AUTHOR}, or call another of its tools",
                    )
                if self._pins is not None:
                    digest = fingerprint(tool.name, tool.description, tool.input_schema)
                    self._pins.check(capability, uri, action, digest)
                return await session.call(action, arguments)
            finally:
                if session.broken:
                    self._drop(uri, session)

    def _session(self, uri: str) -> McpSession:
        session = self._sessions.pop(uri, None)
        if session is None or session.ended:
            transport = GuardedTransport(self.egress, self.egress.located(uri))
            session = McpSession(transport.connected(), transport.fault)
        self._sessions[uri] = session  # the last one used is the last to go
        while len(self._sessions) > MAX_SESSIONS:
            oldest = next(iter(self._sessions))
            self._drop(oldest, self._sessions[oldest])
        return session

    def _drop(self, uri: str, session: McpSession) -> None:
        if self._sessions.get(uri) is session:
            del self._sessions[uri]
        closing = asyncio.get_running_loop().create_task(session.close())
        self._closing[closing] = session
        closing.add_done_callback(self._closing.pop)
