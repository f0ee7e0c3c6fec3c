"""Fees: within the cap whatever happens, and high enough to replace."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import Refused
from capdex_publisher.ethereum.transaction import Fees, Transaction, ether

FEES = st.builds(Fees, st.integers(0, 10**13), st.integers(0, 10**13))
TRANSACTIONS = st.builds(
    Transaction,
    chain_id=st.just(1),
    sender=st.just("0x"),
    to=st.none(),
    data=st.just("0x"),
    gas=st.integers(21_000, 10**8),
    max_fee_per_gas=st.integers(0, 10**13),
    max_priority_fee_per_gas=st.integers(0, 10**13),
    expected_fee_wei=st.just(0),
    fee_cap_wei=st.integers(0, 10**22),
)


@given(TRANSACTIONS, FEES)
def test_a_price_is_enough_for_now_and_never_over_the_cap(transaction, fees):
    try:
        priced = transaction.priced(fees)
    except Refused:
        assert transaction.gas * sum(fees) > transaction.fee_cap_wei - transaction.gas
        return
    assert priced.max_fee_wei <= transaction.fee_cap_wei
    assert sum(fees) <= priced.max_fee_per_gas <= 2 * fees.base + fees.tip
    assert priced.max_priority_fee_per_gas == fees.tip
    assert priced.expected_fee_wei <= priced.max_fee_wei


@given(TRANSACTIONS, FEES, st.integers(0, 10**22))
def test_a_replacement_pays_an_eighth_more_of_both_or_does_not_happen(transaction, fees, funds):
    raised = transaction.raised(fees, funds_wei=funds)
    least_tip = max(fees.tip, -(-transaction.max_priority_fee_per_gas * 9 // 8))
    least = max(-(-transaction.max_fee_per_gas * 9 // 8), fees.base + least_tip)
    affordable = transaction.gas * least <= min(transaction.fee_cap_wei, funds)
    assert (raised is not None) == affordable
    if raised is not None:
        assert raised.max_fee_wei <= min(transaction.fee_cap_wei, funds)
        assert 8 * raised.max_fee_per_gas >= 9 * transaction.max_fee_per_gas
        assert 8 * raised.max_priority_fee_per_gas >= 9 * transaction.max_priority_fee_per_gas
        assert raised.max_priority_fee_per_gas <= raised.max_fee_per_gas
        assert raised.max_fee_per_gas >= fees.base + raised.max_priority_fee_per_gas
        assert (raised.gas, raised.data) == (transaction.gas, transaction.data)


@pytest.mark.parametrize(
    ("wei", "text"),
    [
        (0, "0 ether"),
        (1, "0.000000000000000001 ether"),
        (93 * 10**12, "0.000093 ether"),
        (10**18, "1 ether"),
        (250_000 * 10**18, "250000 ether"),
    ],
)
def test_an_amount_is_written_without_an_exponent(wei, text):
    assert ether(wei) == text
