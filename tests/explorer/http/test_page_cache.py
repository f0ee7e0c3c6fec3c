"""Pages that are kept: for as long as what they are about stays as it is."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from capdex_explorer.http.page_cache import MAX_AGE_S, MAX_STALE_S, NO_REVISION, PageCache
from capdex_explorer.http.rendered import RenderedPage
from capdex_explorer.site import NO_TAG, CacheTag
from capdex_service.answers.rendered import Moment

PAGE = RenderedPage.of(b"x" * 100, "text/html")


def moment(revision: int, finalized: int = 0) -> Moment:
    return Moment(revision, finalized, b"{}")


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def kept(clock: Clock) -> PageCache:
    return PageCache(1000, clock)


def test_a_page_about_a_name_stays_until_the_name_changes(kept: PageCache, clock: Clock) -> None:
    kept.put(("note",), PAGE, moment(1), CacheTag("note"))
    kept.put(("tea",), PAGE, moment(1), CacheTag("tea"))
    clock.now += MAX_AGE_S - 1
    assert kept.get(("note",), moment(9)) is PAGE
    kept.drop(["note", "other"])
    assert kept.get(("note",), moment(10)) is None
    assert kept.get(("tea",), moment(10)) is PAGE
    clock.now += 1  # a page says how long ago a release was
    assert kept.get(("tea",), moment(10)) is None


def test_a_page_is_made_anew_once_its_release_is_final(kept: PageCache) -> None:
    kept.put(("note",), PAGE, moment(1, 6), CacheTag("note", 7))
    assert kept.get(("note",), moment(2, 6)) is PAGE
    assert kept.get(("note",), moment(3, 7)) is None


def test_a_page_about_a_name_that_the_search_lacked_is_kept_for_a_moment(
    kept: PageCache, clock: Clock
) -> None:
    kept.put(("note",), PAGE, moment(NO_REVISION), CacheTag("note"))
    assert kept.get(("note",), moment(9)) is PAGE
    clock.now += MAX_STALE_S
    assert kept.get(("note",), moment(9)) is None


def test_a_page_of_many_names_is_at_most_a_moment_older_than_the_index(
    kept: PageCache, clock: Clock
) -> None:
    kept.put(("home",), PAGE, moment(1), NO_TAG)
    clock.now = MAX_AGE_S - 1
    assert kept.get(("home",), moment(1)) is PAGE  # nothing has changed
    assert kept.get(("home",), moment(2)) is None
    kept.put(("home",), PAGE, moment(2), NO_TAG)
    clock.now += MAX_STALE_S / 2
    assert kept.get(("home",), moment(3)) is PAGE
    clock.now += MAX_STALE_S
    assert kept.get(("home",), moment(3)) is None
    kept.put(("home",), PAGE, moment(3), NO_TAG)
    clock.now += MAX_AGE_S
    assert kept.get(("home",), moment(3)) is None  # it may say how old a release is


def test_what_was_used_least_recently_makes_room(kept: PageCache) -> None:
    for number in range(20):
        kept.put((str(number),), PAGE, moment(1), CacheTag(str(number % 3)))
        assert kept.get(("0",), moment(1)) is PAGE
        assert kept.size_bytes <= 1000
    assert kept.get(("1",), moment(1)) is None
    assert kept.get(("19",), moment(1)) is PAGE
    kept.put(("19",), PAGE, moment(1), CacheTag("elsewhere"))
    assert kept.size_bytes <= 1000
    kept.drop(None)
    assert kept.size_bytes == 0
    assert kept.get(("0",), moment(1)) is None
