"""Sessions: ids that need no store, and a bounded store of subscriptions."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import Code, InvalidInput
from capdex_service.mcp.subscriptions.sessions import MAX_FILES, MAX_URIS, Sessions


@pytest.fixture
def node(tmp_path: Path) -> Callable[..., Sessions]:
    """Make the sessions of a node, or of another process of it."""

    def make(name: str = "one") -> Sessions:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        return Sessions(folder)

    return make


def files(tmp_path: Path) -> int:
    return sum(1 for x in (tmp_path / "one").rglob("*") if x.is_file())


def test_a_new_session_leaves_no_trace(node: Callable[..., Sessions], tmp_path: Path) -> None:
    sessions = node()
    before = files(tmp_path)
    ids = {sessions.issue() for _ in range(100)}
    assert len(ids) == 100
    assert all(sessions.owns(x) and sessions.knows(x) and sessions.read(x) is None for x in ids)
    assert files(tmp_path) == before


def test_processes_of_a_node_share_their_sessions(node: Callable[..., Sessions]) -> None:
    one, two = node(), node()
    session = one.issue()
    one.subscribe(session, "capdex://note", 7)
    two.subscribe(session, "capdex://weather", 9)
    found = one.read(session)
    assert found is not None
    assert (found.revision, sorted(found.uris)) == (7, ["capdex://note", "capdex://weather"])
    two.note(session, 12)
    one.unsubscribe(session, "capdex://note")
    two.unsubscribe(session, "capdex://note")
    found = two.read(session)
    assert found is not None
    assert (found.revision, found.uris) == (12, {"capdex://weather"})
    two.end(session)
    assert not one.knows(session)
    assert not one.owns(session)
    assert one.read(session) is None


def test_calls_of_a_session_are_known_to_every_node_but_owned_by_one(
    node: Callable[..., Sessions],
) -> None:
    one, other = node("one"), node("other")
    session = one.issue()
    assert (other.knows(session), other.owns(session)) == (True, False)


@given(st.one_of(st.text(max_size=60), st.text("ABCabc-_=.", min_size=38, max_size=38)))
def test_no_other_text_is_a_session(text: str) -> None:
    sessions = Sessions()
    try:
        assert not sessions.knows(text)
        assert not sessions.owns(text)
    finally:
        sessions.close()


def test_a_changed_id_is_unknown(node: Callable[..., Sessions]) -> None:
    sessions = node()
    session = sessions.issue()
    for at in range(len(session)):
        other = session[:at] + ("A" if session[at] != "A" else "B") + session[at + 1 :]
        assert not sessions.knows(other)
    assert not sessions.knows(session + "=")


def test_subscriptions_made_at_once_are_all_kept(node: Callable[..., Sessions]) -> None:
    one, two = node(), node()
    session = one.issue()
    uris = [f"capdex://n-{i}" for i in range(60)]
    with ThreadPoolExecutor(8) as threads:
        list(
            threads.map(
                lambda x: (one, two)[x % 2].subscribe(session, uris[x], 1), range(len(uris))
            )
        )
    found = one.read(session)
    assert found is not None
    assert found.uris == set(uris)


def test_a_session_has_a_bounded_number_of_subscriptions(node: Callable[..., Sessions]) -> None:
    sessions = node()
    session = sessions.issue()
    for i in range(MAX_URIS):
        sessions.subscribe(session, f"capdex://n-{i}", 1)
    sessions.subscribe(session, "capdex://n-0", 1)
    with pytest.raises(InvalidInput) as refused:
        sessions.subscribe(session, "capdex://one-more", 1)
    assert refused.value.code is Code.TOO_LARGE


def test_the_sessions_that_were_not_used_for_longest_give_way(
    node: Callable[..., Sessions], tmp_path: Path
) -> None:
    sessions = node()
    kept = [sessions.issue() for _ in range(MAX_FILES + 10)]
    for age, session in enumerate(kept):
        sessions.subscribe(session, "capdex://note", 1)
        # the first one is in use all the time
        file = tmp_path / "one" / "subscribed" / session
        os.utime(file, (2_000_000_000, 2_000_000_000) if age == 0 else (age, age))
    assert files(tmp_path) <= MAX_FILES + 1
    assert sessions.read(kept[0]) is not None
    assert sessions.read(kept[1]) is None
    assert sessions.read(kept[-1]) is not None


def test_ended_sessions_take_no_room_from_those_with_subscriptions(
    node: Callable[..., Sessions], tmp_path: Path
) -> None:
    sessions = node()
    session = sessions.issue()
    sessions.subscribe(session, "capdex://note", 1)
    for _ in range(MAX_FILES + 10):
        sessions.end(sessions.issue())
    assert files(tmp_path) <= MAX_FILES + 2
    assert sessions.read(session) is not None


def test_a_directory_that_was_tidied_away_is_made_again(tmp_path: Path) -> None:
    sessions = Sessions(tmp_path / "one")
    ended, subscribed = sessions.issue(), sessions.issue()
    shutil.rmtree(tmp_path / "one", ignore_errors=True)
    sessions.unsubscribe(ended, "capdex://a")
    sessions.end(ended)
    assert not sessions.knows(ended)
    shutil.rmtree(tmp_path / "one")
    sessions.subscribe(subscribed, "capdex://a", 1)
    assert sessions.read(subscribed) is not None
    assert (tmp_path / "one").stat().st_mode & 0o777 == 0o700
    shutil.rmtree(tmp_path / "one")
    assert not Sessions(tmp_path / "one").owns(subscribed)  # another process of the node


@pytest.mark.parametrize("closed", [True, False])
def test_an_own_directory_is_private_and_goes_with_its_sessions(
    closed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    sessions = Sessions()
    [folder] = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o077 == 0
    if closed:
        sessions.close()
    else:
        del sessions
        gc.collect()
    assert not folder.exists()
