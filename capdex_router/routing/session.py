"""One session: its stack of capabilities, and what is mounted of its top (NIP-7, Runtime)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Final

from capdex.json import Json
from capdex_router.catalog.catalog import Catalog, Listed
from capdex_router.catalog.packages import unmet
from capdex_router.model.capability import Capability
from capdex_router.model.refs import InvokeResult
from capdex_router.routing.stack import Stack

if TYPE_CHECKING:
    from capdex_router.routing.index import TriggerIndex

CHOOSE: Final = "let the user choose, then route /switch NAME"
ALONE: Final = "find with the wish in a few words, or answer without a capability"
AT_ONCE: Final = 200  # more new capabilities are compiled in a thread: names work at once
MAX_TOOLS: Final = 64


class Session:
    """Routes the messages of one conversation."""

    def __init__(self, catalog: Catalog, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._catalog = catalog
        self._clock = clock
        self._stack = Stack()
        self._revision: object = None
        self._skills: dict[str, Listed] = {}

    def route(self, message: str) -> Json:
        """Return the capability that a message is for, and why.

        `{capability, why}`, with what to mount when it comes to the top; `{ambiguous, why}`: the
        user must choose; `{fallback, why}`: the agent answers by itself. Raises `Catalog.fault`
        instead of the last.
        """
        from capdex_router.routing.route import (  # its patterns are slow to compile
            Ambiguous,
            RoutedCapability,
            route,
        )

        self._refresh()
        answer, stack = route(message, self._stack, self._index, self._clock())
        mounts: Json = {}
        if isinstance(answer, RoutedCapability) and answer.capability != self._stack.top:
            mounts = self._mounted(answer.capability)  # raises if its package cannot be read
        self._stack = stack
        if isinstance(answer, RoutedCapability):
            return {"capability": answer.capability, "why": answer.why} | mounts
        if isinstance(answer, Ambiguous):
            names = list(answer.candidates)
            return {"ambiguous": names, "of": answer.total, "why": answer.why, "next": CHOOSE}
        if self._catalog.fault is not None:
            raise self._catalog.fault
        return {"fallback": True, "why": answer.why, "next": ALONE}

    @property
    def active(self) -> str | None:
        """The capability at the top of the stack."""
        return self._stack.top

    def answered(self, capability: Capability, result: InvokeResult) -> None:
        """Pop the capability if the output of its successful call says `{"done": true}`."""
        self._stack = self._stack.after(capability.ref.capability_id, result)

    @cached_property
    def _index(self) -> TriggerIndex:
        from capdex_router.routing.index import TriggerIndex

        return TriggerIndex()

    def _mounted(self, capability_id: str) -> Json:
        """Return prompt and tools of a capability, and what it asks of the model in vain."""
        skill = self._catalog.get(capability_id)
        tools = [listed.ref.capability_id for listed in self._catalog.tools(skill.ref)]
        mounted: Json = {"version": skill.ref.version, "tools": tools[:MAX_TOOLS]}
        if skill.prompt:
            mounted["prompt_of_publisher"] = skill.prompt
        warnings = unmet(self._skills[capability_id].llm_requirements)
        return mounted | ({"warnings": warnings} if warnings else {})

    def _refresh(self) -> None:
        if self._catalog.revision == self._revision:
            return
        self._revision = self._catalog.revision
        now = {x.ref.capability_id: x for x in self._catalog.latest() if x.kind == "skill"}
        for capability_id in self._skills.keys() - now.keys():
            self._index.remove(capability_id)
        changed = [x for key, x in now.items() if self._skills.get(key) != x]
        for listed in changed:
            self._index.add(listed.ref.capability_id, listed.triggers)
        self._skills = now
        if len(changed) <= AT_ONCE:
            self._index.compile()
        else:
            threading.Thread(target=self._index.compile, daemon=True).start()
