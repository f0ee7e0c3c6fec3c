"""The lock file on disk: read when it changed, replaced as a whole by the one writer."""

from __future__ import annotations

from pathlib import Path

from capdex.net.files import drop_leftovers, sync_folder, write_whole
from capdex_router.home.shared_file import SharedFile
from capdex_router.install.lockfile import Lock


class LockStore(SharedFile[Lock]):
    """The lock file of a home. Only the holder of the writer lock may call `write`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, Lock(), Lock.parse, Lock.to_bytes)

    def write(self, lock: Lock) -> None:
        """Replace the file: after a crash it holds the old or the new lock."""
        path = self._path.resolve()  # a link leads to a file that people share, as in a clone
        drop_leftovers(path)
        write_whole(path, lock.to_bytes())
        sync_folder(path.parent)  # the grants that were written before are durable, too
        self._value, self._seen = lock, self.stamp
