"""The lock file on disk: read when it changed, replaced as a whole by the one writer."""

from __future__ import annotations

from pathlib import Path

from capdex.net.files import drop_leftovers, sync_folder, write_whole
from capdex_router.home.shared_file import SharedFile
from capdex_router.install.lockfile import Lock


class LockStore(SharedFile[Lock]):
    """The lock file of a home, or where a link there leads. Only who holds the lock may `write`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.resolve(), Lock(), Lock.parse, Lock.to_bytes)

    def write(self, lock: Lock) -> None:
        """Replace the file: after a crash it holds the old or the new lock."""
        drop_leftovers(self._path)
        write_whole(self._path, lock.to_bytes())
        sync_folder(self._path.parent)  # the grants that were written before are durable, too
        self._value, self._seen = lock, self.stamp
