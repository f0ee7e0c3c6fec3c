"""The registry contract: its views, its events, and the transactions that change it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from capdex.encoding.abi import parse_address
from capdex.encoding.hexadecimal import to_hex
from capdex.errors import Code, InvalidInput, Unavailable
from capdex.registry.events import PUBLISHED, Event, Published
from capdex.registry.state import NameState, ReleaseState
from capdex.uri import name_id, skeleton
from capdex_publisher import errors
from capdex_publisher.ethereum.client import Block, Chain
from capdex_publisher.ethereum.contract import Contract, account_or_none, all_events, scan

RELEASES_PAGE: Final = 100  # a release is some 300 bytes of reply


class Registry(Contract):
    """The registry at one address; errors are those of `Contract`.

    Open it with `Registry.connect`, or on an open `Chain`.
    """

    def __init__(self, chain: Chain, address: str, *, start_block: int = 0) -> None:
        super().__init__(chain, address, "CapabilityRegistry", start_block=start_block)

    @classmethod
    @asynccontextmanager
    async def connect(
        cls, rpc_url: str, address: str, chain_id: int, *, state_dir: Path, start_block: int = 0
    ) -> AsyncIterator[Registry]:
        """Open it for one `async with`; raises Refused WRONG_CHAIN and UsageError NO_CONTRACT."""
        parse_address(address)
        async with Chain.connect(rpc_url, chain_id, state_dir=state_dir) as chain:
            registry = cls(chain, address, start_block=start_block)
            await registry.require_code()
            yield registry

    # ------------------------------------------------------------------------------------- names

    async def name_state(self, name: str, *, block: Block = "latest") -> NameState | None:
        """Return what the contract keeps of a name, at the head or at a block.

        None if the name was never claimed. Maintainers, texts and releases are not filled in.
        """
        return (await self.name_record(name, block=block))[0]

    async def name_record(
        self, name: str, *, block: Block = "latest"
    ) -> tuple[NameState | None, int]:
        """Return a name as `name_state` does, and the number of its releases."""
        owner, pending, count, epoch, deprecated = await self.read("nameRecord", name, block=block)
        state = NameState(account_or_none(owner), account_or_none(pending), epoch)
        state.deprecated = deprecated
        return (state if state.owner or epoch else None), count

    async def claimed(self, name: str) -> NameState:
        """Return a name that was claimed; raises InvalidInput NOT_FOUND."""
        state = await self.name_state(name)
        if state is None:
            raise errors.no_such_name(name)
        return state

    async def owned(self, name: str, account: str) -> NameState:
        """Return a name that an account owns; raises NOT_FOUND and Refused NOT_OWNER."""
        state = await self.claimed(name)
        if state.owner is None:
            raise errors.given_up(name)
        if state.owner != account:
            raise errors.not_owner(name, account, state.owner)
        return state

    async def owner_of(self, name: str) -> str | None:
        """Return the account that owns a name, or None."""
        return account_or_none(await self.read("ownerOf", name))

    async def is_maintainer(self, name: str, address: str) -> bool:
        """Return True if an account may change releases of a name that it does not own."""
        return bool(await self.read("isMaintainer", name, address))

    async def name_of_skeleton(self, name: str) -> str | None:
        """Return the claimed name that looks like `name` (P1), which may be `name` itself."""
        return await self.read("nameOfSkeleton", skeleton(name)) or None

    # ---------------------------------------------------------------------------------- releases

    async def release(self, name: str, semver: str) -> ReleaseState | None:
        """Return one release, or None; its publisher and sequence are only in the log."""
        try:
            return _release(await self.read("release", name, semver))
        except InvalidInput as error:
            if error.code is not Code.NOT_FOUND:
                raise
            return None

    async def own_release(self, name: str, semver: str, account: str) -> ReleaseState:
        """Return a release that an account may change; raises NOT_FOUND and Refused NOT_OWNER."""
        state = await self.claimed(name)
        release = await self.release(name, semver)
        if release is None:
            raise errors.no_such_release(name, semver)
        if state.owner is None:
            raise errors.given_up(name)
        if state.owner != account and not await self.is_maintainer(name, account):
            raise errors.not_maintainer(name, account, state.owner)
        return release

    async def releases(self, name: str) -> list[ReleaseState]:
        """Return all releases of a name in order of publication."""
        releases: list[ReleaseState] = []
        while True:
            page = await self.read("releases", name, len(releases), RELEASES_PAGE)
            releases += [_release(release) for release in page]
            if len(page) < RELEASES_PAGE:
                return releases

    async def index_of(self, name: str, semver: str) -> int:
        """Return the index of a release in its name's list; raises InvalidInput NOT_FOUND."""
        return int(await self.read("indexOf", name, semver))

    # ------------------------------------------------------------------------------ commitments

    async def committed_at(self, commitment: bytes) -> int:
        """Return the block time (seconds) at which a commitment was last made; 0 when never."""
        return int(await self.read("committedAt", commitment))

    async def commitment_ages(self) -> tuple[int, int]:
        """Return the least and greatest age of a commitment in seconds; 0: none is needed."""
        return await self.read("MIN_COMMITMENT_AGE"), await self.read("MAX_COMMITMENT_AGE")

    async def signature_number(self, account: str, block: Block = "latest") -> int:
        """Return the number of the next signature by which an account publishes (P12)."""
        return int(await self.read("nonces", account, block=block))

    # -------------------------------------------------------------------------------------- logs

    async def history(self, name: str, *, upto: int | None = None) -> tuple[Event, ...]:
        """Return all events of a name in order, up to a block; raises like `scan`."""
        return tuple(await all_events(self, [None, _topic(name)], upto=upto))

    async def find_publication(self, name: str, semver: str) -> Published | None:
        """Return the event that published a release, searched from the head backwards.

        None if there is none, or if the endpoint's limits do not allow to search that far.
        """
        topics = [to_hex(PUBLISHED), _topic(name)]
        try:
            async for events in scan(self, topics):
                for event in events:
                    if isinstance(event, Published) and event.announcement.semver == semver:
                        return event
        except Unavailable as error:
            if error.code is not Code.RPC_UNAVAILABLE:
                raise
        return None


def _release(values: Any) -> ReleaseState:
    _, semver, cid, sha256, yanked, deprecated = values
    return ReleaseState(semver, cid, sha256, "", 0, yanked=yanked, deprecated=deprecated)


def _topic(name: str) -> str:
    return to_hex(name_id(name))
