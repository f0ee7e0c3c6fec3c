"""The store: isolation, deletion, time to live, pages, several processes, a damaged file."""

from __future__ import annotations

import resource
import sqlite3
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Barrier
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capdex.errors import Code, InvalidInput, Unavailable, UsageError
from capdex_router.state import database, store
from capdex_router.state.patch import Patched, apply
from capdex_router.state.query import read
from capdex_router.state.rows import Space
from capdex_router.state.store import ObjectStore
from capdex_router.state.strategies import Model, model

NOTE = Space("did:nuwa:cap:note", "sc:note")
MODEL = model(
    "did:nuwa:state:note#v1",
    {"properties": {"n": {"x-crdt": "counter"}, "tags": {"x-crdt": "grow_only_set"}}},
)
SHORT = model("did:nuwa:state:note#v1", {"x-asm": {"x-ttl": "PT10S"}})


def sql(path: Path, statement: str) -> Any:
    """Run a statement in a file, and return its first row."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement).fetchone()


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def kept(tmp_path: Path, clock: Clock) -> Iterator[ObjectStore]:
    with ObjectStore(tmp_path / "state.sqlite", clock) as opened:
        yield opened


def patched(patch: Any) -> Callable[[Any], Patched]:
    return lambda value: apply(value, patch)


def found(
    kept: ObjectStore, where: Any = None, space: Space = NOTE, of: Model = MODEL
) -> dict[str, Any]:
    page = kept.query(space, of, read({"where": where or {}, "limit": 100}))
    assert page.cursor is None
    return {hit.id: hit.value for hit in page.hits}


def test_an_object_is_created_changed_found_and_deleted(kept: ObjectStore) -> None:
    kept.create(NOTE, MODEL, "a", {"t": "x", "n": 1})
    assert kept.update(NOTE, MODEL, "a", patched({"$inc": {"n": 2}})) == {"t": "x", "n": 3}
    assert found(kept, {"n": {"$gt": 2}}) == {"a": {"t": "x", "n": 3}}
    kept.delete(NOTE, MODEL, "a")
    assert found(kept) == {}
    for again in (
        lambda: kept.update(NOTE, MODEL, "a", patched([])),
        lambda: kept.delete(NOTE, MODEL, "a"),
        lambda: kept.delete(NOTE, MODEL, "b", hard=True),
    ):
        with pytest.raises(InvalidInput) as caught:
            again()
        assert caught.value.code is Code.NOT_FOUND


def test_an_id_is_taken_once_also_by_what_was_deleted(kept: ObjectStore) -> None:
    kept.create(NOTE, MODEL, "a", {})
    for hard in (None, False, True):
        if hard is not None:
            kept.delete(NOTE, MODEL, "a", hard=hard)
        with pytest.raises(InvalidInput, match="there is an object") as caught:
            kept.create(NOTE, MODEL, "a", {})
        assert ("state.update" in caught.value.fix) is (hard is None)  # a deleted one has no more


def test_an_object_that_was_deleted_for_good_is_nowhere_in_the_files(
    kept: ObjectStore, tmp_path: Path
) -> None:
    kept.create(NOTE, MODEL, "a", {"t": "a very private word"})
    kept.create(NOTE, MODEL, "b", {"t": "another private word"})
    kept.delete(NOTE, MODEL, "a", hard=True)
    kept.delete(NOTE, MODEL, "b")
    assert kept.purge() == 1
    for file in tmp_path.iterdir():
        assert b"private word" not in file.read_bytes()


def test_packages_and_scopes_share_nothing(kept: ObjectStore) -> None:
    kept.create(NOTE, MODEL, "a", {"t": 1})
    others = (Space("did:nuwa:cap:other", NOTE.scope), Space(NOTE.owner, "sc:other"))
    for space in others:
        assert found(kept, space=space) == {}
        kept.create(space, MODEL, "a", {"t": 2})
        kept.delete(space, MODEL, "a", hard=True)
    other = model("did:nuwa:state:note#v2", {})
    assert found(kept, of=other) == {}
    assert found(kept) == {"a": {"t": 1}}
    assert [(x.space, x.live) for x in kept.collections() if x.schema_uri == MODEL.uri] == [
        (NOTE, 1), (others[1], 0), (others[0], 0),
    ]  # fmt: skip


def test_an_object_expires_after_its_last_change(kept: ObjectStore, clock: Clock) -> None:
    kept.create(NOTE, SHORT, "a", {"t": 1})
    kept.create(NOTE, SHORT, "b", {"t": 1})
    clock.now += 9
    kept.update(NOTE, SHORT, "b", patched([{"op": "replace", "path": "/t", "value": 2}]))
    clock.now += 1
    assert found(kept, of=SHORT) == {"b": {"t": 2}}
    with pytest.raises(InvalidInput, match="no object"):
        kept.update(NOTE, SHORT, "a", patched([]))
    assert [(x.live, x.expired) for x in kept.collections()] == [(1, 1)]
    kept.create(NOTE, SHORT, "a", {"t": 3})  # the id is free again
    assert found(kept, of=SHORT) == {"a": {"t": 3}, "b": {"t": 2}}
    clock.now += 100
    assert kept.purge() == 2
    assert kept.collections() == []


def test_what_expired_is_removed_at_the_next_start(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "state.sqlite"
    with ObjectStore(path, clock) as first:
        first.create(NOTE, SHORT, "a", {"t": 1})
    clock.now += 100
    ObjectStore(path, clock).close()
    assert sql(path, "SELECT count(*) FROM documents") == (0,)


def test_another_model_merges_what_is_there_anew(kept: ObjectStore) -> None:
    kept.create(NOTE, model(MODEL.uri, {}), "a", {"tags": ["b", "a"]})
    assert found(kept, of=model(MODEL.uri, {})) == {"a": {"tags": ["b", "a"]}}
    assert found(kept) == {"a": {}}, "a set is kept elsewhere than a register"
    assert found(kept, of=model(MODEL.uri, {})) == {"a": {"tags": ["b", "a"]}}


def test_pages_follow_each_other_without_gaps(kept: ObjectStore) -> None:
    for number in range(25):
        kept.create(NOTE, MODEL, f"{number:02}", {"k": number % 3, "w": number % 2 == 0})
    orders: list[Any] = [None, [{"field": "k"}], [{"field": "k", "direction": "desc"}, "w"]]
    for order in orders:
        query: dict[str, Any] = {"limit": 4, "where": {"k": {"$ne": 9}}}
        if order:
            query["order"] = order
        ids: list[str] = []
        while True:
            page = kept.query(NOTE, MODEL, read(query))
            ids += [hit.id for hit in page.hits]
            if page.cursor is None:
                break
            if len(ids) == 8:  # what comes between two pages moves no other
                kept.create(NOTE, MODEL, f"00-{order is None}{len(order or ())}", {"k": 7})
            query["cursor"] = page.cursor
        old = [id_ for id_ in ids if "-" not in id_]
        assert len(old) == len(set(old)) == 25
        if order is None:
            assert ids == sorted(ids)


def test_an_order_sorts_by_kind_and_value(kept: ObjectStore) -> None:
    values = ["b", 2, None, True, "a", 1.5, [1], False]
    for number, value in enumerate(values):
        kept.create(NOTE, MODEL, str(number), {"v": value})
    kept.create(NOTE, MODEL, "8", {})
    up = kept.query(NOTE, MODEL, read({"order": [{"field": "v"}]}))
    assert [hit.value.get("v", "-") for hit in up.hits] == [
        "-", None, False, True, 1.5, 2, "a", "b", [1],
    ]  # fmt: skip
    down = kept.query(NOTE, MODEL, read({"order": [{"field": "v", "direction": "desc"}]}))
    assert [hit.id for hit in down.hits] == [hit.id for hit in reversed(up.hits)]


def test_a_scan_is_bounded(kept: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        kept.create(NOTE, MODEL, f"{number:02}", {"t": "x" * 100, "k": number})
    monkeypatch.setattr(store, "MAX_SCANNED_BYTES", 1_000)
    monkeypatch.setattr(store, "CHUNK_ROWS", 5)
    page = kept.query(NOTE, MODEL, read({"where": {"k": 19}}))
    assert page.hits == ()
    ids: list[str] = []
    while page.cursor is not None:
        page = kept.query(NOTE, MODEL, read({"where": {"k": 19}, "cursor": page.cursor}))
        ids += [hit.id for hit in page.hits]
    assert ids == ["19"]
    with pytest.raises(InvalidInput) as caught:
        kept.query(NOTE, MODEL, read({"order": ["k"]}))
    assert caught.value.code is Code.TOO_LARGE


def test_an_answer_is_bounded(kept: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        kept.create(NOTE, MODEL, str(number), {"t": "x" * 400, "k": number})
    monkeypatch.setattr(store, "MAX_ANSWER_BYTES", 1_000)
    for order in ([], ["k"]):
        query: dict[str, Any] = {"order": order} if order else {}
        ids = []
        while True:
            page = kept.query(NOTE, MODEL, read(query))
            ids += [hit.id for hit in page.hits]
            if page.cursor is None:
                break
            query["cursor"] = page.cursor
        assert ids == ["0", "1", "2", "3", "4"]


TEXTS = st.text(max_size=4) | st.sampled_from(['"', "\\", "é", "\U0001f600", "a"])


@settings(max_examples=30)
@given(st.lists(TEXTS, max_size=4), TEXTS)
def test_what_is_passed_over_unparsed_does_not_match(texts: list[str], wanted: str) -> None:
    """The store looks for a text of the filter in the stored JSON first; it never misses one."""
    with TemporaryDirectory() as folder, ObjectStore(Path(folder) / "state.sqlite") as kept:
        for number, text in enumerate(texts):
            kept.create(NOTE, MODEL, str(number), {"t": text, "l": [[text], text]})
        for where in ({"t": wanted}, {"l": {"$eq": wanted}}):
            assert {int(id_) for id_ in found(kept, where)} == {
                number for number, text in enumerate(texts) if text == wanted
            }


@pytest.mark.parametrize(
    "query",
    [
        None, [], {"foo": 1}, {"where": {}, "filter": {}}, {"limit": 0}, {"limit": 101},
        {"limit": True}, {"limit": "1"}, {"select": "t"}, {"select": ["a.b"]}, {"select": [1]},
        {"order": "t"},
        {"order": [{"field": "t", "direction": "up"}]}, {"order": [{"field": 1}]}, {"order": ["t"] * 9},  # noqa: E501
        {"order": [{"x": 1}]}, {"cursor": 1}, {"cursor": "é"}, {"cursor": "AAAA"}, {"cursor": ""},
        {"cursor": "W10="}, {"cursor": "x" * 10_000}, {"where": {"t": "x" * 70_000}},
        {"x" * 70_000: 1},
    ],
)  # fmt: skip
def test_a_query_that_is_none_is_refused_in_a_bounded_answer(query: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(query)
    assert len(caught.value.line) < 2_000


def test_a_cursor_belongs_to_its_query(kept: ObjectStore) -> None:
    for number in range(3):
        kept.create(NOTE, MODEL, str(number), {"k": number})
    cursor = kept.query(NOTE, MODEL, read({"limit": 1})).cursor
    assert cursor is not None
    for other in ({"where": {"k": 1}}, {"order": ["k"]}):
        with pytest.raises(InvalidInput, match="cannot be used"):
            read({**other, "cursor": cursor})


def test_a_cursor_holds_the_longest_key(kept: ObjectStore) -> None:
    ids, order = [f"{n}" + "\0" * 511 for n in range(2)], ["a", "b", "c", "d"]
    for id_ in ids:
        kept.create(NOTE, MODEL, id_, dict.fromkeys(order, "\0" * 300))
    first = kept.query(NOTE, MODEL, read({"limit": 1, "order": order}))
    second = kept.query(NOTE, MODEL, read({"limit": 1, "order": order, "cursor": first.cursor}))
    assert [hit.id for hit in (*first.hits, *second.hits)] == ids


def test_selected_fields_alone_are_shown(kept: ObjectStore) -> None:
    kept.create(NOTE, MODEL, "a", {"t": 1, "u": 2})
    hit = kept.query(NOTE, MODEL, read({"select": ["u", "x"]})).hits[0]
    assert (hit.shown, hit.value) == ({"u": 2}, {"t": 1, "u": 2})


def test_a_change_that_fails_leaves_the_object(kept: ObjectStore) -> None:
    kept.create(NOTE, MODEL, "a", {"tags": ["a"], "n": 1})
    for patch in (
        [{"op": "replace", "path": "/tags", "value": ["b"]}],
        [{"op": "add", "path": "/n", "value": "x"}, {"op": "add", "path": "/t", "value": 1}],
        [{"op": "add", "path": "/t", "value": "x" * 300_000}],
    ):
        with pytest.raises(InvalidInput):
            kept.update(NOTE, MODEL, "a", patched(patch))
    assert found(kept) == {"a": {"tags": ["a"], "n": 1}}


def test_two_processes_lose_no_change(tmp_path: Path) -> None:
    """Two stores on one file stand for two processes: each has its own connection."""
    path = tmp_path / "state.sqlite"
    with ObjectStore(path) as first, ObjectStore(path) as second, ThreadPoolExecutor(4) as pool:
        first.create(NOTE, MODEL, "a", {"n": 0})
        one = patched({"$inc": {"n": 1}})
        work = [
            pool.submit(kept.update, NOTE, MODEL, "a", one)
            for _ in range(25)
            for kept in (first, second)
        ]
        for done in work:
            done.result()
        assert found(second) == {"a": {"n": 50}}


def test_processes_that_make_a_file_at_once_all_open_it(tmp_path: Path) -> None:
    """Each store has a connection of its own, as one of another process has."""
    start = Barrier(4)

    def opened(path: Path) -> ObjectStore:
        start.wait()
        return ObjectStore(path)

    with ThreadPoolExecutor(4) as pool:
        for number in range(100):
            for one in list(pool.map(opened, [tmp_path / f"{number}.sqlite"] * 4)):
                one.close()


def test_a_busy_file_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_S", 0.0)
    path = tmp_path / "state.sqlite"
    with ObjectStore(path) as first, ObjectStore(path) as second, first.database.writing():
        with pytest.raises(Unavailable) as caught:
            second.create(NOTE, MODEL, "a", {})
        assert caught.value.code is Code.DATABASE_LOCKED


def test_a_full_file_is_too_large_and_stays_usable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "MAX_BYTES", 60 * database.PAGE_BYTES)
    with ObjectStore(tmp_path / "state.sqlite") as kept:
        kept.create(NOTE, MODEL, "small", {"n": 1})
        texts = (
            "".join(chr(0x4E00 + (k * 7 + n) % 9_000) for k in range(5_000)) for n in range(99)
        )
        with pytest.raises(InvalidInput) as caught:  # noqa: PT012 - one of them is too much
            for number, text in enumerate(texts):
                kept.create(NOTE, MODEL, str(number), {"t": text})
        assert caught.value.code is Code.TOO_LARGE
        assert found(kept, {"n": 1}) == {"small": {"n": 1}}
        kept.delete(NOTE, MODEL, "0", hard=True)


def test_a_file_that_cannot_grow_names_the_disk(tmp_path: Path) -> None:
    """SQLite calls it a disk I/O error where it has no room for the memory that it shares."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limits[1]))
    try:
        with pytest.raises(UsageError, match="the state cannot be used") as caught:
            ObjectStore(tmp_path / "state.sqlite")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.why == "disk I/O error"
    assert "the disk is not full" in caught.value.fix


