"""The votes of accounts on names, folded from the events of the votes contract alone."""

from __future__ import annotations

from dataclasses import dataclass, field

from capdex.errors import InvalidInput
from capdex.registry.events import Voted
from capdex.uri import check_name, name_id


@dataclass(slots=True)
class Votes:
    """What the contract keeps after `count` events: votes by name and account, and weights."""

    count: int = 0
    votes: dict[str, dict[str, int]] = field(default_factory=dict)
    weights: dict[str, int] = field(default_factory=dict)

    def apply(self, event: Voted) -> None:
        """Fold in the next event; raises InvalidInput, changing nothing, if it cannot be that.

        Whether the name is claimed is not looked at: that stands in the log of another contract.
        """
        why = self._objection(event)
        if why:
            raise InvalidInput(f"vote {event.sequence} cannot have happened", why=why)
        self.votes.setdefault(event.name, {})[event.by] = event.vote
        self.weights[event.by] = event.weight
        self.count += 1

    def vote_of(self, name: str, account: str) -> int:
        """1, -1, or 0 for none."""
        return self.votes.get(name, {}).get(account, 0)

    def tally(self, name: str) -> tuple[int, int]:
        """The sums of the weights for and against."""
        cast = self.votes.get(name, {}).items()
        up, down = (sum(self.weights[who] for who, x in cast if x == vote) for vote in (1, -1))
        return up, down

    def _objection(self, event: Voted) -> str:
        if event.sequence != self.count + 1:
            return f"vote {self.count + 1} is next"
        if name_id(check_name(event.name)) != event.name_id:
            return "its name id is another name's"
        if event.vote not in (-1, 0, 1):
            return f"a vote is 1, -1 or 0, not {event.vote}"
        if event.vote == self.vote_of(event.name, event.by):
            return "nothing would change"
        if event.weight == 0 or self.weights.get(event.by, event.weight) != event.weight:
            return "what an account's vote weighs is not zero, and never changes"
        return ""
