"""The table of connections: which one is cut where there is one too many."""

from __future__ import annotations

import math
import random

from capdex_service.limits.addresses import Addresses
from capdex_service.limits.connections import MAX_UNREAD_BYTES, ConnectionTable
from capdex_service.limits.options import ClientLimits


class Made:
    """A connection without a socket."""

    def __init__(self, name: str) -> None:
        self.name, self.deadline, self.client_key = name, math.inf, ""
        self.closing = False

    def is_over(self) -> bool:
        return self.closing

    def cut(self) -> None:
        CUT.append(self.name)

    def __repr__(self) -> str:
        return self.name


CUT: list[str] = []


def table(in_all: int, per_client: int = 0) -> ConnectionTable:
    CUT.clear()
    limits = ClientLimits(max_connections=in_all, max_per_client=per_client)
    return ConnectionTable(limits, Addresses(), lambda _: None)


def fill(into: ConnectionTable, address: str, *names: str) -> list[Made]:
    made = [Made(name) for name in names]
    for one in made:
        into.add(one, address)
    return made


def test_the_client_with_most_connections_loses_the_one_that_waits_longest() -> None:
    full = table(5, 5)
    fill(full, "10.0.0.1", "a1")
    fill(full, "10.0.0.2", "b1", "b2", "b3")
    fill(full, "10.0.0.3", "c1", "c2", "c3")
    assert CUT == ["b1", "c1"]
    assert len(full) == 5


def test_a_client_over_its_own_number_loses_its_own() -> None:
    full = table(100, 2)
    first, *_ = fill(full, "10.0.0.1", "a1", "a2")
    full.works(first)
    fill(full, "10.0.0.2", "b1", "b2")
    fill(full, "10.0.0.1", "a3", "a4")
    assert CUT == ["a2", "a3"]


def test_where_none_waits_the_new_one_is_cut() -> None:
    full = table(2, 2)
    for one in fill(full, "10.0.0.1", "a1", "a2"):
        full.works(one)
    fill(full, "10.0.0.2", "b1")
    assert len(full) == 2
    assert CUT == ["b1"]


def test_this_machine_may_fill_the_table() -> None:
    full = table(3, 1)
    fill(full, "127.0.0.1", "a1", "a2", "a3", "a4")
    assert CUT == ["a1"]


def test_deadlines_are_kept_and_an_end_that_is_not_read_gets_one() -> None:
    some = table(10, 10)
    late, over, working = fill(some, "10.0.0.1", "late", "over", "working")
    late.deadline, over.closing = 5.0, True
    some.sweep(5.0)
    assert (CUT, working.deadline) == (["late"], math.inf)
    some.sweep(over.deadline)
    assert CUT == ["late", "over"]


def test_answers_that_nobody_reads_have_a_size_together() -> None:
    some = table(10, 10)
    slow = fill(some, "10.0.0.1", "a", "b", "c")
    for one in slow[:2]:
        some.unread(one, MAX_UNREAD_BYTES // 2)
    assert CUT == []
    some.unread(slow[0], 0)
    some.unread(slow[0], MAX_UNREAD_BYTES // 2)
    some.unread(slow[2], 1)
    assert CUT == ["b"]


def test_counts_stay_right_whatever_comes_and_goes() -> None:
    chance = random.Random(7)  # noqa: S311 - no secret
    some, held = table(50, 20), set[Made]()
    for step in range(1000):
        dice = chance.random()
        if dice < 0.5 or not held:
            one = Made(str(step))
            held.add(one)
            some.add(one, f"10.0.0.{chance.randrange(6)}")
        else:
            one = chance.choice(sorted(held, key=str))
            (some.remove, some.waits, some.works)[chance.randrange(3)](one)
        held &= some._open  # type: ignore[arg-type]
        counts = dict[str, int]()
        for each in some._open:
            counts[each.client_key] = counts.get(each.client_key, 0) + 1
        assert counts == some._count
        assert len(some) <= 50
    for one in list(held):
        some.remove(one)
    assert (some._waiting, some._count) == ({}, {})
