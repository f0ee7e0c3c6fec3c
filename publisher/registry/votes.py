"""The votes contract: read and cast votes on names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from capdex.errors import Code, UsageError
from capdex.uri import check_name
from publisher.ethereum.client import Chain
from publisher.ethereum.contract import Contract, account_or_none
from publisher.registry.change import Change
from publisher.registry.permission import claimed
from publisher.registry.registry import Registry

CHOICES: Final = {"up": 1, "down": -1, "clear": 0}


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
        """Return the sums of the votes on a name."""
        upvotes, downvotes = await self.read("tally", name)
        return Tally(int(upvotes), int(downvotes))

    async def vote_of(self, name: str, voter: str) -> int:
        """Return an account's vote on a name: 1, -1, or 0 for none."""
        return int(await self.read("voteOf", name, voter))

    async def registry(self) -> str | None:
        """Return the address of the registry whose names are voted on."""
        return account_or_none(await self.read("REGISTRY"))


def vote(votes: Votes, registry: Registry, name: str, choice: str) -> Change:
    """Vote for (up) or against (down) a name, or take the vote back (clear)."""
    value = CHOICES[choice]

    async def stands(sender: str) -> bool:
        if (of := await votes.registry()) != registry.address:
            raise UsageError(
                f"the votes at {votes.address} are on the names of another registry",
                Code.CONFIG,
                why=f"they are on those of {of}, and the registry is {registry.address}",
                fix="correct votes of this network",
            )
        await claimed(registry, name)
        return await votes.vote_of(name, sender) == value

    async def arguments() -> tuple[Any, ...]:
        return check_name(name), value

    said = {"up": "your vote counts for it", "down": "your vote counts against it"}
    return Change(
        "vote", check_name(name), votes, "vote", stands, arguments,
        already="that is your vote already" if value else "you have no vote on it",
        effects=(said.get(choice, "your vote counts no more"), "you can change it at any time"),
        target=choice,
    )  # fmt: skip
