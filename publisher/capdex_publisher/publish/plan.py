"""Plan the transactions that publish packages: commitments, batches and fees. Sends nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from capdex.errors import CapdexError, InvalidInput, Refused
from capdex_publisher.commit_reveal import (
    NO_SECRET,
    NameCommitment,
    find_commitments,
    price_commits,
)
from capdex_publisher.ethereum.transaction import DEFAULT_FEE_CAP_WEI, Transaction
from capdex_publisher.keys.signer import Signer
from capdex_publisher.publish.preflight import ReleaseCandidate
from capdex_publisher.registry.registry import Registry
from capdex_publisher.tx.submit import share_cap

# A transaction of its own costs 92 000 gas for a further release, in a batch it is 62 000 each:
# two pay already. A hundred are 7 million gas and 45 kB of calldata, well below what nodes pass on
# (128 KiB); as many claims of long names would be more than a transaction may take.
MAX_BATCH: Final = 100
MAX_TRANSACTION_GAS: Final = 2**24  # EIP-7825
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
Refusals = dict[str, CapdexError]  # by capability URI


@dataclass(frozen=True, slots=True)
class Batch:
    """Releases that one transaction publishes."""

    candidates: tuple[ReleaseCandidate, ...]
    transaction: Transaction


@dataclass(frozen=True, slots=True)
class PublishPlan:
    """Transactions to send, in this order: `commits` (by name), then `batches`.

    `candidates` are all releases to finish, also those with nothing left to send; `refused` are
    those that the contract would revert.
    """

    candidates: tuple[ReleaseCandidate, ...]
    commitments: tuple[NameCommitment, ...] = ()
    commits: Mapping[str, Transaction] = field(default_factory=dict)
    batches: tuple[Batch, ...] = ()
    refused: Mapping[str, CapdexError] = field(default_factory=dict)
    fee_cap_wei: int = DEFAULT_FEE_CAP_WEI

    @property
    def transactions(self) -> tuple[Transaction, ...]:
        """All transactions that would be sent, in their order."""
        return (*self.commits.values(), *(batch.transaction for batch in self.batches))

    @property
    def secrets(self) -> Secrets:
        """Secrets of the names that are claimed by commitments."""
        return {x.name: x.secret for x in self.commitments}


async def make_plan(
    candidates: Sequence[ReleaseCandidate],
    *,
    registry: Registry,
    signer: Signer,
    fee_cap_wei: int = DEFAULT_FEE_CAP_WEI,
) -> PublishPlan:
    """Price everything; the cap is on the total. Raises Refused EMPTY_ACCOUNT and FEE_OVER_CAP.

    The signer signs only the secrets of new names, where the registry wants commitments. A claim
    whose commitment is not old enough cannot be estimated: its batch is priced by `gas_bound`, and
    again when it can be.
    """
    to_send = [x for x in candidates if x.to_send]
    new_names = list(dict.fromkeys(x.name for x in to_send if x.claims_name))
    commitments = await find_commitments(new_names, registry=registry, signer=signer)
    secrets = {x.name: x.secret for x in commitments}
    refused: Refusals = {}
    batches = []
    limit = await registry.chain.block_number_of("latest", "gasLimit") if to_send else 0
    for group in divide(to_send, limit):
        batch = await price_batch(
            group, secrets, registry=registry, sender=signer.address, fee_cap_wei=fee_cap_wei,
            refused=refused,
        )  # fmt: skip
        if batch is not None:
            batches.append(batch)
    kept_names = {x.name for batch in batches for x in batch.candidates}
    wanted = tuple(x for x in commitments if x.name in kept_names)
    commits = await price_commits(
        wanted, registry=registry, sender=signer.address, fee_cap_wei=fee_cap_wei
    )
    priced_all = (*commits.values(), *(batch.transaction for batch in batches))
    shared = await share_cap(priced_all, chain=registry.chain, fee_cap_wei=fee_cap_wei)
    return PublishPlan(
        candidates=tuple(x for x in candidates if x.uri not in refused),
        commitments=wanted,
        commits=dict(zip(commits, shared, strict=False)),
        batches=tuple(
            replace(batch, transaction=transaction)
            for batch, transaction in zip(batches, shared[len(commits) :], strict=True)
        ),
        refused=refused,
        fee_cap_wei=fee_cap_wei,
    )


async def price_batch(
    candidates: Sequence[ReleaseCandidate],
    secrets: Secrets,
    *,
    registry: Registry,
    sender: str,
    fee_cap_wei: int,
    refused: Refusals,
    bounded: bool = True,
) -> Batch | None:
    """Price the releases that the contract accepts, None if none; put the others into `refused`.

    A batch succeeds or reverts as a whole: if it reverts, each release is estimated by itself.
    `bounded`: a claim that is not mature is priced by its bound; else it raises Unavailable.
    """

    async def price(some: Sequence[ReleaseCandidate]) -> Batch:
        function, arguments = call(some, secrets)
        bound = gas_bound(some) if bounded else None
        priced = await registry.price(
            sender, function, *arguments, immature_gas=bound, fee_cap_wei=fee_cap_wei
        )
        return Batch(tuple(some), priced)

    try:
        return await price(candidates)
    except (InvalidInput, Refused) as error:
        if len(candidates) == 1:
            refused[candidates[0].uri] = error
            return None
        kept = []
        for candidate in candidates:
            try:
                await price([candidate])
            except (InvalidInput, Refused) as why:
                refused[candidate.uri] = why
            else:
                kept.append(candidate)
        if len(kept) == len(candidates):
            raise  # each alone succeeds, and all together do not: the fee, most likely
    return await price(kept) if kept else None


def divide(
    candidates: Sequence[ReleaseCandidate], block_gas_limit: int
) -> tuple[tuple[ReleaseCandidate, ...], ...]:
    """Divide candidates, in order, into batches that fit into a block beside others."""
    batches: list[list[ReleaseCandidate]] = []
    room = 0
    for candidate in candidates:
        gas = gas_bound([candidate])
        if not batches or len(batches[-1]) == MAX_BATCH or gas > room:
            batches.append([])
            room = min(block_gas_limit // BLOCK_SHARE, MAX_TRANSACTION_GAS)
        batches[-1].append(candidate)
        room -= gas
    return tuple(map(tuple, batches))


def gas_bound(candidates: Sequence[ReleaseCandidate]) -> int:
    """Return the most gas that publishing them takes, even if each claims its name."""
    return sum(claim_gas(x.name, x.announcement.semver) for x in candidates)


def claim_gas(name: str, semver: str = "") -> int:
    """Return the most gas that a claim takes; with a version, the release included."""
    name_words = _words(name) if len(name) > MAX_SHORT_NAME else 0
    semver_words = _words(semver) if len(semver) > MAX_SHORT_SEMVER else 0
    return CLAIM_GAS + name_words * NAME_WORD_GAS + semver_words * SEMVER_WORD_GAS


def call(candidates: Sequence[ReleaseCandidate], secrets: Secrets) -> tuple[str, tuple[Any, ...]]:
    """Return the contract's function that publishes them, and its arguments."""
    values = [
        (
            candidate.name,
            candidate.announcement.semver,
            candidate.announcement.cid,
            candidate.announcement.sha256,
            secrets.get(candidate.name, NO_SECRET),
        )
        for candidate in candidates
    ]
    if len(values) > 1:
        return "publishBatch", (values,)
    if values[0][-1] == NO_SECRET:
        return "publish", values[0][:-1]
    return "claimAndPublish", values[0]


def _words(text: str) -> int:
    return -(-len(text) // 32)
