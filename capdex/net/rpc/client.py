"""JSON-RPC to an EVM chain: bounded, batched, with several endpoints failed over.

Our own client rather than web3's: a reply meets a size bound before it meets a parser, one bad log
does not cost the range it came in, and a too large range is not asked for five times more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Self, TypeVar

from capdex.errors import Code, UsageError
from capdex.net.rpc.circuit_breaker import Breaker
from capdex.net.rpc.endpoint import Endpoint, EndpointState, labels, redact, split_schemes
from capdex.net.rpc.errors import RpcError, RpcFault, rpc_error
from capdex.net.rpc.failover import MAX_ATTEMPTS, Failover, clock
from capdex.net.rpc.rate_limit import MAX_BATCH
from capdex.net.rpc.transport import Call, PlainTransport, ReadReply, Transport, read_in_thread
from capdex.net.rpc.types import Header, hex_, quantity, read_header, read_logs, unhex
from capdex.net.tasks import together
from capdex.registry.logs import LogColumns, RawLog

__all__ = ["Call", "EndpointState", "Rpc", "Testimony", "redact"]

BATCHES_AT_ONCE = 4
SURVEY_WAIT_S = 5.0  # an endpoint that rests for longer says nothing in a survey
BACKOFF_BASE_S = 0.25
BACKOFF_CAP_S = 15.0  # a node is to be back within a minute of its endpoints
AVOIDED_S = 60.0  # an endpoint that said what cannot be true, where there is another one

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Testimony(Generic[T]):
    """What one endpoint says; two of one `origin` (host and port) are one witness."""

    label: str
    origin: str
    said: T | RpcError


def _as_is(result: Any) -> Any:
    return result


class Rpc:
    """Calls to one chain through one or more endpoints, the healthiest one preferred.

    A WebSocket URL is also called over HTTP at the same address, as Anvil and the vendors serve
    both; `websockets` are the URLs for subscriptions (see `capdex.net.rpc.new_heads`).
    Large replies are parsed by `read_reply`: by default in a thread. `max_attempts` is how often a
    call is sent before its failure is raised: once for a program that sends transactions, since a
    repeated one looks like a used nonce.
    """

    def __init__(
        self,
        urls: Sequence[str],
        *,
        transport: Transport | None = None,
        read_reply: ReadReply = read_in_thread,
        max_attempts: int = MAX_ATTEMPTS,
    ) -> None:
        if not urls:
            raise UsageError("no RPC endpoint is given", Code.CONFIG, fix="pass --rpc-url URL")
        spoken = [split_schemes(url) for url in urls]
        http = list(dict.fromkeys(http for http, _ in spoken))
        endpoints = [
            Endpoint(url, label, Breaker(BACKOFF_BASE_S, BACKOFF_CAP_S))
            for url, label in zip(http, labels(http), strict=True)
        ]
        self.websockets = tuple(dict.fromkeys(websocket for _, websocket in spoken))
        self._failover = Failover(
            endpoints, transport or PlainTransport(), read_reply, max_attempts
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._failover.close()

    # ------------------------------------------------------------------------------ endpoints

    @property
    def endpoint(self) -> str:
        """The endpoint asked last, with its credentials left out."""
        return self._failover.pool.current.label

    @property
    def alone(self) -> bool:
        """Whether there is only one endpoint to ask."""
        return len(self._failover.pool.endpoints) == 1

    @property
    def counts(self) -> Counter[tuple[str, str, str]]:
        """Calls by (method, endpoint's label, outcome): `ok`, or a RpcFault in lower case."""
        return self._failover.counts

    def endpoints_state(self) -> list[EndpointState]:
        """How each endpoint does, in the order given."""
        now, pool = clock(), self._failover.pool
        return [one.state(now, current=one is pool.current) for one in pool.endpoints]

    def expect(self, chain_id: int) -> None:
        """From now on no endpoint is asked before it has said that it speaks for this chain.

        It is asked before its first use, and again after it was down.
        """
        self._failover.chain_id = chain_id

    def blame(self, why: str, label: str | None = None) -> RpcError:
        """An endpoint, the current one unless named, said what cannot be true; the error to raise.

        The others are asked first for a while; a lone one after a pause.
        """
        now, pool = clock(), self._failover.pool
        endpoint = pool.current if label is None else pool.named(label)
        error = rpc_error(endpoint.label, RpcFault.TRANSIENT, why)
        if len(pool.endpoints) > 1:
            endpoint.avoided_until, endpoint.trouble = now + AVOIDED_S, error
        else:
            endpoint.rest(error, now)
        return error

    async def survey(
        self, method: str, params: Sequence[Any] = (), read: Callable[[Any], T] = _as_is
    ) -> list[Testimony[T]]:
        """What each endpoint says of one call, asked side by side; RpcError where it says none."""

        async def ask(endpoint: Endpoint) -> Testimony[T]:
            others = [one for one in self._failover.pool.endpoints if one is not endpoint]
            try:
                (said,), _ = await self._failover.ask(
                    [(method, params)], read, without=others, wait_s=SURVEY_WAIT_S
                )
            except RpcError as error:
                return Testimony(endpoint.label, endpoint.origin, error)
            return Testimony(endpoint.label, endpoint.origin, said)

        return await together([ask(endpoint) for endpoint in self._failover.pool.endpoints])

    # ---------------------------------------------------------------------------------- calls

    async def call(
        self, method: str, params: Sequence[Any] = (), read: Callable[[Any], T] = _as_is
    ) -> T:
        """The result of one call; raises RpcError.

        `read` makes a value of it; where it raises ValueError the endpoint is at fault.
        """
        (result,), _ = await self._failover.ask([(method, params)], read)
        return result

    async def batch(self, calls: Sequence[Call], read: Callable[[Any], T] = _as_is) -> list[T]:
        """The results of many calls, in their order; raises RpcError when any of them fails."""
        pieces = [calls[at : at + MAX_BATCH] for at in range(0, len(calls), MAX_BATCH)]
        results: list[T] = []
        for at in range(0, len(pieces), BATCHES_AT_ONCE):
            beside = pieces[at : at + BATCHES_AT_ONCE]
            for found, _ in await together([self._failover.ask(piece, read) for piece in beside]):
                results += found
        return results

    async def chain_id(self) -> int:
        """The chain's id."""
        return await self.call("eth_chainId", (), quantity)

    async def block(self, number: int | str) -> Header | None:
        """A block's header by number or tag, or None where the endpoint has none."""
        tag = number if isinstance(number, str) else hex(number)
        return await self.call("eth_getBlockByNumber", [tag, False], read_header)

    async def block_of(self, hash_: bytes) -> Header | None:
        """A block's header by its hash, or None where the endpoint has none."""
        return await self.call("eth_getBlockByHash", [hex_(hash_), False], read_header)

    async def blocks(self, numbers: Sequence[int]) -> list[Header | None]:
        """Headers by number, in the order asked, None where the endpoint has none."""
        calls = [("eth_getBlockByNumber", [hex(n), False]) for n in numbers]
        return await self.batch(calls, read_header)

    async def logs(self, address: bytes, first: int, last: int) -> list[RawLog]:
        """A contract's logs in blocks `first` to `last`, both included, in canonical order."""
        read = partial(read_logs, address=address, first=first, last=last)
        return list((await self.weighed_logs(address, first, last, read))[0])

    async def weighed_logs(
        self, address: bytes, first: int, last: int, read: Callable[[Any], T]
    ) -> tuple[T, int]:
        """What `read` makes of a contract's logs, as in `call`, and the bytes of the reply."""
        query = {"address": hex_(address), "fromBlock": hex(first), "toBlock": hex(last)}
        (logs,), size = await self._failover.ask([("eth_getLogs", [query])], read)
        return logs, size

    async def logs_at(self, address: bytes, blocks: Sequence[Header]) -> list[LogColumns]:
        """A contract's logs in each of these blocks, asked by block hash."""

        hashes = frozenset(block.hash for block in blocks)
        read = partial(
            _read_logs_at,
            address=address,
            first=blocks[0].number,
            last=blocks[-1].number,
            hashes=hashes,
        )
        calls = [
            ("eth_getLogs", [{"address": hex_(address), "blockHash": hex_(block.hash)}])
            for block in blocks
        ]
        return await self.batch(calls, read)

    async def view(self, address: bytes, data: bytes, block: bytes | str = "latest") -> bytes:
        """What a contract returns to a call at a block, by hash (EIP-1898) or tag."""
        at = block if isinstance(block, str) else {"blockHash": hex_(block)}
        return await self.call("eth_call", [{"to": hex_(address), "data": hex_(data)}, at], unhex)

    async def code(self, address: bytes, block: str = "latest") -> bytes:
        """The code at an address; empty where there is none."""
        return await self.call("eth_getCode", [hex_(address), block], unhex)


def _read_logs_at(
    found: Any, address: bytes, first: int, last: int, hashes: frozenset[bytes]
) -> LogColumns:
    logs = read_logs(found, address, first, last)
    if not hashes.issuperset(logs.block_hashes):
        raise ValueError("a log is of another block")
    return logs
