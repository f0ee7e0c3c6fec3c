"""Calls that are asked of one endpoint after another until one answers, each at its own pace."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import Any, TypeVar

from capdex.errors import Code
from capdex.net.rpc.endpoint import Endpoint
from capdex.net.rpc.errors import ELSEWHERE, RpcError, RpcFault, rpc_error
from capdex.net.rpc.transport import Call, ReadReply, Transport, send_many, send_one
from capdex.net.rpc.types import quantity

MAX_ATTEMPTS = 6  # about 8 s with one endpoint; whoever can wait longer asks again
MAX_TIMEOUTS = 2  # of one call: asking for less helps sooner than asking again
MAX_WAIT_S = 30.0  # a call waits no longer for endpoints that rest: it fails
FOREIGN_REST_S = 40.0  # until one of another chain is looked at again; no call waits for that

STAY_S = 0.5  # a shorter pause is waited for: two endpoints rarely show the same head

T = TypeVar("T")


class Pool:
    """The endpoints of one chain, in the order given; `current` is the one asked last."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self.endpoints = tuple(endpoints)
        self.current = self.endpoints[0]

    def peek(self, now: float, without: Collection[Endpoint] = ()) -> Endpoint:
        """The endpoint to ask; it may have to be waited for.

        One that contradicted itself or others is asked only when no other can be, one that failed
        last only when the others did too, and among equals the current one goes on.
        """
        able = [endpoint for endpoint in self.endpoints if endpoint not in without]
        ready = [endpoint for endpoint in able if endpoint.wait_s(now) <= STAY_S]
        if not ready:
            return min(able, key=lambda endpoint: endpoint.wait_s(now))
        return min(
            ready,
            key=lambda endpoint: (
                max(0.0, endpoint.avoided_until - now),
                endpoint.breaker.failures + endpoint.refusals,
                endpoint is not self.current,
            ),
        )

    def pick(self, now: float, without: Collection[Endpoint] = ()) -> Endpoint:
        """As `peek`, and it is the current one from now on."""
        self.current = self.peek(now, without)
        return self.current

    def named(self, label: str) -> Endpoint:
        """The endpoint that is shown as `label`."""
        return next(endpoint for endpoint in self.endpoints if endpoint.label == label)


class Failover:
    """`counts` says how often each method was asked of which endpoint, and with what outcome.

    `chain_id`, once set, is what an endpoint must say before its first use, and again after it was
    down. Large replies are read by `read_reply`.
    """

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        transport: Transport,
        read_reply: ReadReply,
        max_attempts: int = MAX_ATTEMPTS,
    ) -> None:
        self.pool = Pool(endpoints)
        self.max_attempts = max_attempts
        self.counts: Counter[tuple[str, str, str]] = Counter()
        self.chain_id: int | None = None
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
        without: Collection[Endpoint] = (),
        wait_s: float = MAX_WAIT_S,
    ) -> tuple[list[T], int]:
        """The results in the order asked, and the size of the reply in bytes.

        `without` are endpoints that are not asked; `wait_s` is how long one that rests is waited
        for. Raises the last RpcError when nobody answers.
        """
        hopeless, attempts, timeouts = set(without), 0, 0
        while True:
            now = clock()
            pick = self.pool.peek if without else self.pool.pick
            endpoint = pick(now, hopeless)
            rest_s = endpoint.wait_s(now)
            if rest_s > wait_s:
                raise endpoint.resting(now)
            if rest_s > 0:
                wait_s -= rest_s
                await asyncio.sleep(rest_s)
                continue
            try:
                await self._verify(endpoint)
                return await self._ask(endpoint, calls, read)
            except RpcError as error:
                attempts += 1
                timeouts += error.fault is RpcFault.TIMEOUT
                if error.fault is RpcFault.FATAL:
                    hopeless.add(endpoint)
                spent = attempts >= self.max_attempts or timeouts >= MAX_TIMEOUTS
                if (
                    error.fault not in ELSEWHERE
                    or spent
                    or len(hopeless) == len(self.pool.endpoints)
                ):
                    raise

    async def _verify(self, endpoint: Endpoint) -> None:
        if self.chain_id is None or endpoint.verified:
            return
        (found,), _ = await self._ask(endpoint, [("eth_chainId", ())], quantity)
        endpoint.verified = found == self.chain_id
        if not endpoint.verified:
            why = f"it speaks for chain {found}, not {self.chain_id}"
            error = rpc_error(endpoint.label, RpcFault.FATAL, why)
            error.code, error.fix = Code.WRONG_CHAIN, "pass the endpoint of the configured chain"
            endpoint.rest(error, clock(), FOREIGN_REST_S)
            raise error

    async def _ask(
        self, endpoint: Endpoint, calls: Sequence[Call], read: Callable[[Any], T]
    ) -> tuple[list[T], int]:
        """In batches as long as the endpoint takes; those that it refuses are halved."""
        results: list[T] = []
        size = 0
        while rest := calls[len(results) :]:
            piece = rest[: endpoint.batches.longest(clock())]
            try:
                found, more = await self._watched(
                    endpoint, piece, self._send(endpoint, piece, read)
                )
            except RpcError as error:
                if error.fault in (RpcFault.TRANSIENT, RpcFault.TIMEOUT):
                    endpoint.batches.failed(len(piece), clock())
                if len(piece) == 1 or error.fault not in (RpcFault.FATAL, RpcFault.TOO_LARGE_RANGE):
                    raise
                endpoint.batches.refused(len(piece))
            else:
                results += found
                size += more
        return results, size

    async def _send(
        self, endpoint: Endpoint, calls: Sequence[Call], read: Callable[[Any], T]
    ) -> tuple[list[T], int]:
        to = endpoint.url, endpoint.label
        ids = [next(self._ids) for _ in calls]
        if len(calls) > 1:
            return await send_many(self._transport, to, ids, calls, read)
        result, size = await send_one(self._transport, to, ids[0], calls[0], read, self._read_reply)
        return [result], size

    async def _watched(
        self, endpoint: Endpoint, calls: Sequence[Call], exchange: Coroutine[Any, Any, T]
    ) -> T:
        """The result of an exchange, and what it says of the endpoint."""
        sent, outcome = clock(), "cancelled"
        endpoint.begin(sent, len(calls))
        try:
            result = await exchange
            outcome = "ok"
            endpoint.answered(len(calls))
        except RpcError as error:
            outcome = error.fault.lower()
            endpoint.failed(error, clock(), sent)
            raise
        finally:
            if outcome == "cancelled":
                endpoint.breaker.abandoned()
            for method, _ in calls:
                self.counts[method, endpoint.label, outcome] += 1
        return result


def clock() -> float:
    """Seconds by which endpoints rest; any thread may ask how they do."""
    return time.monotonic()
