"""The file of grants, which several processes share: read when it changed, written as a whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from filelock import FileLock

from router.policy.grants import Grant, Grants


class GrantFile:
    """Grants in a file for its user alone; `write` writes a file as a whole or not at all."""

    def __init__(
        self,
        path: Path,
        write: Callable[[Path, bytes], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = path
        self._write = write
        self._clock = clock
        self._lock = FileLock(path.with_name(path.name + ".lock"), mode=0o600)
        self._seen: object = None
        self._grants = Grants()

    def read(self) -> Grants:
        """Return all grants; raises UsageError CONFIG if the file is damaged."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return Grants()
        seen = (found.st_ino, found.st_mtime_ns, found.st_size)
        if seen != self._seen:
            self._grants, self._seen = Grants.parse(self._path.read_bytes()), seen
        return self._grants

    def granted(self, digest: str, tool: str) -> frozenset[str]:
        """Return the targets granted to a tool of the content with this digest."""
        return self.read().of(digest, tool, self._clock())

    def grant(self, grants: Iterable[Grant]) -> None:
        """Keep some more grants."""
        with self._lock:
            self._write(self._path, self.read().plus(grants, self._clock()).to_bytes())

    def forget(self, digests: Collection[str]) -> None:
        """Remove the grants for some contents, which are not installed any more."""
        with self._lock:
            before = self.read()
            after = before.without(digests)
            if len(after.all) != len(before.all):
                self._write(self._path, after.to_bytes())

    def revoke(self, name: str, tool: str | None = None, target: str | None = None) -> int:
        """Take grants of a capability back; return how many there were."""
        with self._lock:
            before = self.read()
            after = before.minus(name, tool, target)
            self._write(self._path, after.to_bytes())
        return len(before.all) - len(after.all)
