"""Health of a source: when it rests, when it comes last, and when it is up again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.net.ipfs.source import (
    DEMOTED_S,
    FAILURES_TO_REST,
    MAX_REST_S,
    PROBE_S,
    SLOW_S,
    SLOW_TO_DEMOTE,
    FetchOutcome,
    SourceHealth,
)

GAVE, ABSENT, WRONG, SLOW = (
    FetchOutcome.GAVE,
    FetchOutcome.ABSENT,
    FetchOutcome.WRONG,
    FetchOutcome.SLOW,
)
BUSY, FAILED = FetchOutcome.BUSY, FetchOutcome.FAILED


class Requests:
    """Requests to one source, one after another; the clock moves only as told."""

    def __init__(self) -> None:
        self.health, self.now = SourceHealth("gateway-1"), 1000.0

    def end(
        self, outcome: FetchOutcome, *, took_s: float = 0.0, retry_after_s: float | None = None
    ) -> None:
        self.health.begin()
        began, self.now = self.now, self.now + took_s
        self.health.end(outcome, began=began, now=self.now, retry_after_s=retry_after_s)

    @property
    def wait_s(self) -> float:
        return self.health.wait_s(self.now)

    @property
    def is_demoted(self) -> bool:
        return self.health.is_demoted(self.now)


def test_absence_is_an_answer_and_searching_for_long_is_no_failure() -> None:
    requests = Requests()
    for _ in range(100):
        requests.end(ABSENT, took_s=20)
        requests.end(SLOW, took_s=20)
    assert requests.wait_s == 0


def test_a_dead_source_rests_longer_each_time_and_is_requested_once_in_between() -> None:
    requests, rests = Requests(), []
    for _ in range(FAILURES_TO_REST):
        assert requests.wait_s == 0
        requests.end(FAILED)
    for _ in range(10):
        rests.append(requests.wait_s)
        requests.now += rests[-1]
        assert requests.wait_s == 0
        requests.health.begin()
        assert requests.wait_s == PROBE_S  # while one request tests it
        requests.health.end(None, began=requests.now, now=requests.now)
        requests.end(FAILED)
    assert 0.8 <= rests[0] <= 1.2
    assert 1.6 <= rests[1] <= 2.4
    assert 0.8 * MAX_REST_S <= rests[-1] <= 1.2 * MAX_REST_S
    requests.now += requests.wait_s
    requests.end(GAVE)
    requests.health.begin()
    assert requests.wait_s == 0


def test_a_request_sent_before_a_rest_does_not_prolong_it() -> None:
    requests = Requests()
    began = requests.now - 1
    for _ in range(FAILURES_TO_REST):
        requests.end(FAILED)
    rest_s = requests.wait_s
    for _ in range(20):
        requests.health.begin()
        requests.health.end(FAILED, began=began, now=requests.now)
    assert requests.wait_s == rest_s


def test_a_rest_lasts_as_long_as_retry_after_says() -> None:
    requests = Requests()
    for _ in range(FAILURES_TO_REST):
        requests.end(BUSY, retry_after_s=120)
    assert requests.wait_s == 120


def test_a_source_that_gave_wrong_bytes_comes_last_for_a_minute() -> None:
    requests = Requests()
    requests.end(WRONG)
    assert requests.is_demoted
    assert requests.wait_s == 0
    requests.now += DEMOTED_S
    assert not requests.is_demoted


@pytest.mark.parametrize("outcome", [SLOW, GAVE, ABSENT])
def test_a_source_that_is_slow_some_times_in_a_row_comes_last(outcome: FetchOutcome) -> None:
    requests = Requests()
    for _ in range(SLOW_TO_DEMOTE - 1):
        requests.end(outcome, took_s=SLOW_S)
    requests.end(GAVE)
    for _ in range(SLOW_TO_DEMOTE):
        assert not requests.is_demoted
        requests.end(outcome, took_s=SLOW_S)
    assert requests.is_demoted


@given(
    st.lists(
        st.tuples(st.sampled_from(FetchOutcome), st.floats(0, 100), st.floats(0, 300)), max_size=60
    )
)
def test_whatever_happens_a_rest_is_bounded_and_every_request_counted(
    events: list[tuple[FetchOutcome, float, float]],
) -> None:
    requests = Requests()
    for outcome, took_s, retry_after_s in events:
        requests.end(outcome, took_s=took_s, retry_after_s=retry_after_s)
        assert requests.wait_s <= 300
        requests.now += 1
    state = requests.health
    assert sum(state.outcomes.values()) == state.requests == len(events)
    assert state.in_flight == 0
