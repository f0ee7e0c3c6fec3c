"""Consent over MCP: the host asks its user, in both revisions of the protocol.

Up to 2025-11-25 the server sends `elicitation/create` while the call waits. From 2026-07-28 on the
call ends with an InputRequiredResult, and comes again with the answer. An answer counts once, for
the exact proposal and arguments that it was given for.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from capdex_router.policy.consent import AnswerLater, needs_person, pages
from capdex_router.policy.proposal import Proposal

KEY: Final = "consent"
ANSWER_S: Final = 600.0
MAX_PENDING: Final = 256
# Without fields: a host shows its two keys, and nobody has to tick a box to mean yes.
FORM: Final[dict[str, Any]] = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class _Round:
    """A question that is with the person, of one call, and what was answered before it.

    `asked` is the key of the proposal and its page.
    """

    call: bytes
    asked: bytes
    answers: Mapping[bytes, bool]
    until: float


@dataclass
class Questions:
    """Questions of one connection that wait for their answers (2026-07-28)."""

    waiting: dict[str, _Round] = field(default_factory=dict)

    def keep(self, call: bytes, asked: bytes, answers: Mapping[bytes, bool]) -> str:
        """Keep a question; return the state with which its answer comes."""
        now = time.monotonic()
        fresh = {state: kept for state, kept in self.waiting.items() if now < kept.until}
        while len(fresh) >= MAX_PENDING:
            fresh.pop(next(iter(fresh)))
        state = secrets.token_urlsafe(16)
        fresh[state] = _Round(call, asked, answers, now + ANSWER_S)
        self.waiting = fresh
        return state

    def take(self, state: str | None, call: bytes, given: object) -> dict[bytes, bool]:
        """Return the answers to the questions of a call that came again; a state counts once."""
        kept = self.waiting.pop(state, None) if state is not None else None
        if kept is None or kept.call != call or time.monotonic() >= kept.until:
            return {}
        answers = dict(kept.answers)
        if isinstance(given, types.ElicitResult):
            answers[kept.asked] = given.action == "accept"
        return answers


class Elicitation:
    """Asks by the client of one call."""

    def __init__(
        self,
        context: ServerRequestContext[Any, Any],
        params: types.CallToolRequestParams,
        questions: Questions,
    ) -> None:
        self._context = context
        self._questions = questions
        called = json.dumps([params.name, params.arguments], sort_keys=True)
        self._call = hashlib.sha256(called.encode("ascii")).digest()
        responses = params.input_responses or {}
        self._answers = questions.take(params.request_state, self._call, responses.get(KEY))

    async def ask(self, proposal: Proposal) -> bool:
        """Return the person's answer; what fills several questions needs a yes to each.

        Raises AnswerLater in the revision of 2026-07-28, and Refused CONFIRM_NEEDED if the client
        cannot ask, or does not answer in time, or would have to ask too many questions.
        """
        if not _can_ask(self._context.session.client_capabilities):
            raise needs_person(proposal)
        later = self._context.protocol_version in MODERN_PROTOCOL_VERSIONS
        for number, page in enumerate(pages(proposal)):
            asked = _key(proposal, number)
            if asked not in self._answers:
                if later:
                    raise AnswerLater(proposal)
                self._answers[asked] = await self._answer(proposal, page)
            if not self._answers[asked]:
                return False
        return True

    async def _answer(self, proposal: Proposal, page: str) -> bool:
        try:
            async with asyncio.timeout(ANSWER_S):
                answer = await self._context.session.elicit_form(
                    page, FORM, self._context.request_id
                )
        except (TimeoutError, MCPError, ValueError):
            raise needs_person(proposal) from None
        return answer.action == "accept"

    def required(self, proposal: Proposal) -> types.InputRequiredResult:
        """Return the result that hands the first page without an answer over to the client."""
        shown = pages(proposal)
        number = next(i for i in range(len(shown)) if _key(proposal, i) not in self._answers)
        state = self._questions.keep(self._call, _key(proposal, number), self._answers)
        params = types.ElicitRequestFormParams(message=shown[number], requested_schema=FORM)
        return types.InputRequiredResult(
            input_requests={KEY: types.ElicitRequest(params=params)}, request_state=state
        )


def _key(proposal: Proposal, page: int) -> bytes:
    """Return what an answer counts for: a page of just this proposal, and of no other bytes."""
    return hashlib.sha256(proposal.key + page.to_bytes(4)).digest()


def _can_ask(capabilities: types.ClientCapabilities | None) -> bool:
    elicitation = capabilities.elicitation if capabilities is not None else None
    # A bare `elicitation: {}` means forms, the only mode there was at first.
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)
