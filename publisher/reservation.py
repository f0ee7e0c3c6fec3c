"""Reserving new names by commitments (P12): found again, made, and waited for by block time.

    name ──look──> Reservation ──reserve──> (a commitment on chain, old enough) ──> claim
            secret, committedAt     send the commitment, wait

What a killed run has done is found again: the commitment on chain, by the secret that comes out of
the key; or the transaction in the journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from capdex.errors import Code, InvalidInput, Unavailable
from publisher.chain import Chain
from publisher.commitment import SecretFile, commitment_of
from publisher.journal import Journal
from publisher.outcome import OnStep, Reserved, Reserving
from publisher.registry import Registry
from publisher.signers import Signer
from publisher.transaction import Sent, Transaction
from publisher.waiting import RECEIPT_WAIT_S

POLL_S: Final = 1.0  # no chain that asks for commitments makes blocks faster
# What the contract says of a claim whose commitment is still to come, or to grow old enough.
UNRIPE: Final = frozenset({"CommitmentMissing", "CommitmentTooYoung", "CommitmentExpired"})

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ages:
    """How old a commitment has to be and may be, in seconds; `least` 0: names need none."""

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Reservation:
    """A new name with its secret and commitment; `made_at`, in block time, is 0 when never.

    `counts`: it was made and has not expired, so that nothing has to be sent for it.
    """

    name: str
    secret: bytes
    commitment: bytes
    made_at: int = 0
    counts: bool = False


async def look(
    names: Sequence[str], *, registry: Registry, open_signer: Callable[[], Awaitable[Signer]]
) -> tuple[Reservation, ...]:
    """The reservations that claiming `names` takes; none where the registry wants none.

    The signer is opened only if there is something
    to sign. Raises what it raises, and Unavailable.
    """
    if not names:
        return ()
    ages = Ages(*await registry.commitment_ages())
    if ages.least == 0:
        return ()
    signer, now = await open_signer(), await block_time(registry.chain)
    found = []
    for name in names:
        secret = await SecretFile(registry, signer.address, name).secret(signer)
        commitment = commitment_of(name, signer.address, secret)
        made_at = await registry.committed_at(commitment)
        counts = made_at > 0 and now <= made_at + ages.most
        found.append(Reservation(name, secret, commitment, made_at, counts))
    return tuple(found)


async def price(
    reservations: Sequence[Reservation], *, registry: Registry, sender: str, fee_cap_wei: int
) -> dict[str, Transaction]:
    """The priced commitments that are still to be made, by name; see `Chain.price`."""
    return {
        one.name: await registry.price(sender, "commit", one.commitment, fee_cap_wei=fee_cap_wei)
        for one in reservations
        if not one.counts
    }


async def price_claim(
    registry: Registry,
    sender: str,
    function: str,
    *arguments: Any,
    bound: int | None,
    fee_cap_wei: int,
) -> Transaction:
    """As `registry.price`; where the commitment is not old enough yet, by `bound` of gas if given.

    Such a claim is refused by the contract, so nobody can estimate it.
    """
    try:
        return await registry.price(sender, function, *arguments, fee_cap_wei=fee_cap_wei)
    except (InvalidInput, Unavailable) as error:
        if bound is None or (error.details or {}).get("error") not in UNRIPE:
            raise
    return await registry.price(sender, function, *arguments, gas=bound, fee_cap_wei=fee_cap_wei)


async def when_ripe(ask: Callable[[], Awaitable[T]], *, timeout_s: float = RECEIPT_WAIT_S) -> T:
    """What `ask` gives once the contract no longer says that a commitment is too young.

    `reserve` waits for the block to come; an endpoint that estimates in the newest block agrees
    one block later.
    """
    deadline = _now() + timeout_s
    while True:
        try:
            return await ask()
        except Unavailable as error:
            young = (error.details or {}).get("error") == "CommitmentTooYoung"
            if not young or _now() > deadline:
                raise
        await asyncio.sleep(POLL_S)


async def reserve(
    reservations: Sequence[Reservation],
    commits: Mapping[str, Transaction],
    *,
    registry: Registry,
    signer: Signer,
    on_step: OnStep,
    receipt_timeout_s: float = RECEIPT_WAIT_S,
) -> None:
    """Make the commitments that are missing, side by side, and wait until all count.

    Raises Unavailable: run again, and it goes on from here.
    """
    waiting = []
    for one in reservations:  # in turn: each gets the next nonce
        if not one.counts:
            sent = await _commit(one, commits.get(one.name), registry, signer)
            on_step(sent)
            waiting.append((one, sent))
    ends = await asyncio.gather(
        *(_await_block(*each, registry, signer, on_step, receipt_timeout_s) for each in waiting),
        return_exceptions=True,
    )
    for end in ends:
        if end is not None:
            raise end
    await _await_age(reservations, registry, on_step, receipt_timeout_s)


def forget(names: Sequence[str], *, registry: Registry, claimer: str) -> None:
    """Drop what was kept for names that are claimed now."""
    for name in names:
        SecretFile(registry, claimer, name).forget()


async def block_time(chain: Chain) -> int:
    """The time of the block to come as the chain sees it, in seconds; never this machine's clock.

    Endpoints without a pending block give the newest one's, which is earlier.
    """
    times = []
    for block in ("pending", "latest"):
        try:
            with chain.faults():
                found = await chain.web3.eth.get_block(block)
                times.append(int(found["timestamp"]))
        except Unavailable:
            if block == "latest":
                raise
    return max(times)


async def _commit(
    one: Reservation, priced: Transaction | None, registry: Registry, signer: Signer
) -> Sent:
    """The transaction that makes a commitment: that of an earlier run, or a new one."""
    journal, fingerprint = _journal(registry, one.name), one.commitment.hex()
    sent = await journal.recall(fingerprint)
    if sent is not None:
        return sent
    if priced is None:
        priced = await registry.price(signer.address, "commit", one.commitment)
    return await registry.send(
        signer, priced, on_signed=lambda signed: journal.remember(signed, fingerprint)
    )


async def _await_block(
    one: Reservation,
    sent: Sent,
    registry: Registry,
    signer: Signer,
    on_step: OnStep,
    timeout_s: float,
) -> None:
    async def made() -> bool:
        return await registry.committed_at(one.commitment) != one.made_at

    journal = _journal(registry, one.name)
    try:
        mined = await registry.chain.wait(
            sent,
            timeout_s=timeout_s,
            signer=signer,
            on_signed=lambda signed: journal.remember(signed, one.commitment.hex()),
            done=made,
        )
    except InvalidInput as error:
        journal.forget()
        if error.code is not Code.ALREADY_DONE:  # anybody may send a commitment; it stays ours
            raise
        return
    journal.forget()
    on_step(Reserved(one.name, mined))


async def _await_age(
    reservations: Sequence[Reservation], registry: Registry, on_step: OnStep, timeout_s: float
) -> None:
    """Wait until every commitment is old enough, by the time of the blocks."""
    ages = Ages(*await registry.commitment_ages())
    names, deadline = tuple(x.name for x in reservations), _now() + timeout_s
    while reservations:
        made = [await registry.committed_at(x.commitment) for x in reservations]
        if not all(made):  # an endpoint behind a balancer, or a reorganisation
            if _now() > deadline:
                raise Unavailable(
                    "a commitment that was in a block is no longer there",
                    Code.RPC_UNAVAILABLE,
                    why="the chain was reorganised, or the endpoint is behind",
                    fix="run the same command again: it looks for it, and pays nothing twice",
                )
            await asyncio.sleep(POLL_S)
            continue
        left_s = max(made) + ages.least - await block_time(registry.chain)
        if left_s <= 0:
            return
        on_step(Reserving(names, left_s, ages.least))
        await asyncio.sleep(min(left_s, POLL_S))
        deadline = _now() + timeout_s


def _journal(registry: Registry, name: str) -> Journal:
    return Journal(registry, "commit", name, "new")


def _now() -> float:
    return asyncio.get_running_loop().time()
