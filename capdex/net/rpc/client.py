"""JSON-RPC to an EVM chain: bounded, batched, with several endpoints failed over.

Replies are bounded before they are parsed. A malformed log fails its range only, and a range that
is too large is not requested again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Self, TypeVar

from capdex.encoding.hexadecimal import to_hex, unhex
from capdex.errors import Code, UsageError
from capdex.net.rpc.abilities import Abilities, as_is, first_block
from capdex.net.rpc.endpoint import Endpoint, EndpointState, labels, split_schemes
from capdex.net.rpc.errors import RpcError, RpcFault, rpc_error
from capdex.net.rpc.failover import MAX_ATTEMPTS, Failover, clock
from capdex.net.rpc.pacing import MAX_BATCH, Breaker
from capdex.net.rpc.transport import Call, PlainTransport, ReadReply, Transport, read_in_thread
from capdex.net.rpc.types import Header, quantity, read_header, read_logs
from capdex.net.tasks import together
from capdex.registry.logs import BlockRef, LogColumns, RawLog

BATCHES_AT_ONCE = 4
SURVEY_WAIT_S = 5.0  # an endpoint that pauses for longer is left out of a survey
BACKOFF_BASE_S = 0.25
BACKOFF_CAP_S = 15.0  # a node has to recover within a minute after its endpoints
REFUSALS = 2  # of a call that an endpoint may never answer
TAG_WAIT_S = 1.0  # for a pause of the endpoint that is asked for its finalized block
AVOIDED_S = 60.0  # after a contradiction, while another endpoint exists

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EndpointAnswer(Generic[T]):
    """The answer of one endpoint; two of one `origin` (host and port) count as one."""

    label: str
    origin: str
    answer: T | RpcError


class Rpc(Failover):
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
        super().__init__(endpoints, transport or PlainTransport(), read_reply, max_attempts)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    # ------------------------------------------------------------------------------ endpoints

    @property
    def endpoint(self) -> str:
        """The endpoint used last, without its credentials."""
        return self.current.label

    @property
    def alone(self) -> bool:
        """True if there is only one endpoint."""
        return len(self.endpoints) == 1

    def endpoints_state(self) -> list[EndpointState]:
        """Return the state of each endpoint, in the order given."""
        now = clock()
        return [x.state(now, current=x is self.current) for x in self.endpoints]

    @property
    def abilities(self) -> Abilities:
        """What the endpoint used last can do, as far as `look` or a refusal has led to probes."""
        return self.current.abilities

    def expect(self, chain_id: int, genesis: bytes = b"") -> None:
        """Verify each endpoint's chain before its first use and after an outage.

        `genesis` is the hash of the first block, if it is known; zeros stand for none.
        """
        if genesis not in (b"", self._genesis):
            self._genesis = genesis
            self.doubt()
        self._chain_id = chain_id

    def doubt(self) -> None:
        """Verify each endpoint's chain again before its next use."""
        for endpoint in self.endpoints:
            endpoint.doubt()

    async def lacks(self, name: str) -> bool:
        """True if the endpoint used last lacks an ability, probed if that is not known."""
        return await self.able(self.current, name) is False

    async def look(self) -> None:
        """Probe the abilities of all endpoints that are not known, or of a client before."""
        await together([self.look_at(endpoint) for endpoint in self.endpoints])

    async def first_block(self) -> bytes | None:
        """Return the hash of the first block; None if an endpoint keeps neither it nor the next."""

        async def ask(method: str, params: Sequence[Any], read: Callable[[Any], Any]) -> Any:
            (answer,), _ = await self.ask([(method, params)], read, refusals=1)
            return answer

        return await first_block(ask)

    def blame(self, why: str, label: str | None = None) -> RpcError:
        """Avoid an endpoint that contradicted itself; return the error to raise.

        The endpoint is the current one unless named by `label`. The others are preferred for
        AVOIDED_S; the only endpoint pauses.
        """
        now, endpoint = clock(), self.current
        if label is not None:
            endpoint = next(x for x in self.endpoints if x.label == label)
        error = rpc_error(endpoint.label, RpcFault.TRANSIENT, why)
        if len(self.endpoints) > 1:
            endpoint.avoided_until, endpoint.last_error = now + AVOIDED_S, error
        else:
            endpoint.cool_down(error, now)
        return error

    async def survey(
        self, method: str, params: Sequence[Any] = (), read: Callable[[Any], T] = as_is
    ) -> list[EndpointAnswer[T]]:
        """Send one call to every endpoint; return each result, or the RpcError instead."""

        async def ask(endpoint: Endpoint) -> EndpointAnswer[T]:
            try:
                (answer,), _ = await self.ask(
                    [(method, params)], read, only=endpoint, wait_s=SURVEY_WAIT_S
                )
            except RpcError as error:
                return EndpointAnswer(endpoint.label, endpoint.origin, error)
            return EndpointAnswer(endpoint.label, endpoint.origin, answer)

        return await together([ask(endpoint) for endpoint in self.endpoints])

    # ---------------------------------------------------------------------------------- calls

    async def call(
        self, method: str, params: Sequence[Any] = (), read: Callable[[Any], T] = as_is
    ) -> T:
        """Return the result of one call, parsed by `read`; raises RpcError.

        A ValueError of `read` is a fault of the endpoint.
        """
        (result,), _ = await self.ask([(method, params)], read)
        return result

    async def batch(self, calls: Sequence[Call], read: Callable[[Any], T] = as_is) -> list[T]:
        """Return the results of many calls, in their order; raises RpcError if one fails."""
        pieces = [calls[at : at + MAX_BATCH] for at in range(0, len(calls), MAX_BATCH)]
        results: list[T] = []
        for at in range(0, len(pieces), BATCHES_AT_ONCE):
            beside = pieces[at : at + BATCHES_AT_ONCE]
            for answers, _ in await together([self.ask(piece, read) for piece in beside]):
                results += answers
        return results

    async def chain_id(self) -> int:
        """Return the chain id."""
        return await self.call("eth_chainId", (), quantity)

    async def block(self, number: int | str) -> Header | None:
        """Return a block's header by number or tag, or None."""
        tag = number if isinstance(number, str) else hex(number)
        return await self.call("eth_getBlockByNumber", [tag, False], read_header)

    async def finalized_block(self) -> Header | None:
        """Return the header of the tag `finalized` by the endpoint used last, or None.

        Many chains have no such tag, and say so in many ways: an RpcError that is `answered`.
        """
        call, current = ("eth_getBlockByNumber", ["finalized", False]), self.current
        (header,), _ = await self.ask(
            [call], read_header, only=current, wait_s=TAG_WAIT_S, refusals=REFUSALS
        )
        return header

    async def block_of(self, hash_: bytes) -> Header | None:
        """Return a block's header by its hash, or None."""
        return await self.call("eth_getBlockByHash", [to_hex(hash_), False], read_header)

    async def blocks(self, numbers: Sequence[int]) -> list[Header | None]:
        """Return the headers of these numbers in order; None for a missing one."""
        calls = [("eth_getBlockByNumber", [hex(n), False]) for n in numbers]
        return await self.batch(calls, read_header)

    async def logs(self, address: bytes, first: int, last: int) -> list[RawLog]:
        """Return a contract's logs in blocks `first` to `last` (inclusive), in canonical order."""
        read = partial(read_logs, address=address, first=first, last=last)
        return list((await self.weighed_logs(address, first, last, read))[0])

    async def weighed_logs(
        self, address: bytes, first: int, last: int, read: Callable[[Any], T]
    ) -> tuple[T, int]:
        """Return a contract's logs, parsed by `read`, and the size of the reply in bytes.

        A range that is refused REFUSALS times is an RpcError that is `answered`: endpoints agree
        on no code or words for one that is too wide.
        """
        query = {"address": to_hex(address), "fromBlock": hex(first), "toBlock": hex(last)}
        refusals = REFUSALS if first < last else None
        (logs,), size = await self.ask([("eth_getLogs", [query])], read, refusals=refusals)
        return logs, size

    async def logs_at(self, address: bytes, blocks: Sequence[Header]) -> list[LogColumns]:
        """Return a contract's logs in each of these blocks, requested by block hash.

        From an endpoint without that ability they are requested by number, and the hashes of the
        numbers are read again behind them; one that has changed is an RpcError UNKNOWN_BLOCK.
        """
        if self.abilities.logs_by_hash is not False:
            by_hash = [{"blockHash": to_hex(block.hash)} for block in blocks]
            try:
                return await self._logs_at(address, blocks, by_hash)
            except RpcError as error:
                if not error.is_refusal or not await self.lacks("logs_by_hash"):
                    raise
        numbers = [hex(block.number) for block in blocks]
        by_number = [{"fromBlock": number, "toBlock": number} for number in numbers]
        logs = await self._logs_at(address, blocks, by_number)
        await self._check_hashes(blocks)
        return logs

    async def _logs_at(
        self, address: bytes, blocks: Sequence[Header], queries: Sequence[dict[str, str]]
    ) -> list[LogColumns]:
        hashes = frozenset(block.hash for block in blocks)
        first, last = blocks[0].number, blocks[-1].number
        read = partial(_read_logs_at, address=address, first=first, last=last, hashes=hashes)
        calls = [("eth_getLogs", [{"address": to_hex(address), **query}]) for query in queries]
        return await self.batch(calls, read)

    async def view(self, address: bytes, data: bytes, block: BlockRef | str = "latest") -> bytes:
        """Return the output of a contract call at a tag or a block, by hash as `logs_at` does."""
        at: Any = block
        by_number = self.abilities.calls_by_hash is False
        if isinstance(block, BlockRef):
            at = hex(block.number) if by_number else {"blockHash": to_hex(block.hash)}
        call = {"to": to_hex(address), "data": to_hex(data)}
        output = await self.call("eth_call", [call, at], unhex)
        if isinstance(block, BlockRef) and by_number:
            await self._check_hashes([block])
        return output

    async def _check_hashes(self, blocks: Sequence[BlockRef]) -> None:
        again = await self.blocks([block.number for block in blocks])
        if [header and header.hash for header in again] != [block.hash for block in blocks]:
            why = "a block changed while it was read by number"
            raise rpc_error(self.endpoint, RpcFault.UNKNOWN_BLOCK, why)

    async def code(self, address: bytes, block: str = "latest") -> bytes:
        """Return the code at an address; empty if there is none."""
        return await self.call("eth_getCode", [to_hex(address), block], unhex)


def _read_logs_at(
    answer: object, address: bytes, first: int, last: int, hashes: frozenset[bytes]
) -> LogColumns:
    logs = read_logs(answer, address, first, last)
    if not hashes.issuperset(logs.block_hashes):
        raise ValueError("a log is of another block")
    return logs
