"""The directory of a local network: its lock, its keys, and what `--fresh` deletes."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from capdex.errors import Code, UsageError
from capdex.net.files import write_private_file
from capdex_publisher.keys import keystore as keys
from capdex_publisher.keys.secret import read_passphrase
from capdex_publisher.keys.signer import LocalSigner

MARKER: Final = ".capdex-up"  # only a directory with this file is ever emptied
LOCK: Final = "up.lock"


@dataclass(frozen=True, slots=True)
class NetworkDirectory:
    """The directory of one `capdex up`."""

    path: Path

    @contextmanager
    def locked(self, *, fresh: bool) -> Iterator[None]:
        """Lock the directory for this process, and empty it if `fresh`; raises UsageError."""
        self.path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path / LOCK, timeout=0)
        try:
            lock.acquire()
        except Timeout:
            raise UsageError(
                f"another `capdex up` runs in {self.path}",
                Code.CONFIG,
                why="a directory holds one chain, and one node's index of it",
                fix="use that one, stop it, or name another directory with --dir",
            ) from None
        try:
            if fresh:
                self._wipe()
            for part in ("keys", "blocks", "packages"):
                (self.path / part).mkdir(exist_ok=True)
            (self.path / MARKER).touch()
            yield
        finally:
            lock.release()

    def open_keys(self) -> tuple[LocalSigner, keys.DidKey]:
        """Open the publishing account and the author's key; create them at the first start.

        Their passphrase is a file beside them, since they protect only play money.
        """
        folder = self.path / "keys"
        phrase, account, author = (
            folder / file for file in ("passphrase", "account.json", "author.json")
        )
        if not phrase.exists():
            write_private_file(phrase, secrets.token_urlsafe(24).encode("ascii") + b"\n")
        passphrase = read_passphrase(file=phrase)
        if not account.exists():
            keys.create_account(account, passphrase, light=True)
        if not author.exists():
            keys.create_did_key(author, passphrase, light=True)
        return keys.load_account(account, passphrase), keys.load_did_key(author, passphrase)

    def drop_index(self) -> None:
        """Delete the index and its saved search: they can be built again from the chain."""
        for path in self.path.glob("index.db*"):
            _delete(path)

    def _wipe(self) -> None:
        """Delete everything in a directory that `capdex up` created."""
        left = [path for path in self.path.iterdir() if path.name != LOCK]
        if left and not (self.path / MARKER).exists():
            raise UsageError(
                f"{self.path} was not made by `capdex up`",
                Code.CONFIG,
                fix="remove it yourself, or name another directory with --dir",
            )
        for path in left:
            _delete(path)


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
