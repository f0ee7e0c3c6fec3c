"""The data directory: where each file is, and the lock of the one process that changes it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from filelock import FileLock, Timeout

from capdex.errors import Code, Unavailable, UsageError
from capdex.net.files import saying, unusable

_FOLDERS: Final = ("blocks", "learned", "results")
_FILES: Final = (".json", ".jsonl", ".lock", ".sqlite")
WAIT_S: Final = 30.0  # a commit takes milliseconds, however many packages it is about


@dataclass
class Home:
    """The directory of one installation, for its user alone.

    The lock file, grants, state and the audit log are its content; blocks and `installed.sqlite`
    can be made again from the lock file.
    """

    path: Path

    def __post_init__(self) -> None:
        path = self.path
        self.audit = path / "audit.jsonl"
        self.blocks = path / "blocks"  # packages by CID
        self.derived = path / "installed.sqlite"  # what was derived from packages
        self.grants = path / "grants.json"
        self.learned = path / "learned"  # command-line tools
        self.lock_file = path / "capdex.lock"  # the list of what is installed
        self.pins = path / "pins.json"  # of tools of MCP services
        self.secrets = path / "secrets.json"  # where there is no keyring
        self.state = path / "state.sqlite"  # the objects that capabilities keep

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """Return the home at a path; its directory is made if it is not there.

        Raises UsageError UNREADABLE if it cannot be made, or if a file of it is something else: who
        opens a pipe waits for its writer.
        """
        path, fix = Path(path), "set CAPDEX_HOME to a directory of yours"
        with saying(f"the data directory {path} cannot be made", fix):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            for entry in path.iterdir():
                _check_kind(entry)
        return cls(path)

    @contextmanager
    def writing(self, wait_s: float = WAIT_S) -> Iterator[None]:
        """Hold the writer lock, which a killed process gives up.

        Raises Unavailable DATABASE_LOCKED if another process keeps it.
        """
        lock = FileLock(self.path / "writer.lock", timeout=wait_s, mode=0o600)
        try:
            lock.acquire()
        except Timeout:
            raise Unavailable(
                f"another process changes {self.path}",
                Code.DATABASE_LOCKED,
                why=f"it holds the writer lock for more than {wait_s:g} s",
                fix="wait until it is done, and try again",
            ) from None
        except OSError as error:
            fix = "see who owns it, its mode, and that the disk is not full"
            raise unusable(f"{self.path} cannot be written", error, fix) from None
        try:
            yield
        finally:
            lock.release()


def _check_kind(entry: Path) -> None:
    is_folder = entry.name in _FOLDERS
    fits = entry.is_dir() if is_folder else entry.is_file() or entry.suffix not in _FILES
    if not fits and entry.exists():  # a link to nothing does no harm
        why = f"it is not {'a folder' if is_folder else 'a regular file'}"
        fix = "remove it, or move it away"
        raise UsageError(f"{entry} cannot be used", Code.UNREADABLE, why=why, fix=fix)
