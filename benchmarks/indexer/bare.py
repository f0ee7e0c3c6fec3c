"""What the chain itself can give: `eth_getLogs` in turn, its replies read and thrown away.

A process of its own, on uvloop as the node is: `bare.py URL REGISTRY FIRST LAST BLOCKS` prints the
seconds it took and the events it saw.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

import aiohttp
import orjson
import uvloop


async def read(url: str, registry: str, first: int, last: int, blocks: int) -> dict[str, float]:
    replies = []
    async with aiohttp.ClientSession(read_bufsize=1 << 20) as session:
        started = time.perf_counter()
        for start in range(first, last + 1, blocks):
            end = min(start + blocks - 1, last)
            query = {"address": registry, "fromBlock": hex(start), "toBlock": hex(end)}
            body = {"jsonrpc": "2.0", "id": 1, "method": "eth_getLogs", "params": [query]}
            headers = {"content-type": "application/json"}
            async with session.post(url, data=orjson.dumps(body), headers=headers) as response:
                replies.append(await response.read())
        seconds = time.perf_counter() - started
    return {"seconds": seconds, "events": sum(reply.count(b'"logIndex"') for reply in replies)}


if __name__ == "__main__":
    url, registry, first, last, blocks = sys.argv[1:]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(read(url, registry, int(first), int(last), int(blocks)))))
