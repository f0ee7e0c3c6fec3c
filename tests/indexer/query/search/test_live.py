"""The search of a reader follows the writer, and starts from what was saved."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from capdex.errors import Code, Unavailable
from capdex.routing import stored as stored_triggers
from capdex.search.document import Document
from capdex.search.segments import stored as stored_words
from capdex.search.semantic import Encoder, encode_documents
from capdex_indexer.query.index import Index
from capdex_indexer.query.search import follower, mapped_encoder, processes
from capdex_indexer.query.search import live as live_module
from capdex_indexer.query.search.mapped_encoder import MappedEncoder
from capdex_indexer.query.search.snapshots import Snapshots
from capdex_indexer.query.status import read_revision
from capdex_indexer.store import Store
from tests.indexer.found import search_page

Opened = Callable[..., Index]

# What concerns files of saved segments and vectors alone; how each database is read into them is
# tested by what has no such mark.
from_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "index.db.search"


@pytest.fixture
def encoder(directory: Path, written: Path) -> MappedEncoder:
    """The encoder of a reader that finds its weights written."""
    directory.mkdir()
    shutil.copy(written / mapped_encoder.FILE, directory)
    return MappedEncoder(directory)


@pytest.fixture
def publish(making: Any, store: Store, chain: Any) -> Callable[..., None]:
    def publish(*names: str) -> None:
        for name in names:
            chain.publish(
                name,
                description=f"Counts {name} and others",
                triggers=[{"type": "keyword", "value": "/count"}],
            )
        making.follow(store, chain)

    return publish


@pytest.fixture
def following(database_url: str, directory: Path) -> Iterator[Opened]:
    opened: list[Index] = []

    def open_one(encoder: MappedEncoder | None = None) -> Index:
        index = Index(database_url)
        opened.append(index)
        index.follow(directory, encoder)
        return index

    yield open_one
    for index in opened:
        index.close()


def revision_of(index: Index) -> int:
    with index.read() as connection:
        return read_revision(connection)[0]


def names(index: Index, query: str = "") -> list[str | None]:
    return [hit.release.name for hit in search_page(index, query, limit=50).hits]


def fresh(database_url: str, query: str = "") -> list[str | None]:
    with closing(Index(database_url)) as index:
        return names(index, query)


def built(database_url: str) -> tuple[bytes, bytes]:
    """The words and the triggers of a state that is built from the database."""
    with closing(Index(database_url)) as index, index.read() as connection:
        state = index.live.catch_up(connection)
        ((words,), (triggers,)) = state.engine.parts, state.triggers.parts
        return stored_words.to_bytes(words.segment), stored_triggers.to_bytes(triggers.segment)


def vectors(index: Index) -> Any:
    """The vectors of a reader that is then closed."""
    until(lambda: index.live.state is not None and not index.live.lacks_vectors(1))
    assert index.live.state is not None
    (part,) = index.live.state.engine.parts
    index.close()
    assert part.segment.vectors is not None
    return part.segment.vectors.rows


def files(directory: Path) -> list[Path]:
    return sorted(x for x in directory.iterdir() if x.name != "lock")


def read(manifest: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(manifest.read_bytes().rpartition(b"\n")[0])
    return found


def write(manifest: Path, saved: dict[str, Any]) -> None:
    body = json.dumps(saved).encode()
    manifest.write_bytes(body + b"\n" + sha256(body).hexdigest().encode())


def routed(index: Index, message: str) -> list[str]:
    """The packages with a trigger that a message hits."""
    return sorted(x.name for x, _ in index.route(message).packages if x.match)


def never(*_: object) -> object:
    raise AssertionError("it is built again")


def until(done: Callable[[], object]) -> None:
    """Wait for a thread's work."""
    pause = threading.Event()
    while not done():
        pause.wait(0.01)


def test_a_reader_that_follows_finds_what_was_committed(
    publish: Callable[..., None], following: Opened
) -> None:
    publish("apples")
    index = following()
    assert names(index, "counts") == ["apples"]
    publish("pears")
    until(lambda: names(index, "pears") == ["pears"])
    publish(*(f"plum-{number}" for number in range(live_module.INLINE + 8)))
    until(lambda: len(names(index)) == live_module.INLINE + 10)


def test_a_query_that_leaves_names_behind_wakes_a_resting_follower(
    publish: Callable[..., None], following: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "LOOK_S", 3600.0)
    monkeypatch.setattr(follower, "REST_S", 3600.0)
    publish("apples")
    index = following()
    assert names(index) == ["apples"]
    publish(*(f"plum-{number}" for number in range(live_module.INLINE + 1)))
    until(lambda: len(names(index)) == live_module.INLINE + 2)


