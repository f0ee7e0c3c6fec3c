"""Commitments for new names (P12): found again, sent, and waited for by block time.

    name ──find_commitments──> NameCommitment ──commit──> (on chain, old enough) ──> claim
              secret, committedAt               send it, wait

A later run finds what a killed run has done: the commitment on chain, by the secret that the key
gives again, or its transaction in the file of the pending transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from capdex.errors import Code, InvalidInput
from publisher.commit_reveal.commitment import SecretFile, commitment_of
from publisher.commit_reveal.maturity import block_time, wait_until_mature
from publisher.ethereum.transaction import Sent, Transaction
from publisher.keys.signer import Signer
from publisher.progress import OnStep, Reserved
from publisher.registry.registry import Registry
from publisher.tx.confirm import RECEIPT_WAIT_S, confirm
from publisher.tx.pending import PendingTransaction
from publisher.tx.submit import submit


@dataclass(frozen=True, slots=True)
class NameCommitment:
    """A new name with its secret and commitment; `made_at`, in block time, is 0 when never.

    `counts`: it was made and has not expired, so that nothing has to be sent for it.
    """

    name: str
    secret: bytes
    commitment: bytes
    made_at: int = 0
    counts: bool = False


async def find_commitments(
    names: Sequence[str], *, registry: Registry, signer: Signer
) -> tuple[NameCommitment, ...]:
    """Return the commitments that claiming `names` takes; none where the registry asks for none.

    Raises what the signer raises, and Unavailable.
    """
    if not names:
        return ()
    least, most = await registry.commitment_ages()
    if least == 0:
        return ()
    now = await block_time(registry.chain)
    found = []
    for name in names:
        secret = await SecretFile(registry, signer.address, name).secret(signer)
        commitment = commitment_of(name, signer.address, secret)
        made_at = await registry.committed_at(commitment)
        counts = made_at > 0 and now <= made_at + most
        found.append(NameCommitment(name, secret, commitment, made_at, counts))
    return tuple(found)


async def price_commits(
    commitments: Sequence[NameCommitment], *, registry: Registry, sender: str, fee_cap_wei: int
) -> dict[str, Transaction]:
    """Return the priced commitments that are still to be sent, by name; see `Chain.price`."""
    return {
        one.name: await registry.price(sender, "commit", one.commitment, fee_cap_wei=fee_cap_wei)
        for one in commitments
        if not one.counts
    }


async def commit(
    commitments: Sequence[NameCommitment],
    commits: Mapping[str, Transaction],
    *,
    registry: Registry,
    signer: Signer,
    on_step: OnStep,
    receipt_timeout_s: float = RECEIPT_WAIT_S,
) -> None:
    """Send the commitments that are missing, concurrently, and wait until all count.

    Raises Unavailable: run again, and it goes on from here.
    """
    waiting = []
    for one in commitments:  # in turn: each gets the next nonce
        if not one.counts:
            sent = await _send(one, commits.get(one.name), registry, signer)
            if sent is not None:
                on_step(sent)
                waiting.append((one, sent))
    ends = await asyncio.gather(
        *(_await_block(*each, registry, signer, on_step, receipt_timeout_s) for each in waiting),
        return_exceptions=True,
    )
    for end in ends:
        if end is not None:
            raise end
    await wait_until_mature(
        {one.name: one.commitment for one in commitments},
        registry=registry,
        on_step=on_step,
        timeout_s=receipt_timeout_s,
    )


def forget_secrets(names: Sequence[str], *, registry: Registry, claimer: str) -> None:
    """Remove the secrets of names that are claimed now."""
    for name in names:
        SecretFile(registry, claimer, name).forget()


async def _send(
    one: NameCommitment, priced: Transaction | None, registry: Registry, signer: Signer
) -> Sent | None:
    """Return the transaction of a commitment: that of an earlier run, or a new one.

    None if the commitment was made since the plan: a person may have thought for an hour.
    """
    if await registry.committed_at(one.commitment) != one.made_at:
        return None
    pending, fingerprint = _pending(registry, one.name), one.commitment.hex()
    sent = await pending.load(fingerprint)
    if sent is not None:
        return sent
    if priced is None:
        priced = await registry.price(signer.address, "commit", one.commitment)
    return await submit(
        registry.chain,
        signer,
        priced,
        on_signed=lambda signed: pending.save(signed, fingerprint),
    )


async def _await_block(
    one: NameCommitment,
    sent: Sent,
    registry: Registry,
    signer: Signer,
    on_step: OnStep,
    timeout_s: float,
) -> None:
    async def made() -> bool:
        return await registry.committed_at(one.commitment) != one.made_at

    pending = _pending(registry, one.name)
    try:
        mined = await confirm(
            registry.chain,
            sent,
            timeout_s=timeout_s,
            signer=signer,
            on_signed=lambda signed: pending.save(signed, one.commitment.hex()),
            is_done=made,
        )
    except InvalidInput as error:
        pending.remove()
        if error.code is not Code.ALREADY_DONE:  # anybody may send a commitment; it stays ours
            raise
        return
    pending.remove()
    on_step(Reserved(one.name, mined))


def _pending(registry: Registry, name: str) -> PendingTransaction:
    return PendingTransaction(registry, "commit", name, "new")
