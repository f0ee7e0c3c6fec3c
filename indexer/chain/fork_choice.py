"""What several endpoints say of one block that was final: whose word counts?

Pure. One endpoint's word never undoes what was final: it takes two that are strangers to one
another, and more of them than still hold our block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MIN_WITNESSES = 2


@dataclass(frozen=True, slots=True)
class Word:
    """The hash that an endpoint gives for the block, None where it gives none.

    Endpoints of one `origin` (host and port) are one witness.
    """

    label: str
    origin: str
    hash: bytes | None


@dataclass(frozen=True, slots=True)
class Finding:
    """`gone` is the hash that replaces ours, where enough agree on it; `liars` contradict ours.

    Neither: nobody can tell. `liars` are named only where our block still stands.
    """

    gone: bytes | None = None
    liars: tuple[str, ...] = ()


def weigh(ours: bytes, words: Sequence[Word]) -> Finding:
    """Whether our block is gone, or who says so falsely."""
    origins: dict[bytes, set[str]] = {}
    for word in words:
        if word.hash is not None:
            origins.setdefault(word.hash, set()).add(word.origin)
    keepers = origins.pop(ours, set())
    theirs = max(origins, key=lambda hash_: (len(origins[hash_]), hash_), default=None)
    if theirs is not None and len(origins[theirs]) >= max(MIN_WITNESSES, len(keepers) + 1):
        return Finding(gone=theirs)
    if keepers:
        return Finding(liars=tuple(x.label for x in words if x.hash not in (None, ours)))
    return Finding()
