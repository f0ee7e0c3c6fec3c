"""Token buckets: how many requests a client may send, and when it may send again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex_service.limits.rates import BURST_S, Rates


def test_a_burst_is_let_through_then_one_request_at_a_time() -> None:
    rates = Rates(10)
    burst = int(10 * BURST_S)
    assert [rates.take("a", 100.0) for _ in range(burst)] == [0.0] * burst
    assert rates.take("a", 100.0) == pytest.approx(0.1)
    assert rates.take("a", 100.05) == pytest.approx(0.05)
    assert rates.take("a", 100.1) == 0.0
    assert rates.take("a", 100.1) > 0.0
    assert rates.take("b", 100.1) == 0.0


def test_a_client_that_rested_has_a_full_bucket_and_no_more() -> None:
    rates = Rates(5)
    for now in (0.0, 1000.0):
        taken = [rates.take("a", now) for _ in range(50)]
        assert taken.count(0.0) == int(5 * BURST_S)


def test_less_than_one_request_a_burst_is_still_one_at_a_time() -> None:
    rates = Rates(0.1)
    assert rates.take("a", 0.0) == 0.0
    assert rates.take("a", 1.0) == pytest.approx(9.0)
    assert rates.take("a", 10.0) == 0.0


@given(st.lists(st.floats(0, 2), max_size=200), st.sampled_from([1.0, 3.0, 7.5]))
def test_in_no_time_more_passes_than_the_bucket_and_its_rate(
    steps: list[float], rate: float
) -> None:
    rates, now, passed = Rates(rate), 0.0, 0
    for step in steps:
        now += step
        passed += rates.take("a", now) == 0.0
    assert passed <= rate * BURST_S + rate * now + 1e-6


def test_the_table_stays_small_and_forgets_who_was_silent_longest() -> None:
    rates = Rates(1, max_clients=3)
    for client in "abcabd":
        rates.take(client, 0.0)
    assert list(rates._full_at) == ["a", "b", "d"]
