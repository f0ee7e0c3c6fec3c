"""Access to one of our contracts: calls, priced transactions, receipts, events.

`scan` reads events from the head backwards, in ranges that the endpoint accepts.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Final

from capdex.encoding.abi import parse_address, raw_address
from capdex.encoding.contract_abi import functions
from capdex.errors import Code, InvalidInput, Unavailable, UsageError
from capdex.net.rpc.errors import RpcError, RpcFault
from capdex.net.rpc.types import read_logs
from capdex.registry.events import Event, decode
from capdex.registry.logs import RawLog
from capdex.registry.state import ZERO_ADDRESS
from capdex_publisher.ethereum.client import Block, Chain
from capdex_publisher.ethereum.transaction import DEFAULT_FEE_CAP_WEI, Mined, Transaction

MAX_CALLS: Final = 256  # at 10 000 blocks each, a year of the slowest common chain
SHRINK: Final = 4

Topics = Sequence[str | Sequence[str] | None]  # 0x hex; a list means any of these, None means any


@dataclass(frozen=True, slots=True)
class Receipt(Mined):
    """A mined transaction and the events it left in our contract, in order."""

    events: tuple[Event, ...]


class Contract:
    """A contract whose events `capdex.registry.events` decodes; `name` is that of its artifact.

    Every method raises Unavailable when the endpoint does not answer, and the errors of
    `ethereum.revert_reasons` when the contract refuses. `start_block` is the block of the
    contract's deployment: older logs are not requested.
    """

    def __init__(self, chain: Chain, address: str, name: str, *, start_block: int = 0) -> None:
        self.chain = chain
        self.address = parse_address(address)
        self.start_block = start_block
        self._raw_address = raw_address(address)
        self._functions = functions(name)

    @property
    def chain_id(self) -> int:
        """The chain of the contract."""
        return self.chain.chain_id

    async def require_code(self) -> None:
        """Raise UsageError NO_CONTRACT if nothing stands at the address."""
        if not await self.chain.code(self.address):
            raise UsageError(
                f"there is no contract at {self.address} on chain {self.chain_id}",
                Code.NO_CONTRACT,
                why=f"asked {self.chain.rpc.endpoint}",
                fix="check its address, or deploy one: capdex deploy",
            )

    async def read(self, function: str, *arguments: object, block: Block = "latest") -> Any:
        """Call a view, at the head or at a block."""
        view = self._functions[function]

        def decoded(reply: bytes) -> Any:
            try:
                return view.decode(reply)
            except ValueError as error:
                words = f"{error} for {function}; is {self.address} the contract of this network?"
                raise ValueError(words) from None

        return await self.chain.call(self.address, view.encode(arguments), decoded, block)

    async def price(
        self,
        sender: str,
        function: str,
        *arguments: object,
        immature_gas: int | None = None,
        fee_cap_wei: int = DEFAULT_FEE_CAP_WEI,
    ) -> Transaction:
        """Return the priced, unsigned transaction that calls a function; see `Chain.price`."""
        data = self._functions[function].encode(arguments)
        return await self.chain.price(
            sender, self.address, data, immature_gas=immature_gas, fee_cap_wei=fee_cap_wei
        )

    def receipt(self, mined: Mined) -> Receipt:
        """Return a mined transaction with its events; raises Unavailable if it left none here."""
        events = self._decode(mined.logs)
        if not events:
            raise Unavailable(
                f"transaction {mined.tx_hash} left no event of the contract at {self.address}",
                Code.RPC_UNAVAILABLE,
                why="its receipt does not fit the contract",
                fix="ask another endpoint (--rpc-url)",
            )
        return Receipt(**{x.name: getattr(mined, x.name) for x in fields(mined)}, events=events)

    async def logs(self, topics: Topics, first: int, last: int) -> tuple[Event, ...]:
        """Return the contract's events of these topics in blocks `first` to `last`, inclusive."""
        query = {
            "address": self.address,
            "topics": list(topics),
            "fromBlock": hex(first),
            "toBlock": hex(last),
        }
        read = partial(read_logs, address=self._raw_address, first=first, last=last)
        return self._decode(await self.chain.rpc.call("eth_getLogs", [query], read))

    def _decode(self, logs: Iterable[RawLog]) -> tuple[Event, ...]:
        """Decode the events of this contract; skip logs of other contracts and malformed ones."""
        events = []
        for log in logs:
            if log.address == self._raw_address:
                try:
                    events.append(decode(log, self.chain_id))
                except InvalidInput:
                    continue
        return tuple(events)


def account_or_none(address: str) -> str | None:
    """Return the address that a view gave; None for the zero address, which means no account."""
    return None if address == ZERO_ADDRESS else address


async def scan(
    contract: Contract, topics: Topics, *, upto: int | None = None
) -> AsyncIterator[tuple[Event, ...]]:
    """Iterate over the events of `topics` range by range, the newest range first.

    Within a range the events are in the order of the chain. Ends at the block of the contract's
    deployment; raises Unavailable RPC_UNAVAILABLE if the endpoint's limits do not allow to get
    there.
    """
    first = contract.start_block
    last = await contract.chain.head() if upto is None else upto
    span = last - first + 1
    for _ in range(MAX_CALLS):
        if last < first:
            return
        since = max(first, last - span + 1)
        try:
            events = await contract.logs(topics, since, last)
        except RpcError as error:
            if span == 1 or not _may_be_too_large(error):
                raise
            span = max(1, span // SHRINK)
            continue
        yield events
        last = since - 1
    if last >= first:
        raise Unavailable(
            f"the history of the contract at {contract.address} is out of reach",
            Code.RPC_UNAVAILABLE,
            why=f"{contract.chain.rpc.endpoint} gives too few blocks at once",
            fix="use another endpoint (--rpc-url), or set start-block of this network to the block "
            "of the deployment",
        )


async def all_events(contract: Contract, topics: Topics, *, upto: int | None = None) -> list[Event]:
    """Return all events of `topics` in the order of the chain; raises like `scan`."""
    ranges = [events async for events in scan(contract, topics, upto=upto)]
    return [event for events in reversed(ranges) for event in events]


def _may_be_too_large(error: RpcError) -> bool:
    """True if fewer blocks or logs may help: endpoints state their limits in many ways."""
    return error.is_refusal or error.fault in (RpcFault.TOO_LARGE_RANGE, RpcFault.TIMEOUT)
