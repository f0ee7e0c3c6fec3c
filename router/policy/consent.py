"""Questions to a person, and who asks them: an MCP client, a terminal, or nobody."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from typing import Final, Protocol

from capdex.errors import Code, Refused
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


MAX_QUOTED_CHARS: Final = 300


class Refuse:
    """Asks nobody: every question is answered by the command that grants what it is about."""

    async def ask(self, question: Question) -> bool:
        """Raise Refused CONFIRM_NEEDED."""
        raise needs_person(question)


def needs_person(question: Question) -> Refused:
    """Return the error for a question that no person can be asked here."""
    return Refused(
        "a person must agree to this first",
        Code.CONFIRM_NEEDED,
        why=question.summary,
        fix=f"run: {question.grant}" if question.grant else "",
        details={"touches": list(question.lines)},
    )


def clean(text: str, limit: int = MAX_QUOTED_CHARS) -> str:
    """Return a package's text for a person: in one line, cut, without what does not show.

    Control, format (also those that turn the direction of a text), surrogate and private characters
    are left out.
    """
    shown = "".join(
        " " if char.isspace() else char
        for char in text[: 4 * limit]
        if char.isspace() or unicodedata.category(char)[0] != "C"
    )
    words = " ".join(shown.split())
    return words if len(words) <= limit else words[: limit - 1] + "…"


def text(question: Question) -> str:
    """Return a question as plain text: our sentence, what is touched, then the quoted words."""
    quoted = (f"{label} (the package's own words): “{said}”" for label, said in question.quoted)
    return "\n".join((question.summary, *(f"  {line}" for line in question.lines), *quoted))


class AnswerLater(Exception):
    """Raised by an asker that has handed the question over: the call comes again with the answer.

    It passes through everything unchanged; nothing that the question is about has happened.
    """

    def __init__(self, question: Question) -> None:
        super().__init__(question.summary)
        self.question = question
