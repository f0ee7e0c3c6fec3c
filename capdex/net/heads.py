"""New heads by websocket: a bell that wakes whoever polls, and nothing more.

What a head says is never used: the poller reads the chain itself, so a lost, doubled or invented
head costs at most one poll. Subscriptions are gone after a reconnect and missed heads are not sent
again, which is why polling stays.
"""

from __future__ import annotations

import asyncio
import random

import aiohttp
import orjson

MAX_MESSAGE_BYTES = 1024 * 1024  # a head is 2 kB
HEARTBEAT_S = 20.0
RETRY_BASE_S = 1.0
RETRY_CAP_S = 300.0  # most HTTP endpoints will never speak websocket; asking is cheap, not free

_SUBSCRIBE = orjson.dumps(
    {"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": ["newHeads"]}
)


async def ring_on_heads(url: str, session: aiohttp.ClientSession, bell: asyncio.Event) -> None:
    """Set `bell` at every new head the endpoint tells of; runs until it is cancelled."""
    failures = 0
    while True:
        try:
            async with session.ws_connect(
                url, max_msg_size=MAX_MESSAGE_BYTES, heartbeat=HEARTBEAT_S
            ) as websocket:
                await websocket.send_bytes(_SUBSCRIBE)
                async for message in websocket:
                    if message.type not in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
                        break
                    failures = 0
                    bell.set()
        except (aiohttp.ClientError, OSError, TimeoutError):
            pass  # polling goes on meanwhile
        failures = min(failures + 1, 16)
        ceiling_s = min(RETRY_CAP_S, RETRY_BASE_S * 2**failures)
        await asyncio.sleep(random.uniform(0, ceiling_s))  # noqa: S311 - jitter, not a secret
