"""The state machine beside the loop, by its table."""

from __future__ import annotations

import pytest

from capdex.errors import Code, Unavailable
from capdex.net.rpc.errors import ELSEWHERE, RpcError, RpcFault
from capdex.registry.logs import BlockRef, LogHead
from capdex_indexer.sync.log_completeness import Checkpoint, MissingLogs
from capdex_indexer.sync.recovery import (
    PAUSE_BASE_S,
    PAUSE_CAP_S,
    RECHECK_ALL_EVERY,
    RECHECK_EVERY,
    Recovery,
)


def block(number: int) -> BlockRef:
    return BlockRef(number, bytes([number]) * 32, bytes([number - 1]) * 32, number)


def at(number: int) -> Checkpoint:
    return Checkpoint(block(number), LogHead(bytes([number]) * 24, number))


def applied(state: Recovery, number: int, *, confirmed: bool) -> Recovery:
    where = at(number)
    return state.applied(where.block, where.log_head, confirmed)


TROUBLED = Recovery(at(5), failures=3, missing=7)
MISSING = MissingLogs("events were left out", Code.STALLED, upto=7)
BUSY = Unavailable("the database is busy", Code.DATABASE_UNAVAILABLE)


@pytest.mark.parametrize(
    ("state", "after"),
    [
        (applied(TROUBLED, 9, confirmed=True), Recovery(at(9))),
        (applied(TROUBLED, 9, confirmed=False), Recovery(at(5), 0, 7)),
        (applied(TROUBLED, 4, confirmed=False), Recovery(at(4), 0, 7)),  # a reorg
        (TROUBLED.resumed(block(9), LogHead()), TROUBLED),
        (TROUBLED.resumed(block(5), LogHead()), TROUBLED),
        (TROUBLED.resumed(at(4).block, at(4).log_head), Recovery(at(4), 3, 7)),
        (TROUBLED.resumed(None, LogHead()), Recovery(Checkpoint(), 3, 7)),
        (Recovery().resumed(block(9), LogHead()), Recovery()),
    ],
)
def test_a_checkpoint_advances_when_confirmed_and_follows_the_cursor_back(
    state: Recovery, after: Recovery
) -> None:
    assert state == after


@pytest.mark.parametrize("missing", range(1, 2 * RECHECK_ALL_EVERY + 1))
def test_missing_logs_blame_the_endpoint_and_at_times_recheck_rows(missing: int) -> None:
    before = Recovery(at(5), missing=missing - 1)
    state, action = before.failed(MISSING, has_other_endpoints=False, jitter=0.5)
    assert (state.checkpoint, state.failures, state.missing) == (at(5), 1, missing)
    assert action.blame
    if missing % RECHECK_ALL_EVERY == 0:
        assert action.recheck == Checkpoint()
    elif missing % RECHECK_EVERY == 0:
        assert action.recheck == at(5)
    else:
        assert action.recheck is None


@pytest.mark.parametrize("others", [True, False])
@pytest.mark.parametrize(
    ("error", "refused"),
    [
        (BUSY, False),
        *((RpcError("no answer", fault=x), x not in ELSEWHERE) for x in RpcFault),
    ],
)
def test_other_failures_pause_and_recheck_nothing(
    error: Unavailable, refused: bool, others: bool
) -> None:
    state, action = TROUBLED.failed(error, has_other_endpoints=others, jitter=0.5)
    assert state == Recovery(at(5), 4, 7)
    assert (action.blame, action.recheck) == (refused and others, None)


def test_pauses_grow_to_a_limit_and_are_random() -> None:
    for error in (MISSING, BUSY):
        state, pauses = Recovery(), []
        for _ in range(40):
            state, action = state.failed(error, has_other_endpoints=True, jitter=1.0)
            pauses.append(action.pause_s)
        assert pauses[:2] == [2 * PAUSE_BASE_S, 4 * PAUSE_BASE_S]
        assert pauses == sorted(pauses)
        assert pauses[-1] == PAUSE_CAP_S
        assert state.failed(error, has_other_endpoints=True, jitter=0.0)[1].pause_s == 0.0
