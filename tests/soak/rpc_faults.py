"""An endpoint in front of a chain that misbehaves: one request in a few, in ways seen in the wild.

Each fault is a function of (the proxy, the call, the true reply) that gives another reply, or an
HTTP response, or None for the true one; `Faulty.open` serves them from a thread.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web
from proxy import Call, Relay, range_of, refusal

LOOK_S = 0.01
HELD_S = 60.0
LAG_BLOCKS = 10
# What vendors say of a range that is too wide; {limit} blocks would do, from {first} to {last}.
REFUSALS = (
    (-32600, "You can make eth_getLogs requests with up to a {limit} block range. Based on your "
     "parameters, this block range should work: [{first:#x}, {last:#x}]"),
    (-32005, "query returned more than 10000 results. Try with this block range [{first:#x}, "
     "{last:#x}]."),
    (-32614, "eth_getLogs is limited to a {limit} range"),
    (-32602, "query exceeds max results 20000, retry with the range {first}-{last}"),
    (-32000, "exceed maximum block range: {limit}"),
    (-32047, "Max range: {limit}"),
    (-32602, "range limit exceeded: max {limit}"),
    (-32000, "block range is too wide"),
    (-32008, "Response is too big"),
)  # fmt: skip

# What vendors and nodes have answered in public reports. `status` and `type` (of the content) are
# left out where a report does not name them; `guessed` are the members of `error` it does not name.
PUBLIC = orjson.loads(Path(__file__).with_name("public_refusals.json").read_bytes())
WORDS = [word for one in PUBLIC for word in one.get("error", {}).get("message", "").split()]
CODES = [one["error"]["code"] for one in PUBLIC if "error" in one]

Answer = Any  # a reply, or a web.Response
Fault = Callable[["Faulty", Call, Call], Answer]


@dataclass
class Faulty(Relay):
    """`fault` may be changed while it runs; of `rate` of all requests it spoils the reply."""

    rate: float
    chance: random.Random
    fault: str | None = None
    spoilt: Counter[str] = field(default_factory=Counter)
    # The requests of each second, by their first method.
    seconds: dict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    async def answer(self, request: web.Request) -> web.StreamResponse:
        asked = orjson.loads(await request.read())
        calls = asked if isinstance(asked, list) else [asked]
        self.seconds[int(time.monotonic())][calls[0]["method"]] += 1
        kind = self.fault
        if kind == "mixed":
            kind = self.chance.choice([x for x in FAULTS if x != "timeout"])
        if kind is None or self.chance.random() >= self.rate:
            kind = None
        if kind == "timeout":
            self.spoilt[kind] += 1
            await self._hold()
            return _broken_off(request)
        if kind == "reset":
            self.spoilt[kind] += 1
            return _broken_off(request)
        if kind == "stale":
            calls = await self._behind(calls)
        replies = await self._ask(calls)
        if kind is not None:
            fault = FAULTS[kind]
            for at, (call, reply) in enumerate(zip(calls, replies, strict=True)):
                bent = fault(self, call, reply)
                if bent is not None:
                    self.spoilt[kind] += 1
                if isinstance(bent, web.StreamResponse):
                    return bent
                replies[at] = reply if bent is None else bent
        body = orjson.dumps(replies if isinstance(asked, list) else replies[0])
        if kind == "truncated":
            self.spoilt[kind] += 1
            body = body[: self.chance.randrange(len(body))]
        return web.Response(body=body, content_type="application/json")

    async def _hold(self) -> None:
        for _ in range(int(HELD_S / LOOK_S)):
            if self.fault is None:
                return
            await asyncio.sleep(LOOK_S)

    async def _ask(self, calls: list[Call]) -> list[Call]:
        replies = orjson.loads(await self.ask(orjson.dumps(calls)))
        found = {one["id"]: one for one in replies}
        return [found[call["id"]] for call in calls]

    async def _behind(self, calls: list[Call]) -> list[Call]:
        """The calls as of a head that is some blocks behind."""
        (head,) = await self._ask([{**calls[0], "method": "eth_blockNumber", "params": []}])
        shown = hex(max(0, int(head["result"], 16) - LAG_BLOCKS))
        self.spoilt["stale"] += sum(call["params"][:1] == ["latest"] for call in calls)
        return [
            {**call, "params": [shown, *call["params"][1:]]}
            if call["params"][:1] == ["latest"]
            else call
            for call in calls
        ]


def _broken_off(request: web.Request) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _patience(self: Faulty, call: Call, reply: Call) -> Answer:
    return web.Response(status=429, headers={"Retry-After": "1"})


def _status(self: Faulty, call: Call, reply: Call) -> Answer:
    return web.Response(status=self.chance.choice([500, 502, 503, 504]), text="<html>oops</html>")


def _page(self: Faulty, call: Call, reply: Call) -> Answer:
    return web.Response(text="<html>our terms have changed</html>", content_type="text/html")


def _refused(self: Faulty, call: Call, reply: Call) -> Answer:
    """Refuse about half of the calls of a batch, each in the words of a public report or in any."""
    if self.chance.random() < 0.5:
        return None
    one = self.chance.choice(PUBLIC) if self.chance.random() < 0.7 else {"error": _any_error(self)}
    status, said = one.get("status", 200), one.get("body")
    if said is None:
        reply = {"jsonrpc": "2.0", "id": call["id"], "error": one["error"]}
        if status == 200:
            return reply
        said = orjson.dumps(reply).decode()
    kind = one.get("type", "application/json" if "error" in one else "text/html")
    return web.Response(status=status, text=said, content_type=kind)


def _any_error(self: Faulty) -> Any:
    words = " ".join(self.chance.choices(WORDS, k=self.chance.randrange(12)))
    code = self.chance.choice([*CODES, self.chance.randrange(-(2**53), 2**53), None, "-32000"])
    return self.chance.choice([{"code": code, "message": words}, {"code": code}, words or "no"])


def _wrong_id(self: Faulty, call: Call, reply: Call) -> Answer:
    return {**reply, "id": reply["id"] + self.chance.choice([-1, 1, 1000])}


def _null(self: Faulty, call: Call, reply: Call) -> Answer:
    return {**reply, "result": None}


def _foreign(self: Faulty, call: Call, reply: Call) -> Answer:
    if call["method"] == "eth_chainId":
        return {**reply, "result": "0x5"}
    return web.Response(status=503)  # so that it is asked for its chain again


def _stateless(self: Faulty, call: Call, reply: Call) -> Answer:
    if call["method"] != "eth_call":
        return None
    said = self.chance.choice(["missing trie node", "header not found", None])
    return refusal(call, -32000, said) if said else {**reply, "result": "0x"}


def _logs(bend: Callable[[Faulty, list[Any]], list[Any]]) -> Fault:
    def fault(self: Faulty, call: Call, reply: Call) -> Answer:
        logs = reply.get("result")
        if call["method"] != "eth_getLogs" or not logs:
            return None
        return {**reply, "result": bend(self, list(logs))}

    return fault


def _empty(self: Faulty, logs: list[Any]) -> list[Any]:
    return []


def _doubled(self: Faulty, logs: list[Any]) -> list[Any]:
    return [log for log in logs for _ in range(2)]


def _shuffled(self: Faulty, logs: list[Any]) -> list[Any]:
    self.chance.shuffle(logs)
    return logs


def _dropped(self: Faulty, logs: list[Any]) -> list[Any]:
    del logs[self.chance.randrange(len(logs))]
    return logs


def _falsified(self: Faulty, logs: list[Any]) -> list[Any]:
    at = self.chance.randrange(len(logs))
    data = logs[at]["data"]
    digit = self.chance.randrange(2, len(data))
    changed = data[:digit] + ("0" if data[digit] != "0" else "1") + data[digit + 1 :]
    logs[at] = {**logs[at], "data": changed}
    return logs


def _unwitnessed(self: Faulty, call: Call, reply: Call) -> Answer:
    return _stateless(self, call, reply) or _logs(_falsified)(self, call, reply)


def _narrow(self: Faulty, call: Call, reply: Call) -> Answer:
    blocks = range_of(call)
    if blocks is None or blocks[0] == blocks[1]:
        return None
    first, last = blocks
    limit = self.chance.randint(1, last - first)
    code, words = self.chance.choice(REFUSALS)
    return refusal(call, code, words.format(limit=limit, first=first, last=first + limit - 1))


def _nothing(self: Faulty, call: Call, reply: Call) -> Answer:
    return None


FAULTS: dict[str, Fault] = {
    "timeout": _nothing,  # these four are done before, or after, there is a reply
    "reset": _nothing,
    "truncated": _nothing,
    "stale": _nothing,
    "patience": _patience,
    "status": _status,
    "page": _page,
    "refused": _refused,
    "wrong-id": _wrong_id,
    "null": _null,
    "empty": _logs(_empty),
    "doubled": _logs(_doubled),
    "shuffled": _logs(_shuffled),
    "dropped": _logs(_dropped),
    "falsified": _logs(_falsified),
    "narrow": _narrow,
    "stateless": _stateless,
    "unwitnessed": _unwitnessed,  # falsified, and the state that would tell is refused
    "foreign": _foreign,
}
KINDS = (*FAULTS, "mixed")
