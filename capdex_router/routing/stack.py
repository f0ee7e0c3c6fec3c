"""The stack of a session: the active capabilities, the last one on top (NIP-7, Runtime). Pure.

A stack is a value; each change gives a new one. The time is passed in, in seconds of one clock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from capdex_router.model.refs import InvokeResult, structured_of

MAX_DEPTH: Final = 16  # the lowest capability leaves when one more comes
IDLE_S: Final = 30 * 60.0


@dataclass(frozen=True, slots=True)
class Stack:
    """Active capabilities by id, each once, and the time at which the session was last used."""

    capabilities: tuple[str, ...] = ()
    used_at: float = 0.0

    @property
    def top(self) -> str | None:
        """The capability that gets the next message; None if there is none."""
        return self.capabilities[-1] if self.capabilities else None

    def at(self, now: float) -> Stack:
        """Return the stack of a session that is used now: empty after IDLE_S without use."""
        if self.capabilities and now - self.used_at >= IDLE_S:
            return Stack((), now)
        return replace(self, used_at=now)

    def push(self, capability: str) -> Stack:
        """Put a capability on top; one that is lower in the stack moves up."""
        others = tuple(other for other in self.capabilities if other != capability)
        return replace(self, capabilities=(*others, capability)[-MAX_DEPTH:])

    def pop(self) -> Stack:
        """Take the top away, if there is one."""
        return replace(self, capabilities=self.capabilities[:-1])

    def without(self, capability: str) -> Stack:
        """Take a capability away wherever it is: it was removed."""
        left = tuple(other for other in self.capabilities if other != capability)
        return replace(self, capabilities=left)

    def after(self, capability: str, result: InvokeResult) -> Stack:
        """Return the stack after a result of a capability, or of one of its tools (`id#tool`).

        `"done": true` at the top level of the output of a call that succeeded pops the capability
        if it is on top, and nothing else: no capability ends the session of another one.
        """
        said = structured_of(result.output or {})
        done = result.ok and said.get("done") is True
        if done and capability.partition("#")[0] == self.top:
            return self.pop()
        return self
