"""CMP's five methods, for programs on the socket: all domains, and the learned tools in them.

A person agrees to commands by `capdex grant`, whatever `confirm` says. A caller that speaks for its
user, as the specification has it, agrees itself: the person who starts the router decides that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from capdex.json import Json
from capdex_router.cmp.manifest import CommandTool, Intent
from capdex_router.cmp.protocol import Protocol
from capdex_router.commands.intents import Intents
from capdex_router.invoke.invoke import Caller
from capdex_router.model.refs import InvokeResult
from capdex_router.policy.proposal import Proposal

CALLER: Final = "socket, whose caller agrees"  # the session in the audit log


@dataclass(frozen=True, slots=True)
class Cmp:
    """The methods; with `caller_agrees` a request's `confirm` is consent."""

    intents: Intents
    caller_agrees: bool = False

    async def answer(self, request: Any, caller: Caller) -> Json:
        """Return the answer to a request of either shape; never raises."""
        if self.caller_agrees:
            caller = replace(caller, asker=_Agreed(), session=CALLER)

        async def invoke(tool: CommandTool, intent: Intent, arguments: Json) -> InvokeResult:
            return await self.intents.run(tool, intent, arguments, caller)

        domains = tuple(one.domain or "general" for one in self.intents.catalog.latest())
        return await Protocol(self.intents.tools.tools(), invoke, domains).answer(request)


class _Agreed:
    """Agrees: an intent that needs a confirmation has got it before it is invoked."""

    async def ask(self, proposal: Proposal) -> bool:
        return True
