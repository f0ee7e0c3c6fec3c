"""The fair queue: lanes in their turn, publishers by their fetches, each release in it once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from capdex.registry.events import Announcement
from capdex_indexer.fetch.fair_queue import TURNS, FairQueue
from capdex_indexer.store import Job, Lane


def job(release_id: int, publisher: str = "0xA", lane: Lane = Lane.NEW) -> Job:
    return Job(release_id, Announcement(1, publisher, "", "", "", b""), 0, lane)


def pop(queue: FairQueue, count: int) -> list[int]:
    popped = [queue.pop() for _ in range(count)]
    return [one.release_id for one in popped if one is not None]


def test_publishers_take_turns() -> None:
    queue = FairQueue(capacity=9)
    queue.add([job(1, "0xA"), job(2, "0xA"), job(3, "0xA"), job(4, "0xB"), job(5, "0xC")])
    assert pop(queue, 9) == [1, 4, 5, 2, 3]


def test_the_publisher_with_the_fewest_running_fetches_is_next() -> None:
    queue = FairQueue(capacity=9)
    queue.add([job(number) for number in range(6)])
    first = [queue.pop() for _ in range(3)]
    queue.add([job(7, "0xB"), job(8, "0xB"), job(9, "0xB")])
    assert pop(queue, 2) == [7, 8]
    assert queue.running == 5
    for one in first:
        assert one is not None
        queue.release(one)
    assert queue.running == 2
    assert pop(queue, 2) == [3, 4]


def test_new_releases_go_before_a_backlog_and_the_backlog_has_its_share() -> None:
    queue = FairQueue(capacity=99)
    for lane in reversed(Lane):
        queue.add(job(100 * lane + n, lane=lane) for n in range(40))
    popped = pop(queue, 4 * len(TURNS))
    of_lane = {lane: sum(x // 100 == lane for x in popped) for lane in Lane}
    assert of_lane == {Lane.NEW: 24, Lane.RETRY: 4, Lane.AGAIN: 4}
    assert popped[:3] == [0, 1, 2]


def test_a_lane_that_is_empty_leaves_its_turn_to_the_others() -> None:
    queue = FairQueue(capacity=99)
    queue.add([job(1, lane=Lane.AGAIN), job(2, lane=Lane.RETRY), job(3, lane=Lane.RETRY)])
    assert pop(queue, 9) == [2, 3, 1]


def test_a_release_is_in_the_queue_once_until_it_is_discarded() -> None:
    queue = FairQueue(capacity=9)
    queue.add([job(1), job(1)])
    popped = queue.pop()
    assert popped is not None
    queue.release(popped)
    queue.add([job(1)])
    assert queue.waiting(Lane.NEW) == 0
    queue.discard(popped)
    queue.add([job(1)])
    assert queue.waiting(Lane.NEW) == 1


def test_in_a_full_lane_a_flood_gives_way_to_other_publishers() -> None:
    queue = FairQueue(capacity=10)
    queue.add([job(number) for number in range(100)])
    assert queue.waiting(Lane.NEW) == 10
    queue.add([job(number, "0xB") for number in range(100, 200)])
    assert queue.waiting(Lane.NEW) == 10
    assert len(queue.known) == 10
    popped = pop(queue, 20)
    assert sorted(popped) == [0, 1, 2, 3, 4, 100, 101, 102, 103, 104]


@given(
    jobs=st.lists(
        st.tuples(st.integers(0, 30), st.sampled_from("ABC"), st.sampled_from(Lane)), max_size=60
    )
)
def test_everything_in_the_queue_comes_out_once(jobs: list[tuple[int, str, Lane]]) -> None:
    queue = FairQueue(capacity=100)
    queue.add(job(*one) for one in jobs)
    out = []
    while (one := queue.pop()) is not None:
        out.append(one.release_id)
        queue.release(one)
        queue.discard(one)
    assert sorted(out) == sorted({release_id for release_id, _, _ in jobs})
    assert queue.running == 0
    assert not queue.known
    assert not any(queue.waiting(lane) for lane in Lane)
