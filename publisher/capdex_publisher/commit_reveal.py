"""Claim new names by commit and reveal (P12), which protects a claim in flight from being copied.

    name ──find_commitments──> NameCommitment ──commit──> (on chain, old enough) ──> claim
              secret, committedAt               send it, wait

    secret      keccak256(EIP-191 signature of `secret_text`, 65 bytes, by the claiming account)
    commitment  keccak256(name id ‖ claimer, left-padded to 32 bytes ‖ secret)

A later run finds what a killed run has done: the commitment on chain, by its secret, or its
transaction in the file of the pending transaction. A key signs the same text the same way every
time (RFC 6979), so the secret can be made again from the key alone. It is written down
nevertheless: a signer may sign another way tomorrow, or refuse to sign messages at all.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

from capdex.encoding.abi import raw_address
from capdex.encoding.keccak import keccak
from capdex.errors import Code, Refused, Unavailable, UsageError
from capdex.net.files import read_private_file, write_private_file
from capdex.uri import name_id
from capdex_publisher.ethereum.client import Chain
from capdex_publisher.ethereum.revert_reasons import is_immature
from capdex_publisher.ethereum.transaction import Sent, Transaction
from capdex_publisher.keys.public_accounts import DEV_CHAIN_ID
from capdex_publisher.keys.signer import Signer
from capdex_publisher.progress import OnStep, Reserved, Reserving
from capdex_publisher.registry.change import (
    ChangePlan,
    RegistryChange,
    await_change,
    plan_change,
    send_change,
)
from capdex_publisher.registry.registry import Registry
from capdex_publisher.tx.confirm import RECEIPT_WAIT_S
from capdex_publisher.tx.submit import share_cap

POLL_S: Final = 1.0  # no chain that asks for commitments makes blocks faster

T = TypeVar("T")


async def wait_until_mature(
    commitments: Mapping[str, bytes], *, registry: Registry, on_step: OnStep, timeout_s: float
) -> None:
    """Wait until every commitment (by name) is old enough.

    Raises Unavailable when the endpoint fails, or does not have a commitment, for `timeout_s`.
    """
    mature_at, deadline = 0, _now() + timeout_s
    while commitments:
        try:
            mature_at = mature_at or await _maturity_of(commitments, registry)
            left_s = mature_at - await block_time(registry.chain)
        except Unavailable:
            if _now() > deadline:
                raise
            await asyncio.sleep(POLL_S)
            continue
        if left_s <= 0:
            return
        on_step(Reserving(tuple(commitments), left_s))
        await asyncio.sleep(min(left_s, POLL_S))
        deadline = _now() + timeout_s


async def _maturity_of(commitments: Mapping[str, bytes], registry: Registry) -> int:
    """Return the block time at which the youngest is old enough; raises Unavailable."""
    made = [await registry.committed_at(commitment) for commitment in commitments.values()]
    if not all(made):  # an endpoint behind a balancer, or a reorganisation
        raise Unavailable(
            "a commitment that was in a block is no longer there",
            Code.RPC_UNAVAILABLE,
            why="the chain was reorganised, or the endpoint is behind",
            fix="run the same command again: it looks for it, and pays nothing twice",
        )
    least, _ = await registry.commitment_ages()
    return max(made) + least


async def block_time(chain: Chain) -> int:
    """Return the time of the next block in seconds, as the endpoint gives it.

    Endpoints without a pending block give the newest one's, which is earlier.
    """
    latest = await chain.block_number_of("latest", "timestamp")
    try:
        return max(latest, await chain.block_number_of("pending", "timestamp"))
    except Unavailable:
        return latest


def makes_blocks_on_demand(chain: Chain) -> bool:
    """Return True if the chain makes a block only when a transaction is sent.

    Estimates are made in the newest block. Elsewhere the next one comes by itself; to send before
    it has come would be a mistake, since a block in the making can bear an earlier time.
    """
    return chain.chain_id == DEV_CHAIN_ID


async def retry_until_mature(
    ask: Callable[[], Awaitable[T]], *, timeout_s: float = RECEIPT_WAIT_S
) -> T:
    """Await `ask` again until the endpoint's newest block has the commitment, and it is old enough.

    `commit` has seen that it is; another endpoint behind a balancer may be some blocks behind.
    """
    deadline = _now() + timeout_s
    while True:
        try:
            return await ask()
        except Unavailable as error:
            if not is_immature(error) or _now() > deadline:
                raise
        await asyncio.sleep(POLL_S)


def _now() -> float:
    return asyncio.get_running_loop().time()


SECRET_BYTES: Final = 32
NO_SECRET: Final = bytes(SECRET_BYTES)  # of a publication that claims nothing


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
    oldest = await block_time(registry.chain) - most
    commitments = []
    for name in names:
        secret = await CommitSecretFile(registry, signer.address, name).secret(signer)
        commitments.append(await find_commitment(registry, name, signer.address, secret, oldest))
    return tuple(commitments)


async def find_commitment(
    registry: Registry, name: str, claimer: str, secret: bytes, oldest: int
) -> NameCommitment:
    """Return the commitment of `claimer` for a name.

    One that was made before `oldest` (seconds since 1970) does not count. Raises Unavailable.
    """
    commitment = commitment_of(name, claimer, secret)
    made_at = await registry.committed_at(commitment)
    counts = made_at > 0 and made_at >= oldest
    return NameCommitment(name, secret, commitment, made_at, counts)


async def price_commits(
    commitments: Sequence[NameCommitment], *, registry: Registry, sender: str, fee_cap_wei: int
) -> dict[str, Transaction]:
    """Return the priced commitments that are still to be sent, by name; see `Chain.price`."""
    return {
        x.name: await registry.price(sender, "commit", x.commitment, fee_cap_wei=fee_cap_wei)
        for x in commitments
        if not x.counts
    }


async def plan_commits(
    plan: ChangePlan, commitments: Sequence[NameCommitment], registry: Registry
) -> ChangePlan:
    """Return the plan of a name's claim with its commitment, both within the cap of the plan."""
    if plan.transaction is None:
        return plan
    cap, chain = plan.transaction.fee_cap_wei, registry.chain
    commits = await price_commits(
        commitments, registry=registry, sender=plan.sender, fee_cap_wei=cap
    )
    transactions = (*commits.values(), plan.transaction)
    *shared, last = await share_cap(transactions, chain=chain, fee_cap_wei=cap)
    return replace(plan, commit=shared[0] if shared else None, transaction=last)


