"""Questions to a person, and who asks them: an MCP client, a terminal, or nobody."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from router.model.requests import Request


@dataclass(frozen=True, slots=True)
class Question:
    """A question to the person whom the agent works for.

    `summary` is one sentence of ours; `lines` state the exact argument lists, or methods and hosts;
    `quoted` holds texts of a package, each with its label, cleaned of control characters and cut.
    `grant` is the command by which a person agrees outside of the agent's host.
    """

    summary: str
    lines: tuple[str, ...] = ()
    quoted: tuple[tuple[str, str], ...] = ()
    requests: tuple[Request, ...] = ()
    grant: str = ""
    kind: str = field(default="call", kw_only=True)  # call, install, upgrade, learn


class Asker(Protocol):
    """Asks a person a question: by MCP elicitation, in a terminal, or not at all."""

    async def ask(self, question: Question) -> bool:
        """Return True if the person agrees.

        Raises Refused CONFIRM_NEEDED if no person can be asked, with `question.grant` as its fix.
        """
        ...
