"""The votes contract: what was voted on a name, and by whom."""

from __future__ import annotations

from dataclasses import dataclass

from publisher.chain import Chain
from publisher.contract import Contract, account_or_none


@dataclass(frozen=True, slots=True)
class Tally:
    """The sums of the weights of all votes on a name."""

    upvotes: int
    downvotes: int


class Votes(Contract):
    """The votes on the names of one registry; errors are those of `Contract`."""

    def __init__(self, chain: Chain, address: str, *, start_block: int = 0) -> None:
        super().__init__(chain, address, "CapabilityVotes", start_block=start_block)

    async def tally(self, name: str) -> Tally:
        """How the votes on a name stand."""
        upvotes, downvotes = await self.read("tally", name)
        return Tally(int(upvotes), int(downvotes))

    async def vote_of(self, name: str, voter: str) -> int:
        """An account's vote on a name: 1, -1, or 0 for none."""
        return int(await self.read("voteOf", name, voter))

    async def weight_of(self, voter: str) -> int:
        """What a vote of an account weighs."""
        return int(await self.read("weightOf", voter))

    async def registry(self) -> str | None:
        """The address of the registry whose names are voted on."""
        return account_or_none(await self.read("REGISTRY"))
