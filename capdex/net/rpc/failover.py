"""Send calls to one endpoint after another until one answers, each within its own limits."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import orjson

from capdex.errors import Code
from capdex.net.rpc import abilities
from capdex.net.rpc.endpoint import Endpoint, without_secrets
from capdex.net.rpc.errors import ELSEWHERE, RpcError, RpcFault, rpc_error
from capdex.net.rpc.pacing import MAX_DEBT_S
from capdex.net.rpc.replies import read_many, read_one
from capdex.net.rpc.transport import Call, ReadReply, Transport
from capdex.net.rpc.types import Header, quantity
from capdex.net.tasks import together

MAX_ATTEMPTS = 6  # about 8 s with one endpoint; a caller that can wait longer tries again
MAX_TIMEOUTS = 2  # of one call: a smaller request helps more than a third attempt
MAX_WAIT_S = 30.0  # a call fails if all endpoints pause for longer
FOREIGN_COOLDOWN_S = 40.0  # of an endpoint of another chain: over MAX_WAIT_S, so no call waits
DAY_S = 86_400.0  # until all abilities are probed again
PROBED_RANGES = (1_000, 10_000)  # blocks
PROBED_BATCH = 8  # calls
OFF_LOOP_BYTES = 128 * 1024  # of a reply: 2 ms of work; a thread costs a twentieth of that
STAY_S = 0.5  # wait for a shorter pause: another endpoint rarely has the same head

T = TypeVar("T")


class Failover:
    """Sends calls through the endpoints of one chain, in the order given; `current` was used last.

    `counts` has the calls by (method, endpoint's label, outcome): `ok`, or a RpcFault in lower
    case. Where a chain is expected (`Rpc.expect`), an endpoint must be of it before its first use
    and after an outage.
    """

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        transport: Transport,
        read_reply: ReadReply,
        max_attempts: int,
    ) -> None:
        self.endpoints = tuple(endpoints)
        self.current = self.endpoints[0]
        self.max_attempts = max_attempts
        self.counts: Counter[tuple[str, str, str]] = Counter()
        self._chain_id: int | None = None
        self._genesis = b""
        self._transport, self._read_reply = transport, read_reply
        self._ids = itertools.count(1)

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def ask(
        self,
        calls: Sequence[Call],
        read: Callable[[Any], T],
        *,
        only: Endpoint | None = None,
        wait_s: float = MAX_WAIT_S,
        refusals: int | None = None,
    ) -> tuple[list[T], int]:
        """Return the results in the order of `calls`, and the size of the replies in bytes.

        `only` is the one endpoint to ask; `wait_s` is how long to wait for pausing endpoints from
        one answer of a batch to the next.
        With `refusals`, an endpoint is not asked again that has answered so often with an error
        other than a rate limit, whatever the error says, or once not in time. Raises the last
        RpcError if no endpoint answers.
        """
        hopeless = {x for x in self.endpoints if only not in (None, x)}
        attempts, timeouts, kept = 0, 0, list[T]()
        left_s = wait_s
        refused: Counter[Endpoint] = Counter()
        while True:
            now = clock()
            endpoint = only or self._pick(now, hopeless)
            rest_s = endpoint.wait_s(now)
            if rest_s > left_s:
                raise endpoint.cooling_down(now)
            if rest_s > 0:
                left_s -= rest_s
                await asyncio.sleep(rest_s)
                continue
            before = len(kept)
            try:
                await self._verify(endpoint)
                return await self._ask(endpoint, calls, read, kept)
            except RpcError as error:
                if len(kept) > before:  # it goes on, however slowly
                    attempts, timeouts, left_s = 0, 0, wait_s
                attempts += 1
                timeouts += error.fault is RpcFault.TIMEOUT
                refused[endpoint] += error.is_refusal
                timed_out = error.fault is RpcFault.TIMEOUT and refusals is not None
                if error.fault is RpcFault.FATAL or timed_out:
                    hopeless.add(endpoint)
                elif refused[endpoint] == refusals:
                    hopeless.add(endpoint)
                    endpoint.answered(1)  # this call is at fault, not the endpoint
                spent = attempts >= self.max_attempts or timeouts >= MAX_TIMEOUTS
                if error.fault not in ELSEWHERE or spent or len(hopeless) == len(self.endpoints):
                    raise

    def _pick(self, now: float, without: Collection[Endpoint]) -> Endpoint:
        """Return the endpoint to use next, which becomes the current one; it may still pause.

        Preference: not avoided for a contradiction, then fewest recent failures, then the current
        one.
        """
        able = [endpoint for endpoint in self.endpoints if endpoint not in without]
        ready = [endpoint for endpoint in able if endpoint.wait_s(now) <= STAY_S]
        if ready:
            self.current = min(
                ready,
                key=lambda endpoint: (
                    max(0.0, endpoint.avoided_until - now),
                    endpoint.breaker.failures + endpoint.refusals,
                    endpoint is not self.current,
                ),
            )
        else:
            self.current = min(able, key=lambda endpoint: endpoint.wait_s(now))
        return self.current

    async def look_at(self, endpoint: Endpoint) -> None:
        """Probe what is not known or was missing; all of it for a new client and each day.

        An endpoint that pauses, does not answer or is of another chain keeps what is known of it.
        """
        probe = partial(self._probe, endpoint)
        if endpoint.wait_s(clock()) > MAX_DEBT_S:
            return
        with suppress(RpcError):
            await self._verify(endpoint)
            client, now = await abilities.client_version(probe), clock()
            if client != endpoint.abilities.client or now - endpoint.probed_at > DAY_S:
                endpoint.abilities = abilities.Abilities(client=client)
                endpoint.probed_at = now
            head, known = await abilities.newest(probe), endpoint.abilities.known()
            names = [name for name in abilities.PROBED if not known.get(name)]
            await together([self.able(endpoint, name, head) for name in names])
            if self._transport.zipped is not None:
                zipped = endpoint.label in self._transport.zipped
                endpoint.abilities = replace(endpoint.abilities, gzip=zipped)
            if endpoint.abilities.batch < PROBED_BATCH:
                await self._ask(endpoint, [("eth_chainId", ())] * PROBED_BATCH, abilities.as_is)
            for blocks in PROBED_RANGES:
                if endpoint.abilities.blocks < blocks <= head.number:
                    call = abilities.logs_of_nobody(head.number - blocks + 1, head.number)
                    await probe(*call, abilities.as_is)

    async def able(self, endpoint: Endpoint, name: str, head: Header | None = None) -> bool | None:
        """Return whether an endpoint has an ability, probed if that is not known; None if unknown.

        With `head`, its newest block, the ability is probed again.
        """
        probe = partial(self._probe, endpoint)
        if head or endpoint.abilities.known().get(name) is None:
            with suppress(RpcError):
                able = await abilities.has(probe, name, head or await abilities.newest(probe))
                changes: dict[str, Any] = {name: able}
                endpoint.abilities = replace(endpoint.abilities, **changes)
        return endpoint.abilities.known().get(name)

    async def _verify(self, endpoint: Endpoint) -> None:
        if self._chain_id is None or endpoint.verified:
            return
        if endpoint.chain is None:  # kept if the next call fails: each second one may
            (endpoint.chain,), _ = await self._ask(endpoint, [("eth_chainId", ())], quantity)
        wrong = endpoint.chain != self._chain_id
        why = f"it is of chain {endpoint.chain}, not {self._chain_id}" if wrong else ""
        if not why and any(self._genesis):
            first = await abilities.first_block(partial(self._probe, endpoint))
            if first not in (None, self._genesis):  # without its first blocks it is believed
                why = f"its first block is 0x{first.hex()}, not 0x{self._genesis.hex()}"
        endpoint.verified = not why
        if why:
            endpoint.doubt()
            error = rpc_error(endpoint.label, RpcFault.FATAL, why)
            error.code = Code.WRONG_CHAIN
            error.fix = "pass an endpoint of the configured chain, or index into a new database"
            endpoint.cool_down(error, clock(), FOREIGN_COOLDOWN_S)
            raise error

    async def _probe(
        self, endpoint: Endpoint, method: str, params: Sequence[Any], read: Callable[[Any], Any]
    ) -> Any:
        """Send one call within the endpoint's limits; to refuse it is no fault of the endpoint."""
        rest_s = endpoint.wait_s(clock())
        if rest_s > MAX_DEBT_S:
            raise endpoint.cooling_down(clock())
        await asyncio.sleep(rest_s)
        try:
            (result,), _ = await self._ask(endpoint, [(method, params)], read)
        except RpcError as error:
            if error.is_refusal:
                endpoint.answered(1)
            raise
        return result

    async def _ask(
        self,
        endpoint: Endpoint,
        calls: Sequence[Call],
        read: Callable[[Any], T],
        kept: list[T] | None = None,
    ) -> tuple[list[T], int]:
        """Send batches of the longest size that the endpoint accepts; a refused one is halved.

        `kept` are results of the first calls; those of further ones are added, even if one fails.
        """
        results, size = [] if kept is None else kept, 0
        while rest := calls[len(results) :]:
            if results:
                await asyncio.sleep(min(endpoint.throttle.wait_s(clock()), MAX_DEBT_S))
            piece = rest[: min(endpoint.batches.longest(clock()), endpoint.throttle.burst)]
            try:
                answers, more = await self._send(endpoint, piece, read)
            except RpcError as error:
                slow = error.fault is RpcFault.TIMEOUT
                if slow or error.fault is RpcFault.TRANSIENT:
                    endpoint.batches.failed(len(piece), clock(), slow=slow)
                if len(piece) == 1 or error.fault not in (RpcFault.FATAL, RpcFault.TOO_LARGE_RANGE):
                    raise
                endpoint.batches.refused(len(piece))
            else:
                results += answers
                size += more
        return results, size

    async def _send(
        self, endpoint: Endpoint, calls: Sequence[Call], read: Callable[[Any], T]
    ) -> tuple[list[T], int]:
        """Send a batch, and record its outcome with the endpoint."""
        sent, outcome = clock(), "cancelled"
        endpoint.begin(sent, len(calls))
        try:
            result = await self._exchange(endpoint, calls, read)
            outcome = "ok"
            endpoint.answered(len(calls))
            endpoint.abilities = endpoint.abilities.seen(calls)
        except RpcError as error:
            outcome = error.fault.lower()
            why, method = error.why, calls[0][0]
            if error.answered and error.fault is RpcFault.FATAL and method not in why:
                why = f"{method}: {why}"  # "Method not found" names none
            error.why = without_secrets(why, endpoint.url)
            endpoint.failed(error, clock(), sent)
            raise
        finally:
            if outcome == "cancelled":
                endpoint.breaker.abandoned()
            for method, _ in calls:
                self.counts[method, endpoint.label, outcome] += 1
        return result

    async def _exchange(
        self, endpoint: Endpoint, calls: Sequence[Call], read: Callable[[Any], T]
    ) -> tuple[list[T], int]:
        """Return the results in order, and the reply's bytes; raise the first failure."""
        label, ids = endpoint.label, [next(self._ids) for _ in calls]
        requests = [
            {"jsonrpc": "2.0", "id": id_, "method": method, "params": list(params)}
            for id_, (method, params) in zip(ids, calls, strict=True)
        ]
        single = len(requests) == 1
        body = orjson.dumps(requests[0] if single else requests)
        answer = await self._transport.post(endpoint.url, label, body)
        size = len(answer.data)
        if single and size < OFF_LOOP_BYTES:
            return [read_one(label, answer, ids[0], read)], size
        if single:
            return [await self._read_reply(label, answer, ids[0], read)], size
        if size < OFF_LOOP_BYTES:
            return read_many(label, answer, ids, read), size
        return await asyncio.to_thread(read_many, label, answer, ids, read), size


def clock() -> float:
    """Return the monotonic time of all pauses, in seconds; safe in any thread."""
    return time.monotonic()
