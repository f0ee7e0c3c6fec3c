"""Sign and send transactions so that each nonce is used once and none is left out.

The nonce is read from the chain under a lock that all processes of a user share; the transaction is
signed and sent before the lock is released. A process that is killed in between has used no nonce.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from filelock import AsyncFileLock, Timeout

from capdex.errors import CapdexError, Code, Refused, Unavailable, UsageError
from capdex.net.files import write_atomically
from capdex.net.rpc.errors import RpcError
from capdex_publisher.ethereum.client import Chain
from capdex_publisher.ethereum.transaction import GAS_MARGIN_PERCENT, Sent, Transaction, ether
from capdex_publisher.keys.public_accounts import check_account
from capdex_publisher.keys.signer import Signer

LOCK_WAIT_S: Final = 60.0  # sending takes a second; a process that holds the lock longer is stuck
TRIES: Final = 4  # endpoints behind a balancer may know an older nonce for a moment

# What clients say of a refused transaction; the words without spaces are Nethermind's.
_USED: Final = re.compile("nonce too low|OldNonce", re.IGNORECASE)
_UNDERPRICED: Final = re.compile("underpriced|ReplacementNotAllowed", re.IGNORECASE)
_BELOW_BASE_FEE: Final = re.compile("base ?fee", re.IGNORECASE)

OnSigned = Callable[[Sent], None]
SentBefore = Callable[[], Awaitable[Sent | None]]


async def submit(
    chain: Chain,
    signer: Signer,
    transaction: Transaction,
    *,
    on_signed: OnSigned = lambda _: None,
    earlier: tuple[str, ...] = (),
    sent_before: SentBefore | None = None,
) -> Sent:
    """Sign a priced transaction and send it under the account's next nonce.

    `on_signed` gets the transaction before it leaves, so that a caller that is killed right after
    can find it again; `earlier` are the hashes of lost attempts to do the same. `sent_before` gives
    what another process has sent for the same purpose, which is returned instead; it is asked while
    no other process can send. Raises Refused (EMPTY_ACCOUNT, FEE_OVER_CAP, SIGNER_REFUSED) and
    Unavailable.
    """
    async with _locked(chain, signer, transaction) as last:
        if sent_before is not None and (before := await sent_before()) is not None:
            return before
        for attempt in range(TRIES):
            nonce = await last.next_nonce()
            sent, refusal = await _send(chain, signer, transaction, nonce, earlier, on_signed)
            if refusal is None:
                last.write(sent)
                return sent
            refused = refusal
            if attempt == TRIES - 1:
                break
            if _BELOW_BASE_FEE.search(refusal.why):  # it has risen since the price was made
                transaction = transaction.priced(await chain.fees())
            elif not (_USED.search(refusal.why) or _UNDERPRICED.search(refusal.why)):
                break
            else:
                await asyncio.sleep(0.25 * 2**attempt)
    raise await _not_sent(chain, transaction, refused)


async def replace(
    chain: Chain, signer: Signer, sent: Sent, *, on_signed: OnSigned = lambda _: None
) -> Sent | None:
    """Send a transaction again under its nonce, both fees at least an eighth higher.

    Returns None if it was mined meanwhile, or if the fee cap or the balance does not allow a
    replacement. Raises what `submit` raises.
    """
    transaction = sent.transaction
    if transaction is None:
        return None
    async with _locked(chain, signer, transaction) as last:
        fees, funds = await chain.fees(), await chain.balance(signer.address)
        for _ in range(TRIES):
            raised = transaction.raised(fees, funds_wei=funds)
            if raised is None or await chain.nonce(signer.address, "latest") != sent.nonce:
                return None
            again, refusal = await _send(chain, signer, raised, sent.nonce, sent.hashes, on_signed)
            if refusal is None:
                last.update(again)
                return again
            refused = refusal
            if not _UNDERPRICED.search(refusal.why):
                break
            transaction = raised  # this endpoint asks for more than an eighth
    raise await _not_sent(chain, transaction, refused)


async def share_cap(
    transactions: Sequence[Transaction], *, chain: Chain, fee_cap_wei: int
) -> tuple[Transaction, ...]:
    """Return the transactions of one sender with the cap divided among them by their gas.

    Raises Refused FEE_OVER_CAP or EMPTY_ACCOUNT for the total.
    """
    if len(transactions) < 2:
        return tuple(transactions)
    expected = sum(x.expected_fee_wei for x in transactions) * GAS_MARGIN_PERCENT // 100
    if expected > fee_cap_wei:
        raise Refused(
            f"the fees would be {ether(expected)}, over the cap of {ether(fee_cap_wei)}",
            Code.FEE_OVER_CAP,
            why=f"that is the total of {len(transactions)} transactions",
            fix="publish fewer at once, wait for a quieter hour, or raise the cap with --fee-cap",
        )
    gas = sum(x.gas for x in transactions)

    def share(transaction: Transaction) -> Transaction:
        cap = fee_cap_wei * transaction.gas // gas
        fee_per_gas = min(transaction.max_fee_per_gas, cap // transaction.gas)
        return dataclasses.replace(transaction, fee_cap_wei=cap, max_fee_per_gas=fee_per_gas)

    shared = tuple(map(share, transactions))
    most = sum(x.max_fee_wei for x in shared)
    await chain.check_balance(shared[0].sender, most, f"the fees of {len(shared)} transactions")
    return shared


async def _send(
    chain: Chain,
    signer: Signer,
    transaction: Transaction,
    nonce: int,
    earlier: tuple[str, ...],
    on_signed: OnSigned,
) -> tuple[Sent, RpcError | None]:
    """Sign, call `on_signed`, send; return the endpoint's refusal too, None if it has it."""
    signed = await signer.sign_transaction(transaction.fields(nonce))
    sent = Sent(signed.tx_hash, nonce, transaction, time.time(), earlier)
    on_signed(sent)
    try:
        refusal = await chain.send_raw(signed.raw)
        if refusal is not None and await chain.knows(sent.tx_hash):
            refusal = None  # a balancer gave it to two nodes, and this is the second one's answer
        return sent, refusal
    except Unavailable as error:
        why = f"{error.why}; transaction {sent.tx_hash} may or may not have been sent"
        fix = "run the same command again: it looks for that transaction, and pays nothing twice"
        unknown = error.with_details(tx_hash=sent.tx_hash)
        raise dataclasses.replace(unknown, why=why, fix=fix) from None


