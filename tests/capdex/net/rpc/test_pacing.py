"""The token bucket and the circuit breaker of an endpoint, with the time passed in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.net.rpc.pacing import (
    BURST_S,
    FAILURES_TO_OPEN,
    LONGER_S,
    MAX_BATCH,
    MAX_RATE,
    MIN_RATE,
    SLOW_S,
    Batches,
    Breaker,
    Circuit,
    Throttle,
    full_jitter,
)

GAPS = st.floats(0, 30)


def limited(rate: float, now: float = 0.0) -> Throttle:
    """A throttle that has just been cut to this rate."""
    throttle = Throttle(rate=2 * rate)
    throttle.refused(now, now, 0.0)
    return throttle


def test_nothing_is_limited_before_the_first_refusal():
    throttle = Throttle()
    for _ in range(10_000):
        assert throttle.wait_s(1.0) == 0
        throttle.take(1.0)
        throttle.succeeded()
    assert throttle.rate is None


@given(st.floats(MIN_RATE, 20), st.lists(GAPS, min_size=1, max_size=15))
def test_no_window_holds_more_calls_than_a_burst_and_the_rate_allow(rate, gaps):
    throttle, now, taken = limited(rate), 0.0, []
    for gap in gaps:
        now += gap
        while throttle.wait_s(now) == 0:
            throttle.take(now)
            taken.append(now)
    for at, first in enumerate(taken):
        for upto, last in enumerate(taken[at:], start=1):
            assert upto <= max(1.0, rate * BURST_S) + rate * (last - first) + 1e-6


@given(st.floats(MIN_RATE, 100), st.lists(st.tuples(GAPS, st.integers(1, 100)), max_size=50))
def test_a_wait_is_exactly_long_enough(rate, calls):
    throttle, now = limited(rate), 0.0
    for gap, count in calls:
        now += gap
        now += (wait_s := throttle.wait_s(now)) * 1.000001
        assert wait_s < 60
        assert throttle.wait_s(now) == pytest.approx(0, abs=1e-6)
        throttle.take(now, count)


@given(st.lists(st.sampled_from(["ok", "refused"]), max_size=300))
def test_a_learned_rate_stays_within_its_bounds_and_halves_at_a_refusal(outcomes):
    throttle, now = Throttle(), 0.0
    for outcome in outcomes:
        now += 1 + throttle.wait_s(now)
        throttle.take(now)
        before = throttle.rate
        if outcome == "ok":
            throttle.succeeded()
            assert before is None or throttle.rate is None or throttle.rate >= before
        else:
            throttle.refused(now, now, 0.0)
            assert throttle.rate is not None
            assert before is None or throttle.rate == max(MIN_RATE, before / 2)
        assert throttle.rate is None or MIN_RATE <= throttle.rate < MAX_RATE


def test_calls_that_were_under_way_together_halve_the_rate_once():
    throttle = Throttle(rate=64.0)
    for _ in range(8):
        throttle.refused(10.0, 9.0, 0.0)
        throttle.refused(10.1, 9.5, 0.0)
    assert throttle.rate == 32.0


def test_the_first_limit_is_half_of_what_was_asked():
    throttle = Throttle()
    for n in range(100):
        throttle.take(n / 20)
    throttle.refused(5.0, 5.0, 0.0)
    assert throttle.rate == pytest.approx(10, rel=0.1)


@given(st.floats(0, 300), st.floats(0, 300))
def test_nothing_is_asked_before_a_retry_after_is_over(rest_s, waited_s):
    throttle = Throttle()
    throttle.refused(1000.0, 999.0, rest_s)
    now = 1000.0 + waited_s
    assert throttle.wait_s(now) >= 1000.0 + rest_s - now


def test_an_endpoint_that_goes_on_answering_is_asked_without_limit_again():
    throttle, now = limited(MIN_RATE), 0.0
    while throttle.rate is not None:
        now += throttle.wait_s(now) + 1e-9
        throttle.take(now)
        throttle.succeeded()
    assert now < 1.1 * MAX_RATE  # a call a second more, each second


# --------------------------------------------------------------------------------------- breaker


def breaker() -> Breaker:
    return Breaker(0.25, 15.0, lambda low, high: high)


def opened(now: float = 0.0) -> Breaker:
    one = breaker()
    for _ in range(FAILURES_TO_OPEN):
        one.failed(now + one.wait_s(now))
    return one


@given(st.integers(0, 10_000), st.floats(0.001, 1), st.floats(0.001, 100))
def test_a_pause_is_anything_up_to_its_ceiling(failures, base_s, cap_s):
    assert 0 <= full_jitter(failures, base_s, cap_s) <= cap_s
    assert full_jitter(0, base_s, cap_s, lambda low, high: high) == min(cap_s, base_s)


def test_a_breaker_opens_after_failures_in_a_row_and_not_before():
    one, now = breaker(), 0.0
    for _ in range(FAILURES_TO_OPEN - 1):
        now += one.wait_s(now)
        one.failed(now)
        assert one.circuit(now) is Circuit.CLOSED
    one.succeeded()
    assert one.failures == 0
    assert opened().circuit(0.0) is Circuit.OPEN


def test_an_open_breaker_lets_one_probe_through_at_a_time():
    one = opened()
    now = one.wait_s(0.0)
    assert one.circuit(now) is Circuit.HALF_OPEN
    one.begin()
    assert one.wait_s(now) > 0
    one.abandoned()
    assert one.wait_s(now) == 0
    one.begin()
    one.failed(now)
    assert one.circuit(now) is Circuit.OPEN
    now += one.wait_s(now)
    one.begin()
    one.succeeded()
    assert one.circuit(now) is Circuit.CLOSED
    assert one.wait_s(now) == 0


def test_calls_that_were_under_way_together_are_one_failure():
    one = breaker()
    for _ in range(20):
        one.failed(1.0)
    assert one.failures == 1


@given(st.lists(st.tuples(GAPS, st.sampled_from(["call", "ok", "failed", "gone"])), max_size=100))
def test_a_breaker_is_never_stuck(events):
    """Whatever happened, once nothing is under way it lets a call through within its cap."""
    one, now = breaker(), 0.0
    for gap, what in events:
        now += gap
        if what == "call" and one.wait_s(now) == 0:
            one.begin()
        elif what == "ok":
            one.succeeded()
        elif what == "failed":
            one.failed(now)
        elif what == "gone":
            one.abandoned()
    one.abandoned()
    assert one.wait_s(now) <= 15.0
    assert one.wait_s(now + 15.0) == 0


def send(batches: Batches, now: float, takes: int) -> int:
    """How long a batch was, to an endpoint that answers none that is longer than `takes`."""
    calls = batches.longest(now)
    if calls > takes:
        batches.failed(calls, now)
    else:
        batches.answered(calls)
    batches.answered(1)
    return calls


@given(st.integers(1, MAX_BATCH))
def test_a_batch_is_halved_while_single_calls_are_answered(takes):
    batches = Batches()
    for _ in range(20):
        calls = send(batches, 0.0, takes)
    assert takes // 2 <= calls <= takes
    later = [send(batches, LONGER_S, takes) for _ in range(10)]  # once a minute, more is tried
    assert max(later) <= 2 * takes
    assert sum(calls > takes for calls in later) <= 1


@given(st.integers(1, MAX_BATCH), st.integers(1, MAX_BATCH))
def test_batches_are_long_again_where_they_are_answered_again(takes, refused):
    batches = Batches()
    for _ in range(20):
        send(batches, 0.0, takes)
    for _ in range(20):
        send(batches, LONGER_S, MAX_BATCH)
    assert batches.longest(LONGER_S) == MAX_BATCH
    batches.refused(refused)
    assert batches.longest(9 * LONGER_S) == max(1, refused // 2)


def test_an_endpoint_that_is_down_makes_no_batch_shorter():
    batches = Batches()
    for _ in range(20):
        batches.failed(MAX_BATCH, 0.0)
        batches.failed(1, 0.0)
    assert batches.longest(0.0) == MAX_BATCH


def test_a_batch_that_fails_once_is_no_shorter_the_next_time():
    batches = Batches()
    for now in range(20):
        batches.failed(MAX_BATCH, now)
        batches.answered(1)
        batches.answered(MAX_BATCH)
        batches.answered(1)
    assert batches.longest(20) == MAX_BATCH


@given(st.integers(1, MAX_BATCH))
def test_a_batch_without_an_answer_in_time_is_halved_at_once_and_for_long(takes):
    batches, late = Batches(), []
    for now in range(int(SLOW_S)):
        if (calls := batches.longest(now)) > takes:
            late.append(calls)
            batches.failed(calls, now, slow=True)
        else:
            batches.answered(calls)
    assert len(late) <= MAX_BATCH.bit_length()
    assert takes // 2 <= batches.longest(SLOW_S - 1) <= takes
    for now in range(20):
        batches.answered(batches.longest(2 * SLOW_S + now))
    assert batches.longest(3 * SLOW_S) == MAX_BATCH
