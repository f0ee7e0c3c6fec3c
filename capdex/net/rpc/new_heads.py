"""Subscribe to new heads over WebSocket and wake the poller. Head contents are ignored.

The poller reads the chain itself, so a lost, repeated or invented head costs at most one poll.
Polling stays necessary: subscriptions end with a reconnect, missed heads are not sent again, and
some endpoints fall silent with the connection open. A watchdog reconnects after a long silence.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Self

import aiohttp
import orjson
from aiohttp.connector import Connection
from typing_extensions import override

from capdex.net.connection import proxy_of
from capdex.net.rpc.aiohttp_transport import Response, open_session
from capdex.net.rpc.pacing import full_jitter

MAX_MESSAGE_BYTES = 1024 * 1024  # a head is 2 kB
HEARTBEAT_S = 20.0
RETRY_BASE_S = 1.0
RETRY_CAP_S = 300.0  # most HTTP endpoints will never speak WebSocket; trying is cheap, not free
INTERVALS = 10.0  # a silence of so many usual intervals means that something is wrong
MIN_SILENCE_S = 15.0
MAX_SILENCE_S = 600.0  # a development chain may mine nothing for hours
UNKNOWN_SILENCE_S = 60.0  # before the interval is known: five slots of Ethereum

_SUBSCRIBE = '{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}'


@dataclass(slots=True)
class Watchdog:
    """How long a subscription may be silent before a reconnect; the time is passed in."""

    interval_s: float | None = None  # between heads, a moving average
    _last_head: float | None = None
    _expired: int = 0  # times in a row, without a head between

    @property
    def timeout_s(self) -> float:
        """Seconds without a head after which to reconnect."""
        usual = UNKNOWN_SILENCE_S if self.interval_s is None else INTERVALS * self.interval_s
        return min(MAX_SILENCE_S, max(MIN_SILENCE_S, usual) * 2.0 ** min(self._expired, 16))

    def received(self, now: float) -> None:
        """Record a head."""
        if self._last_head is not None and not self._expired:
            gap = now - self._last_head
            self.interval_s = gap if self.interval_s is None else (7 * self.interval_s + gap) / 8
        self._last_head, self._expired = now, 0

    def expired(self) -> None:
        """Record a timeout; the next one is longer, since there may have been no head."""
        self._expired, self._last_head = self._expired + 1, None


class _Straight(Response):
    """Raises ClientError for a redirect, which `ws_connect` would follow to any host."""

    @override
    async def start(self, connection: Connection) -> Self:
        await super().start(connection)
        if 300 <= self.status < 400:
            raise aiohttp.ClientConnectionError("it redirects")
        return self


async def wake_on_heads(url: str, wake: asyncio.Event) -> None:
    """Set `wake` at every new head of the endpoint; runs until it is cancelled."""
    failures, watchdog = 0, Watchdog()
    async with open_session(_Straight) as session:
        while True:
            try:
                async with session.ws_connect(
                    url,
                    max_msg_size=MAX_MESSAGE_BYTES,
                    heartbeat=HEARTBEAT_S,
                    proxy=proxy_of(url),
                ) as websocket:
                    await websocket.send_str(_SUBSCRIBE)
                    if await _receive(websocket, UNKNOWN_SILENCE_S):
                        failures = 0
                        wake.set()  # for heads missed before the subscription
                        await _listen(websocket, watchdog, wake)
            except (aiohttp.ClientError, OSError, TimeoutError):
                pass  # polling goes on meanwhile
            failures += 1
            await asyncio.sleep(full_jitter(failures, RETRY_BASE_S, RETRY_CAP_S))


async def _listen(
    websocket: aiohttp.ClientWebSocketResponse, watchdog: Watchdog, wake: asyncio.Event
) -> None:
    """Set `wake` at each head until the connection ends or the watchdog's time is over."""
    loop = asyncio.get_running_loop()
    try:
        while await _receive(websocket, watchdog.timeout_s):
            watchdog.received(loop.time())
            wake.set()
    except TimeoutError:
        watchdog.expired()


async def _receive(websocket: aiohttp.ClientWebSocketResponse, timeout_s: float) -> bool:
    """Return True for a message, False for a refusal or the end; raises TimeoutError."""
    message = await websocket.receive(timeout=timeout_s)
    if message.type not in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
        return False
    try:
        content = orjson.loads(message.data)
    except orjson.JSONDecodeError:
        return False
    return isinstance(content, dict) and not content.get("error")
