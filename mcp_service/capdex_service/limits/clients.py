"""The check of each request's client: its token, where tokens are needed, and its rate."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Final

from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

from capdex.errors import Code, Refused, Unavailable
from capdex_service.limits.addresses import CLIENT, Addresses, client_key
from capdex_service.limits.options import ClientLimits
from capdex_service.limits.rates import Rates
from capdex_service.limits.refusal import refuse
from capdex_service.limits.tokens import Tokens

OPEN_PATHS: Final = frozenset({"/health", "/ready"})  # of balancers, which have no token
_SCHEME: Final = b"bearer "


class ClientCheck:
    """Answer 401 without a known token (RFC 6750) and 429 over the rate (RFC 6585 §4).

    A token is a client of its own, wherever its requests come from. Requests without a known token
    count for their address, so tokens cannot be tried without bound.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        addresses: Addresses,
        rates: Rates | None = None,
        tokens: Tokens | None = None,
    ) -> None:
        self.app = app
        self._addresses, self._rates, self._tokens = addresses, rates, tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its client in `scope[CLIENT]` and the scheme that it sees.

        It is answered 401 or 429 here if its token or its rate is not right.
        """
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        address, name = self._addresses.address_of(scope), self._name(scope)
        scope[CLIENT] = client_key(address) if name is None else f"token {name}"
        scope["scheme"] = self._addresses.scheme_of(scope)
        limited = name is not None or not self._addresses.unlimited(address)
        if self._rates is not None and limited:
            now = asyncio.get_running_loop().time()
            wait_s = self._rates.take(scope[CLIENT], now)
            if wait_s > 0:
                # The end of the connection drops what else is in its pipeline.
                after = {"Retry-After": str(max(1, math.ceil(wait_s))), "Connection": "close"}
                over = Unavailable(
                    "too many requests", Code.RATE_LIMITED, fix="wait, and send fewer"
                )
                await refuse(over, scope, receive, send, after)
                return
        if self._tokens is not None and name is None and scope["path"] not in OPEN_PATHS:
            challenge = {"WWW-Authenticate": 'Bearer realm="capdex"'}
            what, fix = "a known token is needed", "send Authorization: Bearer TOKEN"
            await refuse(
                Refused(what, Code.UNAUTHENTICATED, fix=fix), scope, receive, send, challenge
            )
            return
        await self.app(scope, receive, send)

    def _name(self, scope: Scope) -> str | None:
        """Return the name of the request's token, None without a known one."""
        if self._tokens is None:
            return None
        given = [value for key, value in scope["headers"] if key == b"authorization"]
        if len(given) != 1 or given[0][: len(_SCHEME)].lower() != _SCHEME:
            return None
        return self._tokens.name_of(given[0][len(_SCHEME) :].strip())


def client_check(limits: ClientLimits) -> Middleware:
    """Return the middleware of these limits; raises UsageError for proxies or tokens."""
    return Middleware(
        ClientCheck,
        addresses=Addresses(limits.trusted_proxies, limit_loopback=limits.limit_loopback),
        rates=Rates(limits.rate) if limits.rate else None,
        tokens=Tokens.read(Path(limits.token_file)) if limits.token_file else None,
    )
