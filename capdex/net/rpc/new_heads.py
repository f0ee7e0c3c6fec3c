"""New heads by websocket: a bell that wakes whoever polls, and nothing more.

What a head says is never used: the poller reads the chain itself, so a lost, doubled or invented
head costs at most one poll. Subscriptions are gone after a reconnect and missed heads are not sent
again, and some fall silent with the connection up: which is why polling stays, and a watchdog opens
a new connection when no head has come for long.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import aiohttp
import orjson

from capdex.net.rpc.circuit_breaker import full_jitter

MAX_MESSAGE_BYTES = 1024 * 1024  # a head is 2 kB
HEARTBEAT_S = 20.0
RETRY_BASE_S = 1.0
RETRY_CAP_S = 300.0  # most HTTP endpoints will never speak websocket; asking is cheap, not free
INTERVALS = 10.0  # so many times the usual interval without a head, and something is wrong
MIN_SILENCE_S = 15.0
MAX_SILENCE_S = 600.0  # a development chain may mine nothing for hours
UNKNOWN_SILENCE_S = 60.0  # before the interval is known: five slots of Ethereum

_SUBSCRIBE = '{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}'


@dataclass(slots=True)
class Watchdog:
    """How long a silent subscription is believed; the time is passed in."""

    interval_s: float | None = None  # between heads, a moving average
    _heard: float | None = None
    _barks: int = 0  # in a row, with no head between

    @property
    def patience_s(self) -> float:
        """Seconds without a head after which to connect anew."""
        usual = UNKNOWN_SILENCE_S if self.interval_s is None else INTERVALS * self.interval_s
        return min(MAX_SILENCE_S, max(MIN_SILENCE_S, usual) * 2.0 ** min(self._barks, 16))

    def heard(self, now: float) -> None:
        """A head came."""
        if self._heard is not None and not self._barks:
            gap = now - self._heard
            self.interval_s = gap if self.interval_s is None else (7 * self.interval_s + gap) / 8
        self._heard, self._barks = now, 0

    def barked(self) -> None:
        """Nothing came for `patience_s`: maybe there was nothing, so wait longer next time."""
        self._barks, self._heard = self._barks + 1, None


async def ring_on_heads(url: str, session: aiohttp.ClientSession, bell: asyncio.Event) -> None:
    """Set `bell` at every new head the endpoint tells of; runs until it is cancelled."""
    failures, dog = 0, Watchdog()
    while True:
        try:
            async with session.ws_connect(
                url, max_msg_size=MAX_MESSAGE_BYTES, heartbeat=HEARTBEAT_S
            ) as websocket:
                await websocket.send_str(_SUBSCRIBE)
                if await _hears(websocket, UNKNOWN_SILENCE_S):
                    failures = 0
                    bell.set()  # for what was missed meanwhile
                    await _listen(websocket, dog, bell)
        except (aiohttp.ClientError, OSError, TimeoutError):
            pass  # polling goes on meanwhile
        failures += 1
        await asyncio.sleep(full_jitter(failures, RETRY_BASE_S, RETRY_CAP_S))


async def _listen(
    websocket: aiohttp.ClientWebSocketResponse, dog: Watchdog, bell: asyncio.Event
) -> None:
    """Ring at each head until the connection ends or the watchdog barks."""
    loop = asyncio.get_running_loop()
    try:
        while await _hears(websocket, dog.patience_s):
            dog.heard(loop.time())
            bell.set()
    except TimeoutError:
        dog.barked()


async def _hears(websocket: aiohttp.ClientWebSocketResponse, patience_s: float) -> bool:
    """Whether something comes; False when that is a refusal or the connection's end.

    Raises TimeoutError when nothing comes for so long.
    """
    message = await websocket.receive(timeout=patience_s)
    if message.type not in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
        return False
    try:
        said = orjson.loads(message.data)
    except orjson.JSONDecodeError:
        return False
    return isinstance(said, dict) and not said.get("error")
