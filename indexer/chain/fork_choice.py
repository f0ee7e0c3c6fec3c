"""Fork choice by quorum: which endpoints' hash of a block that was final counts.

Pure. A final block is replaced only if at least two endpoints of different origin agree on another
hash, and more of them than still hold ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

QUORUM = 2  # origins


@dataclass(frozen=True, slots=True)
class HashReport:
    """The hash that an endpoint gives for the block, or None.

    Endpoints of one `origin` (host and port) count once.
    """

    label: str
    origin: str
    hash: bytes | None


@dataclass(frozen=True, slots=True)
class ForkChoice:
    """The decision: `replaced_by` is the agreed other hash, `wrong` the endpoints that contradict.

    `wrong` is filled only while our block still stands; if both are empty, nothing can be decided.
    """

    replaced_by: bytes | None = None
    wrong: tuple[str, ...] = ()


def choose_fork(ours: bytes, reports: Sequence[HashReport]) -> ForkChoice:
    """Decide by the reports of all endpoints if our block is replaced or still stands."""
    origins: dict[bytes, set[str]] = {}
    for report in reports:
        if report.hash is not None:
            origins.setdefault(report.hash, set()).add(report.origin)
    for_ours = origins.pop(ours, set())
    other = max(origins, key=lambda hash_: (len(origins[hash_]), hash_), default=None)
    if other is not None and len(origins[other]) >= max(QUORUM, len(for_ours) + 1):
        return ForkChoice(replaced_by=other)
    if for_ours:
        return ForkChoice(wrong=tuple(x.label for x in reports if x.hash not in (None, ours)))
    return ForkChoice()
