"""One contract of ours at one address: calls, priced transactions, receipts with their events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from web3.contract.async_contract import AsyncContract

from capdex.encoding.abi import parse_address
from capdex.errors import Code, InvalidInput, Unavailable
from capdex.registry.events import Event, LogPosition, RawLog, decode
from publisher.ethereum.client import Chain
from publisher.ethereum.revert_reasons import artifact
from publisher.ethereum.transaction import DEFAULT_FEE_CAP_WEI, Mined, Sent, Transaction
from publisher.keys.signer import Signer
from publisher.tx.confirm import RECEIPT_WAIT_S

NO_ADDRESS: Final = "0x" + "00" * 20


@dataclass(frozen=True, slots=True)
class Receipt:
    """A mined transaction of ours and the events it left, in order; hashes are 0x hex."""

    tx_hash: str
    block_number: int
    block_hash: str
    gas_used: int
    fee_wei: int
    events: tuple[Event, ...]

    @property
    def event(self) -> Event:
        """The event of a transaction that has one (`Sponsored` precedes the one it pays for)."""
        return self.events[-1]


class Contract:
    """A contract whose events `capdex.registry.events` decodes; `name` is that of its artifact.

    Every method raises Unavailable when the endpoint does not answer, and what the contract
    refuses as the errors of `publisher.ethereum.revert_reasons`. `start_block` is the block of its
    deployment:
    no log is looked for below it.
    """

    def __init__(self, chain: Chain, address: str, name: str, *, start_block: int = 0) -> None:
        self.chain = chain
        self.address = parse_address(address)
        self.start_block = start_block
        checked: Any = self.address
        self._contract: AsyncContract = chain.web3.eth.contract(
            address=checked, abi=artifact(name)["abi"]
        )

    @property
    def chain_id(self) -> int:
        """The chain the contract lives on."""
        return self.chain.chain_id

    async def read(self, function: str, *arguments: Any, block: int | None = None) -> Any:
        """Call a view, at the head or at a block."""
        with self.chain.faults():
            call = self._contract.functions[function](*arguments)
            return await call.call(block_identifier="latest" if block is None else block)

    async def price(
        self,
        sender: str,
        function: str,
        *arguments: Any,
        gas: int | None = None,
        fee_cap_wei: int = DEFAULT_FEE_CAP_WEI,
    ) -> Transaction:
        """The priced, unsigned transaction that calls a function; see `Chain.price`."""
        data: str = self._contract.encode_abi(function, args=arguments)
        return await self.chain.price(sender, self.address, data, gas=gas, fee_cap_wei=fee_cap_wei)

    async def send(
        self,
        signer: Signer,
        transaction: Transaction,
        *,
        on_signed: Callable[[Sent], None] | None = None,
    ) -> Sent:
        """Sign and send a priced transaction; see `Chain.send`."""
        return await self.chain.send(signer, transaction, on_signed=on_signed)

    async def wait(
        self,
        sent: Sent | str,
        *,
        timeout_s: float = RECEIPT_WAIT_S,
        signer: Signer | None = None,
        on_signed: Callable[[Sent], None] | None = None,
        done: Callable[[], Awaitable[bool]] | None = None,
    ) -> Receipt:
        """Wait for a transaction of ours, mending it where there is a signer; see `Chain.wait`."""
        mined = await self.chain.wait(
            sent, timeout_s=timeout_s, signer=signer, on_signed=on_signed, done=done
        )
        return self.receipt(mined)

    def receipt(self, mined: Mined) -> Receipt:
        """What a mined transaction did here; raises Unavailable if it left no event of ours."""
        events = self.decode(mined.logs)
        if not events:
            raise Unavailable(
                f"transaction {mined.tx_hash} left no event of the contract at {self.address}",
                Code.RPC_UNAVAILABLE,
                why="its receipt does not fit the contract",
                fix="ask another endpoint (--rpc-url)",
            )
        return Receipt(
            tx_hash=mined.tx_hash,
            block_number=mined.block_number,
            block_hash=mined.block_hash,
            gas_used=mined.gas_used,
            fee_wei=mined.fee_wei,
            events=events,
        )

    async def head(self) -> int:
        """The number of the newest block."""
        with self.chain.faults():
            return int(await self.chain.web3.eth.block_number)

    async def logs(
        self, topics: Sequence[str | Sequence[str] | None], first: int, last: int
    ) -> tuple[Event, ...]:
        """The contract's events of these topics (0x hex) in a range of blocks, both ends in it."""
        wanted: Any = {
            "address": self.address,
            "topics": list(topics),
            "fromBlock": first,
            "toBlock": last,
        }
        with self.chain.faults():
            found = await self.chain.web3.eth.get_logs(wanted)
        return self.decode(found)

    def decode(self, logs: Sequence[Any]) -> tuple[Event, ...]:
        """The events of this contract; logs of others, or that make no sense, are left out."""
        with self.chain.faults():
            raw = [raw_log(log) for log in logs]
        own = bytes.fromhex(self.address[2:])
        events = []
        for log in raw:
            if log.address == own:
                try:
                    events.append(decode(log, self.chain_id))
                except InvalidInput:
                    continue
        return tuple(events)


def account_or_none(address: object) -> str | None:
    """An address as a view gives it; None for the zero address, which stands for nobody."""
    return None if address == NO_ADDRESS else str(address)


def raw_log(log: Any) -> RawLog:
    """A log as web3 gives it, as the protocol core reads it."""
    return RawLog(
        address=bytes.fromhex(str(log["address"]).removeprefix("0x")),
        topics=tuple(bytes(topic) for topic in log["topics"]),
        data=bytes(log["data"]),
        position=LogPosition(
            block_number=int(log["blockNumber"]),
            block_hash=bytes(log["blockHash"]),
            tx_hash=bytes(log["transactionHash"]),
            log_index=int(log["logIndex"]),
        ),
    )
