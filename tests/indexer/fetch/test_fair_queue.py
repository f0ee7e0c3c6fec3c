"""The line of jobs: lanes in their turn, fair between publishers, each release in it once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from capdex.registry.events import Announcement
from indexer.fetch.fair_queue import TURNS, Line
from indexer.store import Job, Lane


def job(release_id: int, publisher: str = "0xA", lane: Lane = Lane.NEW) -> Job:
    return Job(release_id, Announcement(1, publisher, "", "", "", b""), 0, lane)


def take(line: Line, count: int) -> list[int]:
    taken = [line.take() for _ in range(count)]
    return [one.release_id for one in taken if one is not None]


def test_publishers_take_turns() -> None:
    line = Line(depth=9)
    line.add([job(1, "0xA"), job(2, "0xA"), job(3, "0xA"), job(4, "0xB"), job(5, "0xC")])
    assert take(line, 9) == [1, 4, 5, 2, 3]


def test_whoever_holds_the_fewest_places_is_next() -> None:
    line = Line(depth=9)
    line.add([job(number) for number in range(6)])
    first = [line.take() for _ in range(3)]
    line.add([job(7, "0xB"), job(8, "0xB"), job(9, "0xB")])
    assert take(line, 2) == [7, 8]
    assert line.places == 5
    for one in first:
        assert one is not None
        line.leave(one)
        line.leave(one)  # safe to repeat
    assert line.places == 2
    assert take(line, 2) == [3, 4]


def test_new_releases_go_before_a_backlog_and_the_backlog_has_its_share() -> None:
    line = Line(depth=99)
    for lane in reversed(Lane):
        line.add(job(100 * lane + n, lane=lane) for n in range(40))
    taken = take(line, 4 * len(TURNS))
    of_lane = {lane: sum(x // 100 == lane for x in taken) for lane in Lane}
    assert of_lane == {Lane.NEW: 24, Lane.RETRY: 4, Lane.AGAIN: 4}
    assert taken[:3] == [0, 1, 2]


def test_a_lane_that_has_nothing_leaves_its_turn_to_the_others() -> None:
    line = Line(depth=99)
    line.add([job(1, lane=Lane.AGAIN), job(2, lane=Lane.RETRY), job(3, lane=Lane.RETRY)])
    assert take(line, 9) == [2, 3, 1]


def test_a_release_stands_in_line_once_until_it_is_forgotten() -> None:
    line = Line(depth=9)
    assert line.add([job(1), job(1)]) == 1
    taken = line.take()
    assert taken is not None
    line.leave(taken)
    assert line.add([job(1)]) == 0
    line.forget(taken)
    assert line.add([job(1)]) == 1


def test_a_flood_waits_in_the_store_not_in_memory() -> None:
    line = Line(depth=3)
    assert line.add([job(number) for number in range(100)]) == 3
    assert line.add([job(100, "0xB")]) == 1
    assert line.waiting(Lane.NEW) == 4


@given(
    jobs=st.lists(
        st.tuples(st.integers(0, 30), st.sampled_from("ABC"), st.sampled_from(Lane)), max_size=60
    )
)
def test_everything_in_line_comes_out_once(jobs: list[tuple[int, str, Lane]]) -> None:
    line = Line(depth=100)
    known = {release_id for release_id, _, _ in jobs}
    assert line.add(job(*one) for one in jobs) == len(known)
    out = []
    while (one := line.take()) is not None:
        out.append(one.release_id)
        line.forget(one)
    assert sorted(out) == sorted(known)
    assert line.places == 0
    assert not line.known
    assert not any(line.waiting(lane) for lane in Lane)
