"""The lock file on disk: read when it changed, replaced as a whole by the one writer."""

from __future__ import annotations

from pathlib import Path

from capdex.net.files import drop_leftovers, read_bounded, sync_folder, write_whole
from capdex_router.install.lockfile import MAX_BYTES, Lock


class LockStore:
    """The lock file of a home. Only the holder of the writer lock may call `write`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: object = None
        self._lock = Lock()

    @property
    def stamp(self) -> object:
        """A value that is equal as long as the file is the same."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def read(self) -> Lock:
        """Return the lock; raises UsageError CONFIG if the file is damaged."""
        stamp = self.stamp
        if stamp is None:
            return Lock()
        if stamp != self._seen:
            data = read_bounded(self._path, MAX_BYTES)
            self._lock = Lock() if data is None else Lock.parse(data)
            self._seen = stamp
        return self._lock

    def write(self, lock: Lock) -> None:
        """Replace the file: after a crash it holds the old or the new lock."""
        drop_leftovers(self._path)
        write_whole(self._path, lock.to_bytes())
        sync_folder(self._path.parent)  # the grants that were written before are durable, too
        self._lock, self._seen = lock, self.stamp
