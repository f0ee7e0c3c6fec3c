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

from publisher.commit_reveal.commitment import SecretFile, commitment_of
from publisher.commit_reveal.maturity import block_time, wait_until_mature
from publisher.ethereum.transaction import Sent, Transaction
from publisher.keys.signer import Signer
from publisher.progress import OnStep, Reserved
from publisher.registry.change import Change, ChangePlan, await_change, send_change
from publisher.registry.registry import Registry
from publisher.tx.confirm import RECEIPT_WAIT_S


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
            change = _change(registry, one)
            plan = ChangePlan(
                change,
                signer.address,
                resumes=await change.pending(signer.address).load(),
                transaction=commits[one.name],
            )
            sent = await send_change(plan, signer, on_step)
            if sent is not None:
                waiting.append((change, sent))

    async def reserve(change: Change, sent: Sent) -> None:
        receipt = await await_change(change, sent, signer, on_step, receipt_timeout_s)
        if receipt is not None:
            on_step(Reserved(change.subject, receipt))

    ends = await asyncio.gather(*(reserve(*each) for each in waiting), return_exceptions=True)
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


def _change(registry: Registry, one: NameCommitment) -> Change:
    async def stands(_sender: str) -> bool:  # anybody may send a commitment; it stays ours
        return await registry.committed_at(one.commitment) != one.made_at

    async def arguments() -> tuple[bytes]:
        return (one.commitment,)

    target = one.commitment.hex()
    return Change("commit", one.name, registry, "commit", stands, arguments, target=target)
