"""The registry contract, through web3: what it says, and transactions that change it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from capdex.encoding.abi import parse_address
from capdex.errors import Code, InvalidInput, Unavailable, UsageError
from capdex.registry.events import PUBLISHED, Event, Published
from capdex.uri import name_id, skeleton
from publisher.ethereum import log_scan as history
from publisher.ethereum.client import Chain
from publisher.ethereum.contract import Contract, account_or_none
from publisher.ethereum.transaction import DEFAULT_FEE_CAP_WEI, Sent, Transaction
from publisher.keys.signer import Signer

RELEASES_PAGE: Final = 100  # a release is some 300 bytes of reply


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
class NameRecord:
    """What the contract keeps of a name; `epoch` counts how often it has changed hands."""

    owner: str | None
    pending_owner: str | None
    release_count: int
    epoch: int
    deprecated: bool

    @property
    def renounced(self) -> bool:
        """Whether its owner gave it up: nobody can ever own it again."""
        return self.owner is None and self.epoch > 0

    @property
    def claimed(self) -> bool:
        """Whether somebody ever claimed it."""
        return self.owner is not None or self.epoch > 0


class Registry(Contract):
    """The registry at one address; errors are those of `Contract`.

    Open it with `Registry.connect`, or on an open `Chain`.
    """

    def __init__(self, chain: Chain, address: str, *, start_block: int = 0) -> None:
        super().__init__(chain, address, "CapabilityRegistry", start_block=start_block)

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
        """Open the registry; raises Refused WRONG_CHAIN and UsageError NO_CONTRACT."""
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

    # ------------------------------------------------------------------------------------- names

    async def name_record(self, name: str, *, block: int | None = None) -> NameRecord:
        """What is kept of a name, at the head or at a block; empty when it was never claimed."""
        owner, pending, count, epoch, deprecated = await self.read("nameRecord", name, block=block)
        return NameRecord(
            account_or_none(owner), account_or_none(pending), int(count), int(epoch), deprecated
        )

    async def owner_of(self, name: str) -> str | None:
        """The account that owns a name; None while nobody does."""
        return account_or_none(await self.read("ownerOf", name))

    async def is_maintainer(self, name: str, address: str) -> bool:
        """Whether an account may publish, yank and deprecate releases without owning the name."""
        return bool(await self.read("isMaintainer", name, address))

    async def is_reserved(self, name: str) -> bool:
        """Whether a name looks like a word that nobody may claim."""
        return bool(await self.read("isReserved", name))

    async def name_of_skeleton(self, name: str) -> str | None:
        """The name that looks like `name` (P1) and is taken; may be `name` itself."""
        return str(await self.read("nameOfSkeleton", skeleton(name))) or None

    # ---------------------------------------------------------------------------------- releases

    async def release(self, name: str, semver: str) -> Release | None:
        """One release, or None."""
        try:
            return _release(await self.read("release", name, semver))
        except InvalidInput as error:
            if error.code is not Code.NOT_FOUND:
                raise
            return None

    async def releases(self, name: str) -> list[Release]:
        """All releases of a name, in order of publication."""
        found: list[Release] = []
        while True:
            page = await self.read("releases", name, len(found), RELEASES_PAGE)
            found += [_release(one) for one in page]
            if len(page) < RELEASES_PAGE:
                return found

    async def release_count(self, name: str) -> int:
        """How many releases a name has, yanked ones included."""
        return int(await self.read("releaseCount", name))

    async def index_of(self, name: str, semver: str) -> int:
        """The index of a release in its name's list; raises InvalidInput NOT_FOUND."""
        return int(await self.read("indexOf", name, semver))

    # ------------------------------------------------------------------------------ commitments

    async def committed_at(self, commitment: bytes) -> int:
        """The time, in seconds, of the block in which a commitment was last made; 0 when never."""
        return int(await self.read("committedAt", commitment))

    async def commitment_ages(self) -> tuple[int, int]:
        """How old a commitment has to be and may be, in seconds; a minimum of 0: none needed."""
        least, most = await self.read("MIN_COMMITMENT_AGE"), await self.read("MAX_COMMITMENT_AGE")
        return int(least), int(most)

    async def nonce_of(self, address: str) -> int:
        """The nonce that the next signature of a publisher has to carry."""
        return int(await self.read("nonces", address))

    async def balance(self, address: str) -> int:
        """An account's balance in wei."""
        return await self.chain.balance(address)

    # -------------------------------------------------------------------------------------- logs

    async def history(self, name: str, *, upto: int | None = None) -> tuple[Event, ...]:
        """All events of a name in order, up to a block; raises like `publisher.history.pieces`."""
        return tuple(await history.events(self, [None, _topic(name)], upto=upto))

    async def find_publication(self, name: str, semver: str) -> Published | None:
        """The event that published a release, looked for from the head backwards.

        None when there is none, or when the endpoint's limits put it out of reach.
        """
        head, topics = await self.head(), ["0x" + PUBLISHED.hex(), _topic(name)]
        try:
            async for piece in history.pieces(self, topics, upto=head):
                for event in piece:
                    if isinstance(event, Published) and event.announcement.semver == semver:
                        return event
        except Unavailable as error:
            if error.code is not Code.RPC_UNAVAILABLE:
                raise
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
        return await self.price(
            sender, "publish", name, semver, cid, sha256, fee_cap_wei=fee_cap_wei
        )

    async def publish(
        self,
        signer: Signer,
        name: str,
        semver: str,
        cid: str,
        sha256: bytes,
        *,
        fee_cap_wei: int = DEFAULT_FEE_CAP_WEI,
    ) -> Sent:
        """Price, sign and send a publication in one go."""
        priced = await self.price_publish(
            signer.address, name, semver, cid, sha256, fee_cap_wei=fee_cap_wei
        )
        return await self.send(signer, priced)


def _release(values: Any) -> Release:
    cap_uri, semver, cid, sha256, yanked, deprecated = values
    return Release(cap_uri, semver, cid, bytes(sha256), yanked, deprecated)


def _topic(name: str) -> str:
    return "0x" + name_id(name).hex()
