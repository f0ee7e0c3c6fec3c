from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex_indexer.chain.backfill import (
    FIRST_BLOCKS,
    FIRST_CALM,
    MAX_BLOCKS,
    MAX_GROWTH,
    TARGET_BYTES,
    TARGET_LOGS,
    RangeSizer,
)

REPLY = st.tuples(
    st.integers(1, 200_000), st.integers(0, 100_000), st.integers(0, 2**27), st.booleans()
)


@given(st.lists(REPLY), st.none() | st.integers(1, 10_000))
def test_a_span_stays_within_its_bounds_and_grows_by_steps(replies, hint):
    range_sizer = RangeSizer()
    for blocks, logs, size, refused in replies:
        before = range_sizer.blocks
        if refused:
            less = range_sizer.shrink(blocks, hint)
            assert 1 <= less < max(2, blocks)
            assert range_sizer.blocks <= less
        else:
            range_sizer.learn(blocks, logs, size)
        assert 1 <= range_sizer.blocks <= min(MAX_BLOCKS, before * MAX_GROWTH)


@given(st.integers(1, 1000), st.integers(100, 5000))
def test_replies_come_to_the_size_aimed_at(logs_a_block, bytes_a_log):
    range_sizer = RangeSizer()
    for _ in range(20):
        logs = range_sizer.blocks * logs_a_block
        range_sizer.learn(range_sizer.blocks, logs, logs * bytes_a_log)
    logs = range_sizer.blocks * logs_a_block
    assert logs <= max(TARGET_LOGS, logs_a_block)
    assert logs * bytes_a_log <= max(TARGET_BYTES, logs_a_block * bytes_a_log)
    assert range_sizer.blocks == 1 or 2 * (logs + logs_a_block) * bytes_a_log >= min(
        TARGET_BYTES, TARGET_LOGS * bytes_a_log
    )


def test_a_hint_is_taken_when_it_is_narrower_than_what_was_refused():
    assert RangeSizer().shrink(1000, 800) == 800
    assert RangeSizer().shrink(1000, 1000) == 500
    assert RangeSizer().shrink(1000, 5000) == 500
    assert RangeSizer().shrink(1) == 1


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("limit", [1, 10, 2000])
def test_a_fixed_limit_is_run_into_ever_less_often(limit, named):
    range_sizer, refused, asked = RangeSizer(), [], 4000
    for n in range(asked):
        while range_sizer.blocks > limit:
            refused.append(n)
            range_sizer.shrink(range_sizer.blocks, limit if named else None)
        range_sizer.learn(range_sizer.blocks, 0, 40)
    assert range_sizer.blocks >= min(limit, 1) * limit / 2
    late = [n for n in refused if n > asked // 2]
    assert len(late) <= asked // 2 // 200


def test_a_raise_that_is_refused_is_taken_back():
    range_sizer = RangeSizer()
    range_sizer.shrink(range_sizer.blocks)
    before = range_sizer.blocks
    while range_sizer.blocks == before:
        range_sizer.learn(before, 0, 40)
    for _ in range(4):  # ranges that were under way together
        range_sizer.shrink(before + 3)
    assert range_sizer.blocks == before


def test_a_refusal_that_takes_long_to_tell_goes_back_to_the_widest_range_answered():
    range_sizer = RangeSizer()
    for _ in range(4):
        range_sizer.learn(16, 0, 40)
    assert range_sizer.shrink(2000, costly=True) == 16
    assert range_sizer.shrink(16, costly=True) == 8  # where that was by chance, too
    assert range_sizer.shrink(8, 3, costly=True) == 3


@pytest.mark.parametrize("refusals", [1, 100])
def test_more_is_asked_for_again_once_refusals_stop(refusals):
    range_sizer = RangeSizer()
    for _ in range(refusals):
        range_sizer.shrink(range_sizer.limit, 1)
    for _ in range(2000):
        range_sizer.learn(range_sizer.blocks, 0, 40)
    assert range_sizer.blocks == MAX_BLOCKS


@pytest.mark.parametrize("costly", [True, False])
def test_refusals_of_ranges_that_were_answered_before_do_not_delay_the_next_raise(costly):
    range_sizer, blocks = RangeSizer(), FIRST_BLOCKS
    while blocks > 1:
        range_sizer.learn(blocks, 0, 40)
        blocks = range_sizer.shrink(blocks, costly=costly)
    ranges = 0
    while range_sizer.blocks < FIRST_BLOCKS:
        range_sizer.learn(range_sizer.blocks, 0, 40)
        ranges += 1
    assert ranges <= 10 * FIRST_CALM


def test_one_refusal_of_a_width_that_was_answered_before_lowers_no_limit():
    range_sizer = RangeSizer()
    range_sizer.learn(16, 0, 40)
    assert range_sizer.shrink(16) == range_sizer.blocks == 8
    assert range_sizer.limit == MAX_BLOCKS
    assert range_sizer.shrink(8) == range_sizer.limit == 4
