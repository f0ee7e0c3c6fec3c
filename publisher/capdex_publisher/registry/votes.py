"""Vote on names, in the votes contract of a registry."""

from __future__ import annotations

from typing import Final

from capdex.errors import Code, UsageError
from capdex_publisher.ethereum.contract import Contract
from capdex_publisher.registry.change import RegistryChange, name_change
from capdex_publisher.registry.registry import Registry

CHOICES: Final = {"up": 1, "down": -1, "clear": 0}


def vote(votes: Contract, registry: Registry, name: str, choice: str) -> RegistryChange:
    """Vote for (up) or against (down) a name, or take the vote back (clear)."""
    value = CHOICES[choice]

    async def stands(sender: str) -> bool:
        if (of := await votes.read("REGISTRY")) != registry.address:
            raise UsageError(
                f"the votes at {votes.address} are on the names of another registry",
                Code.CONFIG,
                why=f"they are on those of {of}, and the registry is {registry.address}",
                fix="correct votes of this network",
            )
        await registry.claimed(name)
        return bool(await votes.read("voteOf", name, sender) == value)

    said = {"up": "your vote counts for it", "down": "your vote counts against it"}
    return name_change(
        votes, name, "vote", "vote", (value,), stands,
        already="that is your vote already" if value else "you have no vote on it",
        effects=(said.get(choice, "your vote counts no more"), "you can change it at any time"),
        target=choice,
    )  # fmt: skip
