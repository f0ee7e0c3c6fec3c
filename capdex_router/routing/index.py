"""An index of the triggers and the names of installed capabilities.

`add` and `remove` are known by name at once, and hit by messages after `compile`, which may run in
a thread; until it ends, hits are those of before.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from capdex.manifest.triggers import Trigger
from capdex.routing.matches import TriggerHit
from capdex.routing.patterns import distinct, traits
from capdex.routing.text import bounded, fold
from capdex_router.routing.trigger_table import TriggerTable


class TriggerIndex:
    """The triggers of the installed capabilities. One thread reads and changes it."""

    def __init__(self) -> None:
        self._triggers: dict[str, tuple[Trigger, ...]] = {}
        self._names: dict[str, str] = {}  # the short name of each capability
        self._table = TriggerTable()
        self._pending: dict[str, None] = {}
        self._lock = threading.Lock()  # for `_triggers`, `_pending` and `_table`
        self._compiling = threading.Lock()

    def __contains__(self, capability: object) -> bool:
        return capability in self._triggers

    @property
    def ready(self) -> bool:
        """True if every trigger is compiled."""
        return not self._pending

    def add(self, capability: str, triggers: Iterable[Trigger]) -> None:
        """Add a capability, or replace its triggers; until `compile`, only its name is found."""
        self.remove(capability)
        self._names[capability] = short_name(capability)
        with self._lock:
            self._triggers[capability] = tuple(dict.fromkeys(triggers))
            self._pending[capability] = None

    def remove(self, capability: str) -> None:
        """Remove a capability, if it is there; no message hits it any more."""
        if capability not in self._triggers:
            return
        del self._names[capability]
        with self._lock:
            del self._triggers[capability]
            self._table.remove(capability)
            self._pending.pop(capability, None)

    def compile(self) -> None:
        """Bring in what was added since the last time; may run in a thread beside the readers."""
        with self._compiling:
            while True:
                with self._lock:
                    if not self._pending:
                        return
                    name = next(iter(self._pending))
                    own = self._triggers[name]
                known = {pattern: traits(pattern) for pattern in distinct(own)}
                with self._lock:
                    if self._triggers.get(name) is own:
                        self._table.add(name, known)
                        del self._pending[name]

    def hits(self, message: str) -> list[TriggerHit]:
        """Return the triggers that the beginning of a message hits, in no order.

        Equal patterns of one capability are one hit, and so are keywords that fold alike, with the
        first of them. The message is bounded here (text.MAX_MESSAGE_BYTES).
        """
        with self._lock:
            return self._table.hits(message)

    def named(self, name: str) -> list[str]:
        """Return the capabilities with exactly this id or short name, sorted."""
        if name in self._triggers:
            return [name]
        folded = fold(bounded(name)).strip()
        return sorted(capability for capability, own in self._names.items() if own == folded)

    def starting(self, prefix: str) -> list[str]:
        """Return the capabilities whose short name or id starts so, sorted; "" gives all."""
        folded = fold(bounded(prefix)).strip()
        return sorted(
            capability
            for capability, own in self._names.items()
            if own.startswith(folded) or capability.startswith(folded)
        )


def short_name(capability: str) -> str:
    """Return the last part of an id, folded: `note` of `did:nuwa:cap:note`."""
    return fold(capability.rpartition(":")[2])
