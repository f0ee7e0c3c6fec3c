"""Who asks a person about a proposal: an MCP client, a terminal, or nobody."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final, Protocol
from unicodedata import category

from capdex.errors import Code, Refused
from capdex.yaml.characters import BLANK, beginning, forbidden
from capdex_router.policy.proposal import Proposal
from capdex_router.policy.quoting import JOINERS, quoted

MAX_WORDS_CHARS: Final = 300  # of a package's description
_WHOSE: Final = {"mcp": "the server's own words", "learned": "the words of its help or its intents"}
PAGE_CHARS: Final = 4_000  # of one question in a dialog of a host
MAX_PAGES: Final = 4  # more of them nobody reads in a dialog
MAX_TOUCHES: Final = 8  # lines of an error, which a model reads: each may have 2 048 characters


class Asker(Protocol):
    """Asks a person about a proposal: by MCP elicitation, in a terminal, or not at all."""

    async def ask(self, proposal: Proposal) -> bool:
        """Return True if the person agrees to all of it.

        Raises Refused CONFIRM_NEEDED if no person can be asked, with the proposal's command.
        """
        ...


class Refuse:
    """Asks nobody: every proposal is answered by the command that grants what it is about."""

    async def ask(self, proposal: Proposal) -> bool:
        """Raise Refused CONFIRM_NEEDED."""
        raise needs_person(proposal)


def needs_person(proposal: Proposal, why: str = "") -> Refused:
    """Return the error for a proposal that no person can be asked about here."""
    touches = [access.lines[0] for access in proposal.accesses]
    more = [f"and {len(touches) - MAX_TOUCHES} more"] if len(touches) > MAX_TOUCHES else []
    return Refused(
        "a person must agree to this first; until then, calling again is of no use",
        Code.CONFIRM_NEEDED,
        why=why or proposal.summary,
        fix=_by_a_person(proposal),
        details={"touches": touches[:MAX_TOUCHES] + more},
    )


async def agree(
    proposal: Proposal, asker: Asker, audit: Callable[..., None], **about: object
) -> None:
    """Ask, and put the answer on record before anything happens; `about` is of the call.

    Raises Refused NO_CONSENT for a no, and as `Asker.ask`. A host without a person also says no, by
    itself: the error says what a person can run.
    """
    agreed = await asker.ask(proposal)
    audit("consent", **{**about, **proposal.audited()}, agreed=agreed)
    if agreed:
        return
    raise Refused(
        "nobody agreed to this, so nothing was changed; calling again is of no use",
        Code.NO_CONSENT,
        why=f"the answer to the question was no: {proposal.summary}",
        fix=_by_a_person(proposal),
    )


def _by_a_person(proposal: Proposal) -> str:
    return f"a person can run: {shlex.join(proposal.command)}"


def text(proposal: Proposal) -> str:
    """Return a proposal as plain text: our sentence and lines, then the package's quoted words."""
    return "\n".join(_rows(proposal))


def pages(proposal: Proposal) -> list[str]:
    """Return the text in pages of at most PAGE_CHARS (or one line) each; no line is cut.

    Raises Refused CONFIRM_NEEDED if there are more than MAX_PAGES, or no person could follow it.
    """
    page_rows: list[list[str]] = [[]]
    size = 0
    for row in _rows(proposal):
        if page_rows[-1] and size + len(row) > PAGE_CHARS:
            if len(page_rows) == MAX_PAGES:
                raise _too_long(proposal)
            page_rows.append([])
            size = 0
        page_rows[-1].append(row)
        size += len(row) + 1
    last = len(page_rows)
    if last > 1:
        for number, page in enumerate(page_rows, 1):
            means = "agrees to all pages" if number == last else "shows the next, and does nothing"
            page.append(f"Page {number} of {last}: a yes {means}.")
    return ["\n".join(page) for page in page_rows]


def _too_long(proposal: Proposal) -> Refused:
    """Return the error for what no dialog can show, with the command that shows all of it."""
    error = needs_person(proposal, f"it fills more than {MAX_PAGES} questions")
    if proposal.kind == "call":
        command = ("capdex", "call", f"{proposal.capability_id}@{proposal.version}", "-")
        plan = shlex.join([*command, "--plan"])
        shown = f"a person can run: {plan}, with the input on stdin, to see all of it"
        return replace(error, fix=f"{shown}; without --plan to be asked")
    return error


def _rows(proposal: Proposal) -> Iterator[str]:
    yield proposal.summary
    yield from (f"  {row}" for row in proposal.rows())
    whose = _WHOSE.get(proposal.capability_id.partition(":")[0], "the package's own words")
    for label, said in proposal.words:
        yield f"{label} ({whose}): {quoted(said, MAX_WORDS_CHARS)}"


def clean(text: str, limit: int = MAX_WORDS_CHARS) -> str:
    """Return a package's text for a list: in one line, cut, without what does not show.

    Those are control, format (also those that turn the direction of a text), surrogate and private
    characters, variation selectors and fillers; but the joiners that a script or an emoji needs.
    """
    text = beginning(text, 4 * limit)
    unseen = set(forbidden(text))
    shown = "".join(
        " " if char.isspace() else char
        for place, char in enumerate(text)
        if char.isspace()
        or (
            not (place in unseen or char in BLANK) and (category(char)[0] != "C" or char in JOINERS)
        )
    )
    words = " ".join(shown.split())
    return words if len(words) <= limit else beginning(words, limit - 1) + "…"


class AnswerLater(Exception):
    """Raised by an asker that has handed the proposal over: the call comes again with the answer.

    It passes through everything unchanged; nothing that the proposal is about has happened.
    """

    def __init__(self, proposal: Proposal) -> None:
        super().__init__(proposal.summary)
        self.proposal = proposal