@asynccontextmanager
async def _locked(
    chain: Chain, signer: Signer, transaction: Transaction
) -> AsyncIterator[_LastSent]:
    """Hold the account's lock; raises Unavailable TIMEOUT when another process keeps it."""
    address = signer.address
    check_account(address, chain.chain_id)
    if (address, chain.chain_id) != (transaction.sender, transaction.chain_id):
        raise UsageError(
            f"the key is that of {address}, for chain {chain.chain_id}",
            why=f"the transaction is {transaction.sender}'s, for chain {transaction.chain_id}",
            fix="use the key of the account that the plan names",
        )
    directory = chain.state_dir / "locks"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = directory / f"{chain.chain_id}-{address.lower()}.lock"
    try:
        async with AsyncFileLock(path, timeout=LOCK_WAIT_S, poll_interval=0.02):
            yield _LastSent(chain, address, path.with_suffix(".json"))
    except Timeout:
        raise Unavailable(
            f"another process has been sending from {address} for {LOCK_WAIT_S:.0f} s",
            Code.TIMEOUT,
            why=f"it holds {path}",
            fix="let it finish, then run the same command again",
        ) from None


@dataclasses.dataclass(slots=True)
class _LastSent:
    """The account's last transaction, for endpoints whose pending nonce ignores the pool.

    Without it two transactions would get one nonce there, and the dearer one replace the other.
    """

    chain: Chain
    address: str
    path: Path

    async def next_nonce(self) -> int:
        """Return the nonce after every transaction that the chain knows."""
        pending = await self.chain.nonce(self.address, "pending")
        nonce, tx_hash = self._read()
        known = nonce >= pending and await self.chain.knows(tx_hash)
        return nonce + 1 if known else pending

    def write(self, sent: Sent) -> None:
        """Store what was just sent."""
        entry = {"nonce": sent.nonce, "tx_hash": sent.tx_hash}
        write_atomically(self.path, json.dumps(entry).encode("ascii"))

    def update(self, sent: Sent) -> None:
        """Store a replacement, if it replaces what was sent last."""
        if self._read()[0] == sent.nonce:
            self.write(sent)

    def _read(self) -> tuple[int, str]:
        try:
            entry = json.loads(self.path.read_text("ascii"))
            nonce, tx_hash = int(entry["nonce"]), str(entry["tx_hash"])
            if len(bytes.fromhex(tx_hash.removeprefix("0x"))) != 32:
                raise ValueError
        except (OSError, ValueError, KeyError, TypeError):
            return -1, ""
        return nonce, tx_hash


async def _not_sent(chain: Chain, transaction: Transaction, refusal: RpcError) -> CapdexError:
    fix = "run the same command again, or use another endpoint (--rpc-url)"
    if re.search("insufficient ?funds|upfront cost", refusal.why, re.IGNORECASE):
        try:
            await chain.check_balance(transaction.sender, transaction.max_fee_wei)
        except CapdexError as error:
            return error
        fix = f"send more to {transaction.sender}: this chain takes more than the fee of the gas"
    return dataclasses.replace(
        refusal,
        message=f"the RPC endpoint {chain.rpc.endpoint} refused the transaction",
        fix=fix,
    )