def test_a_query_waits_for_the_commit_that_is_being_brought_in(
    publish: Callable[..., None], following: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_module, "TURN_S", 60.0)
    publish("apples")
    index = following()
    assert names(index) == ["apples"]
    found: list[list[str | None]] = []
    with index.live._turn:
        publish("pears")
        query = threading.Thread(target=lambda: found.append(names(index)))
        query.start()
        query.join(0.1)
    query.join()
    assert found == [["apples", "pears"]]


def test_queries_beside_a_long_change_answer_from_the_state_before_it(
    publish: Callable[..., None], following: Opened
) -> None:
    publish("apples")
    index = following()
    assert names(index) == ["apples"]
    with index.live._turn:
        publish("pears")
        for _ in range(3):
            assert names(index) == ["apples"]
    until(lambda: names(index) == ["apples", "pears"])


def test_no_query_waits_while_many_names_are_brought_in(
    publish: Callable[..., None], following: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish("apples")
    index = following()
    assert names(index) == ["apples"]
    begun, end = threading.Event(), threading.Event()
    of_names = live_module.read_documents

    def slow(*given: Any) -> Any:
        begun.set()
        end.wait()
        return of_names(*given)

    monkeypatch.setattr(live_module, "read_documents", slow)
    monkeypatch.setattr(live_module, "INLINE", 1)
    monkeypatch.setattr(live_module, "TURN_S", 3600.0)
    publish("pears", "plums")
    try:
        begun.wait()
        assert names(index) == ["apples"]
    finally:
        end.set()
    until(lambda: names(index) == ["apples", "pears", "plums"])


def test_a_restart_reads_what_was_saved_and_catches_up(
    publish: Callable[..., None],
    following: Opened,
    directory: Path,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publish("apples", "pears")
    index = following()
    assert names(index) == ["apples", "pears"]
    index.close()
    assert [x.name for x in files(directory)][-1] == "manifest"
    publish("plums")

    monkeypatch.setattr(live_module.LiveSearch, "_build", never)
    assert names(following()) == ["apples", "pears", "plums"]
    monkeypatch.undo()
    assert fresh(database_url) == ["apples", "pears", "plums"]


def test_a_restart_reads_saved_routes_and_catches_up(
    publish: Callable[..., None], following: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish("apples", "pears")
    index = following()
    assert routed(index, "/count") == ["apples", "pears"]
    index.close()
    publish("plums")
    monkeypatch.setattr(live_module, "read_range", never)
    assert routed(following(), "/count") == ["apples", "pears", "plums"]


@from_sqlite
def test_saved_routes_of_other_packages_are_built_again(
    publish: Callable[..., None], following: Opened, directory: Path
) -> None:
    publish("apples")
    index = following()
    assert routed(index, "/count") == ["apples"]
    index.close()
    write(directory / "manifest", read(directory / "manifest") | {"triggers": []})
    index = following()
    until(lambda: routed(index, "/count") == ["apples"])


def test_a_rebuilt_search_has_its_routes(
    publish: Callable[..., None],
    following: Opened,
    directory: Path,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publish("apples")
    with closing(Index(database_url)) as index:
        index.rebuild_search(directory)
    monkeypatch.setattr(live_module, "read_range", never)
    assert routed(following(), "/count") == ["apples"]


def test_helpers_build_what_the_reader_builds(
    making: Any,
    store: Store,
    chain: Any,
    publish: Callable[..., None],
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publish("apples", "pears", "plums", "quinces")
    chain.publish("pear", title="Pears", publisher=making.OTHER)
    chain.publish("peaks", title="Pears")
    making.follow(store, chain)
    by_itself = built(database_url)
    monkeypatch.setattr(live_module, "PAGE", 2)
    monkeypatch.setattr(live_module, "MANY", 1)
    monkeypatch.setattr(live_module, "read_range", never)
    assert built(database_url) == by_itself


def test_a_helper_that_fails_is_an_error_of_the_reader(
    publish: Callable[..., None], database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish("apples")
    monkeypatch.setattr(live_module, "MANY", 1)
    monkeypatch.setattr(processes, "COMMAND", (sys.executable, "-c", "raise SystemExit(1)"))
    with closing(Index(database_url)) as index, pytest.raises(Unavailable, match="ended"):
        names(index)
    monkeypatch.undo()
    monkeypatch.setattr(live_module, "MANY", 1)
    with closing(Index(database_url)) as index, index.read() as connection:
        monkeypatch.setattr(index.live, "database", f"{database_url}-of-another")
        with pytest.raises(Unavailable, match="failed"):
            index.live.catch_up(connection)


@from_sqlite
@pytest.mark.parametrize("end", ["cut", "changed", "gone"])
@pytest.mark.parametrize("which", ["{", "capdex segment", "capdex triggers"])
def test_damaged_files_are_built_again(
    which: str,
    end: str,
    publish: Callable[..., None],
    following: Opened,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publish("apples", "pears")
    index = following()
    assert routed(index, "/count") == ["apples", "pears"]
    index.close()
    (path,) = [x for x in files(directory) if x.read_bytes().startswith(which.encode())]
    data = path.read_bytes()
    match end:
        case "cut":
            path.write_bytes(data[: len(data) // 2])
        case "changed":
            path.write_bytes(data[:40] + bytes([data[40] ^ 1]) + data[41:])
        case _:
            path.unlink()
    index = following()
    assert names(index, "counts") == ["apples", "pears"]
    assert routed(index, "/count") == ["apples", "pears"]
    index.close()
    monkeypatch.setattr(live_module, "read_range", never)  # nothing damaged is left
    assert routed(following(), "/count") == ["apples", "pears"]


@from_sqlite
def test_what_another_version_saved_is_built_again_and_named_as_that(
    publish: Callable[..., None], following: Opened, directory: Path
) -> None:
    publish("apples")
    names(index := following())
    index.close()
    (path,) = [x for x in files(directory) if x.read_bytes().startswith(b"capdex segment")]
    data = path.read_bytes()
    path.write_bytes(data[:15] + b"0" + data[16:])
    with capture_logs() as logs:
        assert names(following()) == ["apples"]
    said = [x["why"] for x in logs if x["event"] == "the saved search is not used"]
    assert said == ["a stored segment is invalid: another version made it, or it is not one"]


@pytest.mark.parametrize("key", ["index", "revision"])
def test_what_differs_from_the_database_is_built_again(
    key: str, publish: Callable[..., None], following: Opened, directory: Path
) -> None:
    publish("apples")
    names(index := following())
    index.close()
    publish("pears")
    manifest = directory / "manifest"
    saved = read(manifest)
    # as if another database had been saved, or as if pears were in what was saved
    saved[key] = "0" * 64 if key == "index" else revision_of(index)
    write(manifest, saved)
    index = following()
    until(lambda: names(index) == ["apples", "pears"])  # it is checked while it answers


def test_a_database_that_cannot_be_read_ends_no_follower(
    publish: Callable[..., None], following: Opened, directory: Path
) -> None:
    publish("apples")
    directory.write_bytes(b"no directory")  # nothing can be saved there
    index = following()
    assert names(index) == ["apples"]
    publish("pears")
    until(lambda: names(index) == ["apples", "pears"])


def test_a_search_is_pending_while_the_first_engine_is_built(
    publish: Callable[..., None],
    following: Opened,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publish("apples")
    go_on = threading.Event()
    read_range = live_module.read_range

    def slowly(*given: Any) -> Any:
        go_on.wait()
        return read_range(*given)

    monkeypatch.setattr(live_module, "read_range", slowly)
    monkeypatch.setattr(live_module, "FIRST_S", 0.01)
    index = following()
    with pytest.raises(Unavailable) as caught:
        names(index)
    assert caught.value.code is Code.PENDING
    assert caught.value.why in ("no package is in it yet", "0 of 1 packages are in it")
    go_on.set()
    monkeypatch.setattr(live_module, "FIRST_S", 60.0)
    assert names(index) == ["apples"]


def test_one_process_saves_and_the_others_read(
    publish: Callable[..., None], following: Opened, directory: Path, database_url: str
) -> None:
    publish("apples")
    first = following()
    names(first)
    with closing(Index(database_url)) as other:
        while not (directory / "manifest").exists():
            names(first)
        with pytest.raises(Unavailable) as caught:
            other.rebuild_search(directory)
        assert caught.value.code is Code.DATABASE_LOCKED
        first.close()
        os.truncate(directory / "manifest", 3)
        assert other.rebuild_search(directory).engine.packages == 1
        publish("pears")
    assert names(following()) == ["apples", "pears"]


@from_sqlite
def test_texts_are_encoded_beside_and_vectors_are_read_again(
    making: Any,
    store: Store,
    chain: Any,
    following: Opened,
    encoder: MappedEncoder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chain.publish("money", description="Converts an amount from one currency to another")
    chain.publish("notes", description="Keeps short texts that you dictate")
    making.follow(store, chain)
    index = following(encoder)
    until(lambda: index.find("x").mode == "semantic")
    answer = index.find("我想把美元换成欧元")
    assert answer.hits[0].name == "money"
    assert (answer.hits[0].similarity or 0) > 0.15
    chain.publish("rain", description="Tells whether it will rain")
    making.follow(store, chain)
    until(lambda: [x.name for x in index.find("明天会下雨吗").hits] == ["rain"])
    index.close()

    def encode(*_: object) -> object:
        raise AssertionError("it is encoded again")

    monkeypatch.setattr(live_module, "encode_documents", encode)
    assert following(encoder).find("明天会下雨吗").hits[0].name == "rain"
    monkeypatch.undo()
    plain = following()
    assert (plain.find("明天会下雨吗").hits, plain.find("rain").mode) == ([], "lexical")


@from_sqlite
def test_helpers_encode_what_the_reader_encodes(
    publish: Callable[..., None],
    following: Opened,
    directory: Path,
    encoder: MappedEncoder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publish("apples", "pears", "plums")
    by_itself = vectors(following(encoder))
    (directory / "manifest").unlink()
    monkeypatch.setattr(follower, "MANY", 1)
    monkeypatch.setattr(mapped_encoder, "AT_ONCE", 2)
    monkeypatch.setattr(MappedEncoder, "encode", never)
    assert (vectors(following(encoder)) == by_itself).all()


@from_sqlite
def test_saved_vectors_of_another_encoding_are_made_again(
    publish: Callable[..., None],
    following: Opened,
    encoder: MappedEncoder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publish("apples", "pears")
    index = following(encoder)
    until(lambda: index.find("x").mode == "semantic")
    index.close()
    encoded: list[str] = []

    def encode(encoder: Encoder, documents: Sequence[Document]) -> dict[str, Any]:
        encoded.extend(document.name for document in documents)
        return encode_documents(encoder, documents)

    monkeypatch.setattr(live_module, "encode_documents", encode)
    encoder.identity += " of texts that are chosen otherwise"
    again = following(encoder)
    until(lambda: again.find("x").mode == "semantic")
    assert sorted(encoded) == ["apples", "pears"]


def test_routes_follow_the_writer(
    making: Any,
    store: Store,
    chain: Any,
    following: Opened,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def publish(name: str, version: str, word: str) -> None:
        chain.publish(name, version, triggers=[{"type": "keyword", "value": word}])
        making.follow(store, chain)

    publish("rain", "1.0.0", "umbrella")
    monkeypatch.setattr(live_module, "FIRST_S", 60.0)
    index = following()  # its first answer waits until the triggers are read
    assert routed(index, "my umbrella") == ["rain"]
    publish("rain", "1.1.0", "wet")
    publish("sun", "1.0.0", "hat")
    until(lambda: routed(index, "a wet hat") == ["rain", "sun"])
    assert routed(index, "my umbrella") == []
    with closing(Index(database_url)) as other:
        assert routed(other, "a wet hat") == ["rain", "sun"]


def test_what_many_packages_lack_is_built_once_by_a_helper_for_all_readers(
    publish: Callable[..., None], following: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish("apples", "pears", "plums")
    monkeypatch.setattr(live_module, "MANY", 1)
    monkeypatch.setattr(live_module.LiveSearch, "_build", never)
    monkeypatch.setattr(live_module, "FIRST_S", 60.0)
    readers = [following(), following()]
    assert [names(index) for index in readers] == [["apples", "pears", "plums"]] * 2
    publish("quinces")
    until(lambda: [routed(x, "/count")[-1] for x in readers] == ["quinces"] * 2)


@from_sqlite
def test_a_reader_whose_helper_cannot_save_builds_by_itself(
    publish: Callable[..., None],
    following: Opened,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    publish("apples", "pears")
    monkeypatch.setattr(live_module, "MANY", 2)
    monkeypatch.setattr(live_module, "PAGE", 1)
    monkeypatch.setattr(live_module, "FIRST_S", 60.0)
    (directory / "manifest").mkdir(parents=True)
    assert names(following()) == ["apples", "pears"]


AWAY = Unavailable("the database is away", Code.DATABASE_UNAVAILABLE, why="no route")
STARTING = Unavailable("the database is away", Code.DATABASE_UNAVAILABLE, why="it starts up")


@pytest.mark.parametrize(
    ("errors", "line"),
    [
        ([AWAY], "the database is away: no route"),
        ([AWAY, AWAY, STARTING], "the database is away: no route"),
        ([OSError(24, "Too many open files")], "[Errno 24] Too many open files"),
    ],
    ids=["the database is away", "the database starts again and again", "the system refuses"],
)
def test_why_the_search_does_not_follow_is_logged_once(
    errors: list[Exception],
    line: str,
    database_url: str,
    directory: Path,
    following: Opened,
    publish: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(follower, "RETRY_S", 0.0)
    publish("bears")
    names(saving := following())
    saving.close()
    left = 5

    def read() -> Any:
        nonlocal left
        left -= 1
        if left >= 0:
            raise errors[left % len(errors)]
        return index.read()

    with closing(Index(database_url)) as index, capture_logs() as logs:
        waiting = follower.SearchFollower(index.live, read, index.watch(), Snapshots(directory))
        waiting.start()
        until(lambda: index.live.state is not None)
        waiting.close()
    said = {x["event"]: [y["why"] for y in logs if y["event"] == x["event"]] for x in logs}
    assert said["the search does not follow the index"] == [line]
    assert said["the saved search is not used"] == [line]
