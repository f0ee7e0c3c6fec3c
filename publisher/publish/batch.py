"""Divide releases into batches: one transaction for as many as pay to be sent together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from publisher.commit_reveal.commitment import NO_SECRET
from publisher.publish.preflight import Candidate

# A transaction of its own costs 92 000 gas for a further release, in a batch it is 62 000 each:
# two pay already. A hundred are 7 million gas and 45 kB of calldata, well below what a transaction
# may take (16.7 million, EIP-7825) and what nodes pass on (128 KiB).
MAX_BATCH: Final = 100
BLOCK_SHARE: Final = 4  # a batch takes a quarter of a block's gas at most: larger ones wait long

# Highest gas of a publication, where it cannot be estimated: a claim reverts until its commitment
# is old enough. Measured: 142 000 for a first release with short texts, 291 000 with the
# longest name and version; a long text takes a word of storage for each 32 bytes besides.
CLAIM_GAS: Final = 155_000
MAX_SHORT_NAME: Final = 31
NAME_WORD_GAS: Final = 36_000
MAX_SHORT_SEMVER: Final = 30
SEMVER_WORD_GAS: Final = 45_000

Secrets = Mapping[str, bytes]  # of names that are claimed by a commitment


def divide(
    candidates: Sequence[Candidate], block_gas_limit: int
) -> tuple[tuple[Candidate, ...], ...]:
    """Divide candidates, in order, into batches that fit into a block beside others."""
    batches: list[list[Candidate]] = []
    room = 0
    for candidate in candidates:
        gas = gas_bound([candidate])
        if not batches or len(batches[-1]) == MAX_BATCH or gas > room:
            batches.append([])
            room = block_gas_limit // BLOCK_SHARE
        batches[-1].append(candidate)
        room -= gas
    return tuple(map(tuple, batches))


def gas_bound(candidates: Sequence[Candidate]) -> int:
    """Return the most gas that publishing them takes, even if each claims its name."""
    return sum(claim_gas(one.name, one.announcement.semver) for one in candidates)


def claim_gas(name: str, semver: str = "") -> int:
    """Return the most gas that a claim takes; with a version, the release included."""
    name_words = _words(name) if len(name) > MAX_SHORT_NAME else 0
    semver_words = _words(semver) if len(semver) > MAX_SHORT_SEMVER else 0
    return CLAIM_GAS + name_words * NAME_WORD_GAS + semver_words * SEMVER_WORD_GAS


def call(candidates: Sequence[Candidate], secrets: Secrets) -> tuple[str, tuple[Any, ...]]:
    """Return the contract's function that publishes them, and its arguments."""
    values = [
        (
            one.name,
            one.announcement.semver,
            one.announcement.cid,
            one.announcement.sha256,
            secrets.get(one.name, NO_SECRET),
        )
        for one in candidates
    ]
    if len(values) > 1:
        return "publishBatch", (values,)
    if values[0][-1] == NO_SECRET:
        return "publish", values[0][:-1]
    return "claimAndPublish", values[0]


def _words(text: str) -> int:
    return -(-len(text) // 32)
