"""One fee cap for several transactions: what a person agreed to is the total."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from capdex.errors import Code, Refused
from publisher.ethereum.client import Chain
from publisher.ethereum.transaction import GAS_MARGIN_PERCENT, Transaction, ether


async def share_cap(
    transactions: Sequence[Transaction], *, chain: Chain, fee_cap_wei: int
) -> tuple[Transaction, ...]:
    """The transactions of one sender with the cap divided among them by their gas.

    Each was priced by itself. Raises Refused FEE_OVER_CAP or EMPTY_ACCOUNT for the total.
    """
    if len(transactions) < 2:
        return tuple(transactions)
    expected = sum(one.expected_fee_wei for one in transactions) * GAS_MARGIN_PERCENT // 100
    if expected > fee_cap_wei:
        raise Refused(
            f"the fees would be {ether(expected)}, over the cap of {ether(fee_cap_wei)}",
            Code.FEE_OVER_CAP,
            why=f"that is the total of {len(transactions)} transactions",
            fix="publish fewer at once, wait for a quieter hour, or raise the cap with --fee-cap",
        )
    gas = sum(one.gas for one in transactions)

    def share(one: Transaction) -> Transaction:
        cap = fee_cap_wei * one.gas // gas
        fee_per_gas = min(one.max_fee_per_gas, cap // one.gas)
        return replace(one, fee_cap_wei=cap, max_fee_per_gas=fee_per_gas)

    shared = tuple(map(share, transactions))
    await _check_balance(shared, chain)
    return shared


async def _check_balance(transactions: Sequence[Transaction], chain: Chain) -> None:
    sender, most = transactions[0].sender, sum(one.max_fee_wei for one in transactions)
    balance = await chain.balance(sender)
    if balance < most:
        raise Refused(
            f"{sender} cannot pay the fees",
            Code.EMPTY_ACCOUNT,
            why=f"it holds {ether(balance)}, and up to {ether(most)} is needed for "
            f"{len(transactions)} transactions on chain {chain.chain_id}",
            fix=f"send at least {ether(most - balance)} to {sender}",
            details={"account": sender, "balance_wei": str(balance), "needed_wei": str(most)},
        )
