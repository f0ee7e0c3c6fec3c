"""What a sponsor has spent and set aside, in a file that survives a crash."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from capdex.errors import Code, Refused, Unavailable, UsageError
from capdex.net.files import write_atomically
from capdex_publisher.ethereum.transaction import ether

DAY_S: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Share:
    """What one account may cause within 24 hours: publications, and fees in wei (None: any)."""

    publications: int = 20
    wei: int | None = None


class Budget:
    """The most that a sponsor spends, and what it has spent, in wei; `Budget.open` makes one.

    A key is `<account>-<sha256>` of a publication. Each try of one that costs something counts to
    its account, however it ends.

    The most that a publication may cost is set aside before its first transaction, and the rest is
    given back when its cost is known. What was set aside when the process was killed stays counted.
    """

    def __init__(
        self,
        path: Path,
        limit_wei: int,
        share: Share = Share(),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path, self._limit_wei = path, limit_wei
        self._share, self._clock = share, clock
        self.spent_wei, self._reserved, self._begun = _read(path)

    @classmethod
    @contextmanager
    def open(cls, path: Path, limit_wei: int, share: Share = Share()) -> Iterator[Budget]:
        """Open the file for one process; raises UsageError if it cannot be used."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with FileLock(path.with_suffix(".lock"), timeout=0):
                yield cls(path, limit_wei, share)
        except Timeout:
            raise UsageError(
                "another sponsor uses this account already",
                why=f"it holds {path.with_suffix('.lock')}",
                fix="stop it, or use another account",
            ) from None

    @property
    def left_wei(self) -> int:
        """What is neither spent nor set aside."""
        return max(0, self._limit_wei - self.spent_wei - sum(self._reserved.values()))

    def available(self, key: str) -> int:
        """Return the most that the publication `key` may cost: what is left and what it has."""
        return self.left_wei + self._reserved.get(key, 0)

    def has(self, key: str) -> bool:
        """Return True if something is set aside for a publication."""
        return key in self._reserved

    def check_account(self, key: str) -> None:
        """Raise Unavailable RATE_LIMITED if the account has had its share of the last 24 hours.

        Its details say after how many seconds the first publication that counts is a day old
        (`retry_after_s`). A publication that something is set aside for goes on.
        """
        if self.has(key):
            return
        account, now = key.partition("-")[0], self._clock()
        recent = [y for x, y in self._begun.items() if x.startswith(account) and y[0] > now - DAY_S]
        most, fees = self._share.wei, sum(wei for _, wei in recent)
        if len(recent) >= self._share.publications or (most is not None and fees >= most):
            after_s = int(min((x for x, _ in recent), default=now) + DAY_S - now) + 1
            raise Unavailable(
                f"{account} has had its share of the last 24 hours",
                Code.RATE_LIMITED,
                why=f"{len(recent)} publications cost {ether(fees)}",
                fix=f"try again in {-(-after_s // 3600)} h; "
                "the sponsor sets the share (--account-publications, --account-budget)",
                details={"retry_after_s": after_s},
            )

    def reserve(self, key: str, wei: int) -> None:
        """Set this much aside for a publication; raises Refused FEE_OVER_CAP."""
        if wei > self.available(key):
            raise self.spent_up()
        if not self.has(key) and (ended := self._begun.pop(key, (0.0, 0)))[1]:
            self._begun[f"{key}-{ended[0]}"] = ended  # counts beside this try
        self._reserved[key] = wei
        self._begun.setdefault(key, (self._clock(), 0))
        self._write()

    def charge(self, key: str, wei: int) -> None:
        """Count the fee of a mined transaction."""
        self.spent_wei += wei
        began, fees = self._begun.get(key, (self._clock(), 0))
        self._begun[key] = began, fees + wei
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
        since = self._clock() - DAY_S
        self._begun = {x: y for x, y in self._begun.items() if y[0] > since or x in self._reserved}
        entry = {
            "spent_wei": self.spent_wei,
            "reserved_wei": self._reserved,
            "begun": self._begun,  # [seconds since 1970, fees in wei] by publication
        }
        write_atomically(self._path, json.dumps(entry).encode("ascii"))


def _read(path: Path) -> tuple[int, dict[str, int], dict[str, tuple[float, int]]]:
    """Return what the file says; nothing spent if there is none. Raises UsageError UNREADABLE."""
    try:
        entry = json.loads(path.read_text("ascii"))
        spent, reserved = int(entry["spent_wei"]), entry["reserved_wei"]
        begun = {
            str(key): (float(at), int(wei)) for key, (at, wei) in entry.get("begun", {}).items()
        }
        return spent, {str(key): int(wei) for key, wei in reserved.items()}, begun
    except FileNotFoundError:
        return 0, {}, {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"{path} does not say what was spent",
            Code.UNREADABLE,
            why=str(error),
            fix="restore the file; removing it begins a new budget",
        ) from None
