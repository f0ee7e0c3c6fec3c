"""From when on an answer is late: as TCP's retransmission timer would have it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.net.ipfs.latency import Latency

SECONDS = st.floats(0, 1e6)


def test_before_the_first_answer_only_the_ceiling_is_late() -> None:
    assert Latency(0.2, 1.0).late_s == 1.0


def test_the_first_answer_may_take_three_times_as_long_again() -> None:
    latency = Latency(0.01, 10.0)
    latency.note(0.4)
    assert latency.late_s == pytest.approx(0.4 + 4 * 0.4 / 2)  # RFC 6298, 2.2


def test_later_answers_move_the_mean_by_an_eighth_and_the_deviation_by_a_quarter() -> None:
    latency = Latency(0.01, 10.0)
    latency.note(0.4)
    latency.note(0.8)
    deviation_s = 3 / 4 * 0.2 + 1 / 4 * abs(0.4 - 0.8)  # RFC 6298, 2.3: by the old mean
    assert latency.late_s == pytest.approx(7 / 8 * 0.4 + 1 / 8 * 0.8 + 4 * deviation_s)


def test_one_slow_answer_among_quick_ones_raises_it_at_once_and_is_forgotten_again() -> None:
    latency = Latency(0.2, 1.0)
    for _ in range(20):
        latency.note(0.01)
    assert latency.late_s == 0.2
    latency.note(0.5)
    assert latency.late_s > 0.5
    for _ in range(20):
        latency.note(0.01)
    assert latency.late_s == 0.2


@given(st.lists(SECONDS, max_size=50), SECONDS)
def test_it_stays_within_its_bounds_and_settles_at_what_is_usual(
    before: list[float], usual_s: float
) -> None:
    latency = Latency(0.2, 1.0)
    for took_s in before:
        latency.note(took_s)
        assert 0.2 <= latency.late_s <= 1.0
    for _ in range(200):
        latency.note(usual_s)
    assert latency.late_s == pytest.approx(min(1.0, max(0.2, usual_s)), abs=1e-6)
