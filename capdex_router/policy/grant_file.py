"""The file of grants, which several processes share."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from capdex_router.home.shared_file import SharedFile
from capdex_router.policy.grants import Grant, Grants


class GrantFile(SharedFile[Grants]):
    """Grants in a file for its user alone; a damaged one raises UsageError CONFIG."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        super().__init__(path, Grants(), Grants.parse, Grants.to_bytes)
        self._clock = clock

    def granted(self, owner: str, digest: str, tool: str) -> frozenset[str]:
        """Return the targets granted to a tool of an owner, whose content has this digest."""
        return self.read().of(owner, digest, tool, self._clock())

    def grant(self, grants: Iterable[Grant]) -> None:
        """Keep some more grants."""
        self.change(lambda before: before.plus(grants, self._clock()))

    def forget(self, digests: Collection[str]) -> None:
        """Remove the grants for some contents, which are not installed any more."""
        self.change(lambda before: before.without(digests))

    def revoke(self, name: str, target: str | None = None) -> int:
        """Take grants of a capability and its tools back; return how many there were."""
        before = self.change(lambda before: before.minus(name, target))
        return len(before.all) - len(before.minus(name, target).all)
