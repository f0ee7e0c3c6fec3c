"""MCP over HTTP: an endpoint of a node, from session ids to the SDK's transport."""

from __future__ import annotations

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from capdex_service.limits.bodies import MAX_BODY_BYTES
from capdex_service.mcp.envelope import CheckedMessages
from capdex_service.mcp.fast_calls import FastCalls
from capdex_service.mcp.server import build_server
from capdex_service.mcp.subscriptions.feed import Feed
from capdex_service.mcp.subscriptions.methods import Subscriptions
from capdex_service.mcp.subscriptions.sessions import Sessions
from capdex_service.mcp.subscriptions.streams import SessionEndpoint, issue
from capdex_service.mcp.tools import Profile
from capdex_service.queries.reader import Reader


class McpEndpoint:
    """The ASGI application `app` of one path; it answers while `run()` is entered.

    Calls are stateless with plain JSON replies: clients of both protocols get the same answers,
    and any node behind a load balancer can answer the next call.
    """

    def __init__(self, reader: Reader, profile: Profile, feed: Feed, sessions: Sessions) -> None:
        server = build_server(reader, profile, Subscriptions(feed, sessions))
        server.middleware.append(issue(sessions))
        manager = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=MAX_BODY_BYTES
        )
        transport = CheckedMessages(manager.asgi_app)
        calls = FastCalls(reader, server, profile, transport)
        self.app = SessionEndpoint(calls, feed, sessions)
        self.run = manager.run
