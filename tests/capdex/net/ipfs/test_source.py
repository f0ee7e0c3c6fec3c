"""How a source is doing: its limit, its rests, and who is asked before whom."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.ipld.cid import Cid
from capdex.net.ipfs.source import (
    BENCH_S,
    BREAK_AFTER,
    FIRST_LIMIT,
    LATE_S,
    MAX_LIMIT,
    MAX_REST_S,
    MAX_SPARED,
    MIN_LIMIT,
    SLOW_S,
    Outcome,
    Standing,
)

CID = Cid.of(b"a package")
GAVE, ABSENT, WRONG, SLOW = Outcome.GAVE, Outcome.ABSENT, Outcome.WRONG, Outcome.SLOW
BUSY, FAILED = Outcome.BUSY, Outcome.FAILED


class Asking:
    """One standing, asked as it allows; the clock moves when told so."""

    def __init__(self) -> None:
        self.standing, self.now = Standing(), 1000.0

    def fill(self) -> list[object]:
        """As many requests as it allows."""
        requests = [object() for _ in range(self.standing.free(self.now))]
        for request in requests:
            self.standing.begin(request)
        return requests

    def note(self, outcome: Outcome, *, took_s: float = 0.0, after_s: float | None = None) -> None:
        began, self.now = self.now, self.now + took_s
        self.standing.note(outcome, CID, began=began, now=self.now, retry_after_s=after_s)

    def round(self, outcome: Outcome) -> None:
        """Fill it, and let all end alike."""
        for request in self.fill():
            self.note(outcome)
            self.standing.leave(request)


def test_a_source_that_answers_is_asked_for_twice_as_much_each_round_up_to_a_limit() -> None:
    asking, limits = Asking(), []
    for _ in range(6):
        asking.round(GAVE)
        limits.append(asking.standing.limit)
    assert limits == [2 * FIRST_LIMIT, 4 * FIRST_LIMIT, 8 * FIRST_LIMIT, *[MAX_LIMIT] * 3]


@pytest.mark.parametrize("trouble", [SLOW, BUSY, FAILED])
def test_it_is_asked_for_half_after_trouble_and_for_one_more_a_round_from_then_on(
    trouble: Outcome,
) -> None:
    asking = Asking()
    asking.round(GAVE)
    asking.round(GAVE)
    before = asking.standing.limit
    for _ in range(5):
        asking.note(trouble)
    assert asking.standing.limit == before // 2  # once: they were in flight at one time
    asking.now += 5
    asking.round(GAVE)
    assert asking.standing.limit == before // 2 + 1
    for _ in range(20):
        asking.now += 5
        asking.note(GAVE)
        asking.note(SLOW)
    assert asking.standing.limit == MIN_LIMIT


def test_a_limit_that_is_never_met_is_not_raised() -> None:
    asking = Asking()
    for _ in range(100):
        request = object()
        asking.standing.begin(request)
        asking.note(GAVE)
        asking.standing.leave(request)
    assert asking.standing.limit == FIRST_LIMIT


def test_a_late_request_leaves_its_place_to_another_but_only_as_many_as_the_limit_do() -> None:
    asking = Asking()
    first = asking.fill()
    assert all(asking.standing.give_way(request) for request in first)
    assert asking.standing.in_flight == 0
    second = asking.fill()
    assert len(second) == FIRST_LIMIT
    assert not asking.standing.give_way(second[0])
    assert asking.standing.in_flight == FIRST_LIMIT
    assert all(asking.standing.waits_for(request) for request in first + second)
    asking.standing.leave(first[0])
    assert asking.standing.give_way(second[0])
    assert not asking.standing.waits_for(first[0])
    assert asking.standing.free(asking.now) == 1


def test_a_source_under_probation_is_asked_for_no_more_because_it_is_late() -> None:
    asking = Asking()
    for _ in range(BREAK_AFTER):
        asking.note(FAILED)
    asking.now += asking.standing.resting_s(asking.now)
    (probe,) = asking.fill()
    assert not asking.standing.give_way(probe)
    assert asking.standing.free(asking.now) == 0


def test_only_blocks_that_came_say_from_when_on_one_is_late() -> None:
    asking = Asking()
    for _ in range(10):
        for trouble in set(Outcome) - {GAVE}:
            asking.note(trouble, took_s=30.0)
    assert asking.standing.late_s == SLOW_S
    for _ in range(10):
        asking.note(GAVE, took_s=0.01)
        asking.note(SLOW, took_s=30.0)
    assert asking.standing.late_s == LATE_S


def test_absence_is_an_answer_and_searching_for_long_is_no_failure() -> None:
    asking = Asking()
    for _ in range(100):
        asking.now += 20
        asking.note(ABSENT)
        asking.note(SLOW)
    assert not asking.standing.resting_s(asking.now)


def test_a_dead_source_rests_longer_each_time_and_is_asked_once_in_between() -> None:
    asking, rests = Asking(), []
    for _ in range(BREAK_AFTER):
        assert asking.standing.free(asking.now) > 0
        asking.note(FAILED)
    for _ in range(10):
        rests.append(asking.standing.resting_s(asking.now))
        assert asking.standing.free(asking.now) == 0
        asking.now += rests[-1]
        assert len(asking.fill()) == 1
        asking.standing._prompt.clear()
        asking.note(FAILED)
    assert 0.8 <= rests[0] <= 1.2
    assert 1.6 <= rests[1] <= 2.4
    assert 0.8 * MAX_REST_S <= rests[-1] <= 1.2 * MAX_REST_S
    asking.now += asking.standing.resting_s(asking.now)
    asking.note(GAVE)
    assert asking.standing.free(asking.now) == FIRST_LIMIT


def test_what_was_sent_before_a_rest_does_not_prolong_it() -> None:
    asking = Asking()
    began = asking.now
    for _ in range(BREAK_AFTER):
        asking.note(FAILED)
    rest_s = asking.standing.resting_s(asking.now)
    for _ in range(20):
        asking.standing.note(FAILED, CID, began=began - 1, now=asking.now)
    assert asking.standing.resting_s(asking.now) == rest_s


def test_patience_that_is_asked_for_is_given() -> None:
    asking = Asking()
    asking.note(BUSY, after_s=30)
    assert asking.standing.spared_s(CID, asking.now) == 30
    assert asking.standing.spared_s(Cid.of(b"another"), asking.now) == 0  # others may be had
    for _ in range(BREAK_AFTER):
        asking.note(BUSY, after_s=120)
    assert asking.standing.resting_s(asking.now) == 120
    assert asking.standing.spared_s(Cid.of(b"another"), asking.now) == 120


def test_for_wrong_bytes_a_source_is_asked_last_and_not_for_those_again() -> None:
    good, bad = Asking(), Asking()
    good.note(GAVE, took_s=2.0)
    bad.note(GAVE, took_s=0.001)
    assert bad.standing.rank(bad.now) < good.standing.rank(good.now)
    bad.note(WRONG)
    assert bad.standing.rank(bad.now) > good.standing.rank(good.now)
    assert bad.standing.free(bad.now) > 0
    assert bad.standing.spared_s(CID, bad.now) == BENCH_S
    assert bad.standing.rank(bad.now + BENCH_S)[0] is False


def test_who_was_quick_and_had_it_is_asked_first_and_bad_times_are_forgotten() -> None:
    quick, slow, empty = Asking(), Asking(), Asking()
    for _ in range(30):
        quick.note(GAVE, took_s=0.01)
        slow.note(GAVE, took_s=1.0)
        empty.note(ABSENT, took_s=0.01)
    ranks = [one.standing.rank(one.now) for one in (quick, slow, empty)]
    assert ranks[0] < ranks[1]
    assert ranks[0] < ranks[2]
    assert empty.standing.cost_s(empty.now + 3600) < 2 * quick.standing.cost_s(quick.now)


def test_no_more_than_so_many_spared_blocks_are_remembered() -> None:
    asking = Asking()
    for number in range(MAX_SPARED + 10):
        cid = Cid.of(b"%d" % number)
        asking.standing.note(BUSY, cid, began=0.0, now=asking.now, retry_after_s=60)
    assert len(asking.standing._spared) == MAX_SPARED


@given(
    st.lists(st.tuples(st.sampled_from(Outcome), st.floats(0, 100), st.floats(0, 300)), max_size=60)
)
def test_whatever_happens_the_limit_stays_within_bounds(
    events: list[tuple[Outcome, float, float]],
) -> None:
    asking = Asking()
    for outcome, took_s, after_s in events:
        requests = asking.fill()
        asking.note(outcome, took_s=took_s, after_s=after_s)
        for request in requests:
            asking.standing.leave(request)
        asking.now += 1
        assert MIN_LIMIT <= asking.standing.limit <= MAX_LIMIT
        assert asking.standing.resting_s(asking.now) <= 300
        assert asking.standing.cost_s(asking.now) >= 0
    state = asking.standing.state("gateway-1", asking.now)
    assert sum(state.outcomes.values()) == state.requests == len(events)