async def carry_out_commits(
    plan: ChangePlan,
    commitments: Sequence[NameCommitment],
    gas_bound: int,
    *,
    registry: Registry,
    signer: Signer,
    on_step: OnStep,
) -> ChangePlan:
    """Make the commitment of a plan, wait until it counts, and return the plan of the claim then.

    `gas_bound` is the most gas that the claim takes. Raises as `commit` and `plan_change` do.
    """
    if plan.transaction is None:
        return plan
    commits = {x.name: plan.commit for x in commitments if plan.commit is not None}
    await commit(commitments, commits, registry=registry, signer=signer, on_step=on_step)
    cap = plan.transaction.fee_cap_wei
    gas = gas_bound if makes_blocks_on_demand(registry.chain) else None
    return await retry_until_mature(
        lambda: plan_change(plan.change, sender=plan.sender, fee_cap_wei=cap, immature_gas=gas)
    )


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
    for commitment in commitments:  # in turn: each gets the next nonce
        change = _change(registry, commitment)
        pending = change.pending(signer.address)
        earlier = await pending.load()
        mined = earlier is not None and await registry.chain.receipt(*earlier.hashes) is not None
        if mined and not commitment.counts:  # it made the one that has expired
            pending.remove()
            earlier = None
        if earlier is None and commitment.counts:
            continue
        plan = ChangePlan(
            change, signer.address, resumes=earlier, transaction=commits.get(commitment.name)
        )
        sent = await send_change(plan, signer, on_step)
        if sent is not None:
            waiting.append((change, sent))

    async def reserve(change: RegistryChange, sent: Sent) -> None:
        receipt = await await_change(change, sent, signer, on_step, receipt_timeout_s)
        if receipt is not None:
            on_step(Reserved(change.subject, receipt))

    ends = await asyncio.gather(*(reserve(*each) for each in waiting), return_exceptions=True)
    for end in ends:
        if end is not None:
            raise end
    made, wait_s = {x.name: x.commitment for x in commitments}, receipt_timeout_s
    await wait_until_mature(made, registry=registry, on_step=on_step, timeout_s=wait_s)


def _change(registry: Registry, commitment: NameCommitment) -> RegistryChange:
    async def stands(_sender: str) -> bool:  # anybody may send a commitment; it stays ours
        return await registry.committed_at(commitment.commitment) != commitment.made_at

    async def arguments() -> tuple[bytes]:
        return (commitment.commitment,)

    name, target = commitment.name, commitment.commitment.hex()
    return RegistryChange("commit", name, registry, "commit", stands, arguments, target=target)


def commitment_of(name: str, claimer: str, secret: bytes) -> bytes:
    """The commitment of `claimer` (0x address) for a name, as the contract's `commitmentOf`."""
    return keccak(name_id(name) + raw_address(claimer).rjust(32, b"\0") + secret)


def secret_text(chain_id: int, registry: str, name: str) -> bytes:
    """The text whose signature gives the secret; `registry` is an EIP-55 address."""
    return (
        "capdex: reserve a name\n"
        f"chain id: {chain_id}\n"
        f"registry: {registry}\n"
        f"name: {name}\n"
        "\n"
        "This signature is the secret of the reservation. It spends nothing; show it to nobody."
    ).encode()


class CommitSecretFile:
    """The file of one name's secret, mode 0600, in the state directory."""

    def __init__(self, registry: Registry, claimer: str, name: str) -> None:
        where = f"{registry.chain_id}-{registry.address.lower()}-{claimer.lower()}-{name}"
        self._path: Path = registry.chain.state_dir / "secrets" / f"{where}.secret"
        self._text = secret_text(registry.chain_id, registry.address, name)

    async def secret(self, signer: Signer) -> bytes:
        """The secret of an earlier call, or a new one, written down before it is given.

        Raises Unavailable SIGNER_UNAVAILABLE, and Refused KEY_EXPOSED if others can read the file.
        """
        if (kept := self._read()) is not None:
            return kept
        made = await self._make(signer)
        if (kept := self._read()) is not None:  # another process of ours was first
            return kept
        draft = self._path.with_suffix(f".{secrets.token_hex(4)}")
        write_private_file(draft, made.hex().encode("ascii"))
        draft.replace(self._path)  # whole or not at all
        return made

    def forget(self) -> None:
        """Drop it: the name is claimed."""
        self._path.unlink(missing_ok=True)

    async def _make(self, signer: Signer) -> bytes:
        try:
            return keccak(await signer.sign_message(self._text))
        except Refused as error:
            if error.code is not Code.SIGNER_REFUSED:
                raise
            return secrets.token_bytes(SECRET_BYTES)

    def _read(self) -> bytes | None:
        if not self._path.exists():
            return None
        try:
            kept = bytes.fromhex(read_private_file(self._path, 2 * SECRET_BYTES).decode("ascii"))
        except (ValueError, UsageError):
            return None
        return kept if len(kept) == SECRET_BYTES else None
