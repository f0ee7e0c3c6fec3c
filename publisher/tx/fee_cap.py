"""Divide one fee cap among several transactions: the user agreed to the total."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from capdex.errors import Code, Refused
from publisher.ethereum.client import Chain
from publisher.ethereum.transaction import GAS_MARGIN_PERCENT, Transaction, ether


async def share_cap(
    transactions: Sequence[Transaction], *, chain: Chain, fee_cap_wei: int
) -> tuple[Transaction, ...]:
    """Return the transactions of one sender with the cap divided among them by their gas.

    Raises Refused FEE_OVER_CAP or EMPTY_ACCOUNT for the total.
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
    most = sum(one.max_fee_wei for one in shared)
    await chain.check_balance(shared[0].sender, most, f"the fees of {len(shared)} transactions")
    return shared
