"""The registry contract, through web3: what it says, and transactions that change it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from eth_account.signers.local import LocalAccount
from web3.contract.async_contract import AsyncContract

from capdex.errors import Code, InvalidInput, Unavailable, UsageError
from capdex.events import (
    PUBLISHED,
    Event,
    LogPosition,
    Published,
    RawLog,
    checksum_address,
    decode,
)
from capdex.uri import name_id, skeleton
from publisher.chain import (
    DEFAULT_FEE_CAP_WEI,
    RECEIPT_WAIT_S,
    Chain,
    Mined,
    Sent,
    Transaction,
)
from publisher.reverts import artifact

NO_OWNER: Final = "0x" + "00" * 20
RELEASES_PAGE: Final = 100  # a release is some 300 bytes of reply
MAX_LOG_CALLS: Final = 64  # public endpoints limit ranges; an old event is not worth more calls


@dataclass(frozen=True, slots=True)
class Release:
    """One release as the contract keeps it."""

    cap_uri: str
    semver: str
    cid: str
    sha256: bytes
    yanked: bool
    deprecated: bool


@dataclass(frozen=True, slots=True)
class Receipt:
    """A mined transaction of ours and the event it left; hashes are 0x hex."""

    tx_hash: str
    block_number: int
    block_hash: str
    gas_used: int
    fee_wei: int
    event: Event


class Registry:
    """The registry at one address. Open it with `Registry.connect`, or on an open `Chain`.

    Every method raises Unavailable when the endpoint does not answer, and what the contract
    refuses as the errors of `publisher.reverts`.
    """

    def __init__(self, chain: Chain, address: str, *, start_block: int = 0) -> None:
        self.chain = chain
        self.address = address
        self.start_block = start_block
        self._contract: AsyncContract = chain.web3.eth.contract(
            address=_checksummed(address), abi=artifact()["abi"]
        )

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        rpc_url: str,
        address: str,
        chain_id: int,
        *,
        state_dir: Path,
        start_block: int = 0,
    ) -> AsyncIterator[Registry]:
        """Open the registry; raises Refused WRONG_CHAIN and UsageError NO_CONTRACT.

        `start_block` is the block of its deployment: no log is looked for below it.
        """
        checked = parse_address(address)
        async with Chain.connect(rpc_url, chain_id, state_dir=state_dir) as chain:
            if not await chain.code(checked):
                raise UsageError(
                    f"there is no contract at {checked} on chain {chain_id}",
                    Code.NO_CONTRACT,
                    why=f"asked {chain.endpoint.shown}",
                    fix="check the registry's address, or deploy one: capdex deploy",
                )
            yield cls(chain, checked, start_block=start_block)

    @property
    def chain_id(self) -> int:
        """The chain the registry lives on."""
        return self.chain.chain_id

    # ------------------------------------------------------------------------------------- reads

    async def owner_of(self, name: str) -> str | None:
        """The account that owns a name; None while nobody does."""
        owner = str(await self._read("ownerOf", name))
        return None if owner == NO_OWNER else owner

    async def release(self, name: str, semver: str) -> Release | None:
        """One release, or None."""
        try:
            return _release(await self._read("release", name, semver))
        except InvalidInput as error:
            if error.code is not Code.NOT_FOUND:
                raise
            return None

    async def releases(self, name: str) -> list[Release]:
        """All releases of a name, in order of publication."""
        found: list[Release] = []
        while True:
            page = await self._read("releases", name, len(found), RELEASES_PAGE)
            found += [_release(one) for one in page]
            if len(page) < RELEASES_PAGE:
                return found

    async def release_count(self, name: str) -> int:
        """How many releases a name has, yanked ones included."""
        return int(await self._read("releaseCount", name))

    async def index_of(self, name: str, semver: str) -> int:
        """The index of a release in its name's list; raises InvalidInput NOT_FOUND."""
        return int(await self._read("indexOf", name, semver))

    async def name_of_skeleton(self, name: str) -> str | None:
        """The name that looks like `name` (P1) and is taken; may be `name` itself."""
        return str(await self._read("nameOfSkeleton", skeleton(name))) or None

    async def balance(self, address: str) -> int:
        """An account's balance in wei."""
        return await self.chain.balance(address)

    async def find_publication(self, name: str, semver: str) -> Published | None:
        """The event that published a release, looked for from the head backwards.

        None when there is none, or when the endpoint's limits put it out of reach.
        """
        with self.chain.faults():
            head = int(await self.chain.web3.eth.block_number)
        first, span = self.start_block, head - self.start_block + 1
        last = head
        for _ in range(MAX_LOG_CALLS):
            if last < first or span < 1:
                break
            since = max(first, last - span + 1)
            try:
                logs = await self._logs(name, since, last)
            except Unavailable as error:
                if error.code is not Code.RPC_UNAVAILABLE:
                    raise
                span //= 4  # more blocks or logs than this endpoint gives at once
                continue
            for log in logs:
                event = self._decode(log)
                if isinstance(event, Published) and event.announcement.semver == semver:
                    return event
            last = since - 1
        return None

    # ------------------------------------------------------------------------------------ writes

    async def price_publish(
        self,
        sender: str,
        name: str,
        semver: str,
        cid: str,
        sha256: bytes,
        *,
        fee_cap_wei: int = DEFAULT_FEE_CAP_WEI,
    ) -> Transaction:
        """The priced, unsigned transaction that publishes a release; see `Chain.price`."""
        return await self._price(
            sender, "publish", name, semver, cid, sha256, fee_cap_wei=fee_cap_wei
        )

    async def price_yank(
        self,
        sender: str,
        name: str,
        semver: str,
        reason: str,
        *,
        fee_cap_wei: int = DEFAULT_FEE_CAP_WEI,
    ) -> Transaction:
        """The priced, unsigned transaction that yanks a release; raises NOT_FOUND besides."""
        index = await self.index_of(name, semver)
        return await self._price(
            sender, "yank", name, semver, index, reason, fee_cap_wei=fee_cap_wei
        )

    async def price_unyank(
        self, sender: str, name: str, semver: str, *, fee_cap_wei: int = DEFAULT_FEE_CAP_WEI
    ) -> Transaction:
        """The priced, unsigned transaction that takes a yank back; raises NOT_FOUND besides."""
        index = await self.index_of(name, semver)
        return await self._price(sender, "unyank", name, semver, index, fee_cap_wei=fee_cap_wei)

    async def send(
        self,
        account: LocalAccount,
        transaction: Transaction,
        *,
        on_signed: Callable[[Sent], None] | None = None,
    ) -> Sent:
        """Sign and send a priced transaction; see `Chain.send`."""
        return await self.chain.send(account, transaction, on_signed=on_signed)

    async def publish(
        self,
        account: LocalAccount,
        name: str,
        semver: str,
        cid: str,
        sha256: bytes,
        *,
        fee_cap_wei: int = DEFAULT_FEE_CAP_WEI,
    ) -> Sent:
        """Price, sign and send a publication in one go."""
        priced = await self.price_publish(
            account.address, name, semver, cid, sha256, fee_cap_wei=fee_cap_wei
        )
        return await self.send(account, priced)

    async def wait(self, tx_hash: str, *, timeout_s: float = RECEIPT_WAIT_S) -> Receipt:
        """Wait for a transaction of ours; raises TIMEOUT, or why the contract refused."""
        mined = await self.chain.wait(tx_hash, timeout_s=timeout_s)
        return Receipt(
            tx_hash=mined.tx_hash,
            block_number=mined.block_number,
            block_hash=mined.block_hash,
            gas_used=mined.gas_used,
            fee_wei=mined.fee_wei,
            event=self._event(mined),
        )

    # --------------------------------------------------------------------------------- internals

    def _event(self, mined: Mined) -> Event:
        for log in mined.logs:
            event = self._decode(log)
            if event is not None:
                return event
        raise Unavailable(
            f"transaction {mined.tx_hash} left no event of the registry",
            Code.RPC_UNAVAILABLE,
            why="its receipt does not fit the contract",
            fix="ask another endpoint (--rpc-url)",
        )

    def _decode(self, log: Any) -> Event | None:
        """An event of this registry; None for another contract's, or one that makes no sense."""
        with self.chain.faults():
            raw = raw_log(log)
        if raw.address != bytes.fromhex(self.address[2:]):
            return None
        try:
            return decode(raw, self.chain_id)
        except InvalidInput:
            return None

    async def _read(self, function: str, *arguments: Any) -> Any:
        with self.chain.faults():
            return await self._contract.functions[function](*arguments).call()

    async def _price(
        self, sender: str, function: str, *arguments: Any, fee_cap_wei: int
    ) -> Transaction:
        data: str = self._contract.encode_abi(function, args=arguments)
        return await self.chain.price(sender, self.address, data, fee_cap_wei=fee_cap_wei)

    async def _logs(self, name: str, first: int, last: int) -> Sequence[Any]:
        wanted: Any = {
            "address": self.address,
            "topics": ["0x" + PUBLISHED.hex(), "0x" + name_id(name).hex()],
            "fromBlock": first,
            "toBlock": last,
        }
        with self.chain.faults():
            return await self.chain.web3.eth.get_logs(wanted)


def parse_address(text: str) -> str:
    """An address in any case as EIP-55 text; raises UsageError (also for a wrong checksum)."""
    digits = text.removeprefix("0x")
    try:
        checked: str = checksum_address(bytes.fromhex(digits))
    except (ValueError, InvalidInput):
        raise UsageError(
            f"{text[:80]!r} is not an address", fix="write 0x and 40 hexadecimal digits"
        ) from None
    if digits not in (digits.lower(), digits.upper(), checked[2:]):
        raise UsageError(
            f"{text} has a wrong checksum",
            why=f"these digits are written {checked}",
            fix="copy the address again: a digit may be wrong",
        )
    return checked


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


def _release(values: Any) -> Release:
    cap_uri, semver, cid, sha256, yanked, deprecated = values
    return Release(cap_uri, semver, cid, bytes(sha256), yanked, deprecated)


def _checksummed(address: str) -> Any:
    return parse_address(address)
