"""What a sponsor has spent and set aside, in a file that survives a crash."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from capdex.errors import Code, Refused, UsageError
from publisher.ethereum.transaction import ether
from publisher.files import write_atomically


class Budget:
    """The most that a sponsor spends, in wei; `Budget.open` makes one.

    The most that a publication may cost is set aside before its first transaction, and the rest is
    given back when its cost is known. What was set aside when the process was killed stays counted.
    """

    def __init__(self, path: Path, limit_wei: int) -> None:
        self._path, self._limit_wei = path, limit_wei
        self._spent, self._reserved = _read(path)

    @classmethod
    @contextmanager
    def open(cls, path: Path, limit_wei: int) -> Iterator[Budget]:
        """Open the file for one process; raises UsageError if it cannot be used."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with FileLock(path.with_suffix(".lock"), timeout=0):
                yield cls(path, limit_wei)
        except Timeout:
            raise UsageError(
                "another sponsor uses this account already",
                why=f"it holds {path.with_suffix('.lock')}",
                fix="stop it, or use another account",
            ) from None

    @property
    def spent_wei(self) -> int:
        """What all publications have cost."""
        return self._spent

    @property
    def left_wei(self) -> int:
        """What is neither spent nor set aside."""
        return max(0, self._limit_wei - self._spent - sum(self._reserved.values()))

    def available(self, key: str) -> int:
        """Return the most that the publication `key` may cost: what is left and what it has."""
        return self.left_wei + self._reserved.get(key, 0)

    def has(self, key: str) -> bool:
        """Return True if something is set aside for a publication."""
        return key in self._reserved

    def reserve(self, key: str, wei: int) -> None:
        """Set this much aside for a publication; raises Refused FEE_OVER_CAP."""
        if wei > self.available(key):
            raise self.spent_up()
        self._reserved[key] = wei
        self._write()

    def charge(self, key: str, wei: int) -> None:
        """Count the fee of a mined transaction."""
        self._spent += wei
        self._reserved[key] = max(0, self._reserved.get(key, 0) - wei)
        self._write()

    def release(self, key: str) -> None:
        """Give back what is still set aside: nothing more is sent for the publication."""
        if self._reserved.pop(key, None) is not None:
            self._write()

    def forfeit(self, key: str) -> None:
        """Count all that is still set aside as spent: what it cost cannot be known."""
        if key in self._reserved:
            self.charge(key, self._reserved[key])
            self.release(key)

    def spent_up(self) -> Refused:
        """Return the error for a publication that the budget does not allow."""
        return Refused(
            "the sponsor's budget does not allow this publication",
            Code.FEE_OVER_CAP,
            why=f"{ether(self.left_wei)} of {ether(self._limit_wei)} are left",
            fix="ask the sponsor to raise the budget (capdex sponsor serve --budget)",
        )

    def _write(self) -> None:
        entry = {"spent_wei": self._spent, "reserved_wei": self._reserved}
        write_atomically(self._path, json.dumps(entry).encode("ascii"))


def _read(path: Path) -> tuple[int, dict[str, int]]:
    """Return what the file says; nothing spent if there is none. Raises UsageError UNREADABLE."""
    try:
        entry = json.loads(path.read_text("ascii"))
        spent, reserved = int(entry["spent_wei"]), entry["reserved_wei"]
        return spent, {str(key): int(wei) for key, wei in reserved.items()}
    except FileNotFoundError:
        return 0, {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"{path} does not say what was spent",
            Code.UNREADABLE,
            why=str(error),
            fix="restore the file; removing it begins a new budget",
        ) from None