def test_the_files_are_for_their_user_alone(kept: ObjectStore, tmp_path: Path) -> None:
    kept.create(NOTE, MODEL, "a", {})
    modes = {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert modes == {0o600}


def test_a_file_that_is_no_database_is_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    path.write_bytes(b"x" * 5_000)
    with pytest.raises(UsageError) as caught:
        ObjectStore(path)
    assert caught.value.code is Code.UNREADABLE
    with pytest.raises(UsageError):
        ObjectStore(tmp_path / "none" / "state.sqlite")


def test_who_has_a_damaged_file_is_told_to_move_it_away(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    with ObjectStore(path) as store:
        store.create(NOTE, MODEL, "a", {"t": "x" * 50_000})
    path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(UsageError) as caught:
        ObjectStore(path)
    assert "move it away" in caught.value.fix


def test_a_file_of_another_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    sql(path, "PRAGMA user_version = 9")
    with pytest.raises(UsageError, match="another version"):
        ObjectStore(path)


def test_a_copied_file_writes_under_other_numbers(tmp_path: Path) -> None:
    with ObjectStore(tmp_path / "a.sqlite") as first:
        first.create(NOTE, MODEL, "a", {"n": 1})
    (tmp_path / "b.sqlite").write_bytes((tmp_path / "a.sqlite").read_bytes())
    for name in "ab":
        with ObjectStore(tmp_path / f"{name}.sqlite") as kept:
            kept.update(NOTE, MODEL, "a", patched({"$inc": {"n": 1}}))
    peers = {sql(tmp_path / f"{name}.sqlite", "SELECT peer FROM documents") for name in "ab"}
    assert len(peers) == 2


def test_what_a_removed_package_kept_is_seen_by_no_other(tmp_path: Path) -> None:
    """A router that runs knows where the objects were, while another process removes them."""
    path = tmp_path / "state.sqlite"
    other = Space("did:nuwa:cap:other", "sc:note")
    with ObjectStore(path) as running, ObjectStore(path) as removing:
        running.create(NOTE, MODEL, "a", {"n": 1})
        assert removing.drop(NOTE.owner) == 1
        assert found(running) == {}
        removing.create(other, MODEL, "b", {"n": 1})
        running.create(NOTE, MODEL, "c", {"n": 2})
        assert found(removing, space=other) == {"b": {"n": 1}}
        assert found(removing) == {"c": {"n": 2}}
