"""The subscription methods of a server: `subscriptions/listen`, and those before 2026-07-28."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY, event_to_notification
from starlette.types import Scope

from capdex.errors import InvalidInput
from capdex.net.tasks import end
from capdex_service.mcp import faults
from capdex_service.mcp.subscriptions.feed import Feed, FeedFollower
from capdex_service.mcp.subscriptions.interest import Interest, notification
from capdex_service.mcp.subscriptions.sessions import MAX_URIS, Sessions, too_many

Context = ServerRequestContext[Any]

SESSION: Final = "capdex.session"  # in the ASGI scope: the id of the session that a POST is of


class Subscriptions:
    """The subscriptions of one server's clients.

    Over HTTP those of a session are kept in `sessions`, and its stream delivers. Without them the
    server has one connection, on which everything goes.
    """

    def __init__(self, feed: Feed, sessions: Sessions | None = None) -> None:
        self.feed, self.sessions = feed, sessions
        self._uris: set[str] = set()  # of the one connection
        self._delivery: asyncio.Task[None] | None = None

    async def subscribe(
        self, ctx: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Subscribe a client to a URI; it need not exist yet."""
        await faults.answer(
            self._subscribe(ctx, params.uri), ctx.method, ctx.protocol_version, params.uri
        )
        return types.EmptyResult()

    async def unsubscribe(
        self, ctx: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """End a subscription, if there is one."""
        session = self._session(ctx)
        if session is None or self.sessions is None:
            self._uris.discard(params.uri)
        else:
            self.sessions.unsubscribe(session, params.uri)
        return types.EmptyResult()

    async def listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Send the changes that a client opted in to until it leaves or the server ends.

        The acknowledgement leaves out URIs that are not ours, and the lists: they are fixed.
        """
        assert ctx.request_id is not None  # noqa: S101 - a request has one
        meta: dict[str, Any] = {SUBSCRIPTION_ID_META_KEY: ctx.request_id}
        async with AsyncExitStack() as stream:
            scope = None if ctx.request is None else ctx.request.scope
            opening = self._open(stream, params.notifications, scope)
            honoured, follower = await faults.answer(opening, ctx.method, ctx.protocol_version)
            acknowledged = types.SubscriptionsAcknowledgedNotification(
                params=types.SubscriptionsAcknowledgedNotificationParams(
                    notifications=honoured, _meta=meta
                )
            )
            await ctx.session.send_notification(acknowledged, ctx.request_id)
            while events := await follower.next():
                for event in events:
                    update = event_to_notification(event, meta)
                    await ctx.session.send_notification(update, ctx.request_id)
        return types.SubscriptionsListenResult(_meta=meta)

    async def close(self) -> None:
        """End all streams."""
        self.feed.close()
        if self._delivery is not None:
            await end([self._delivery])

    async def _subscribe(self, ctx: Context, uri: str) -> None:
        Interest.of([uri])  # refuses any other URI
        moment = await self.feed.reader.moment()
        if (session := self._session(ctx)) is not None:
            assert self.sessions is not None  # noqa: S101 - over HTTP there are sessions
            self.sessions.subscribe(session, uri, moment.revision)
        elif len(self._uris | {uri}) > MAX_URIS:
            raise too_many()
        else:
            self._uris.add(uri)
            if self._delivery is None:
                self._delivery = asyncio.create_task(self._deliver(ctx.session, moment.revision))

    def _session(self, ctx: Context) -> str | None:
        """Return the session of a request over HTTP; None on a connection of one client."""
        if ctx.request is None or self.sessions is None:
            return None
        session = ctx.request.scope.get(SESSION)
        if session is None or not self.sessions.owns(session):
            raise MCPError(
                types.INVALID_REQUEST,
                "subscriptions belong to a session of this node: initialize, and send its "
                "Mcp-Session-Id",
            )
        return str(session)

    async def _open(
        self, stream: AsyncExitStack, asked: types.SubscriptionFilter, scope: Scope | None
    ) -> tuple[types.SubscriptionFilter, FeedFollower]:
        honoured, interest = _honoured(asked)
        return honoured, await stream.enter_async_context(self.feed.follow(lambda: interest, scope))

    async def _deliver(self, session: ServerSession, since: int) -> None:
        async with self.feed.follow(lambda: Interest.of(self._uris), since=since) as follower:
            while events := await follower.next():
                for event in events:
                    await session.send_notification(notification(event))


def _honoured(asked: types.SubscriptionFilter) -> tuple[types.SubscriptionFilter, Interest]:
    """Return the part of a filter that is honoured, and the interest in it."""
    uris = [uri for uri in dict.fromkeys(asked.resource_subscriptions or ()) if _is_ours(uri)]
    if len(uris) > MAX_URIS:
        raise too_many()
    return types.SubscriptionFilter(resource_subscriptions=uris or None), Interest.of(uris)


def _is_ours(uri: str) -> bool:
    try:
        Interest.of([uri])
    except InvalidInput:
        return False
    return True
