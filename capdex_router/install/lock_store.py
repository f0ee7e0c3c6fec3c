"""The lock file on disk: read when it changed, replaced as a whole by the one writer."""

from __future__ import annotations

import os.path
from pathlib import Path

from capdex.net.files import drop_leftovers, sync_folder, write_whole
from capdex_router.home.shared_file import SharedFile
from capdex_router.install.lockfile import Lock, Places


class LockStore(SharedFile[Lock]):
    """The lock file of a home, or where a link there leads. Only who holds the lock may `write`.

    Its folders are absolute in a value, and in the file as `Places` has them.
    """

    def __init__(self, path: Path) -> None:
        path = path.resolve()
        places = Places(str(path.parent), os.path.realpath(os.path.expanduser("~")))  # noqa: PTH111
        super().__init__(
            path,
            Lock(),
            parse=lambda data: Lock.parse(data).placed(places.read),
            dump=lambda lock: lock.placed(places.written).to_bytes(),
        )

    def write(self, lock: Lock) -> None:
        """Replace the file: after a crash it holds the old or the new lock."""
        drop_leftovers(self._path)
        write_whole(self._path, self._dump(lock))
        sync_folder(self._path.parent)  # the grants that were written before are durable, too
        self._value, self._seen = lock, self.stamp
