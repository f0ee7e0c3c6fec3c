"""The mirror: one file a name, the same bytes for the same index, only what changed written."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capdex.errors import InvalidInput, Unavailable, UsageError
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.uri import check_name
from capdex_indexer.db.engine import open_reader, transaction
from capdex_indexer.http.status import Surface
from capdex_indexer.mirror.content import CONFIG, name_at, path_of
from capdex_indexer.mirror.directory import MirrorResult, write_mirror
from capdex_indexer.monitoring.health import Health
from capdex_indexer.query.index import Index
from capdex_indexer.store import Delay, Operator, Store

NAMES = ["ab", "a-b", "note", "note-book", "n" * 64]
GATEWAY = "/ipfs/{cid}?format=raw"

Write = Callable[..., MirrorResult]


@pytest.fixture
def write(database_url: str, store: Store, tmp_path: Path) -> Write:
    """Mirror the index into a directory, `mirror` if none is named."""

    def mirror(name: str = "mirror", gateway: str | None = GATEWAY, **options: Any) -> MirrorResult:
        engine = open_reader(database_url)
        options.setdefault("report", lambda done, total: None)
        try:
            with transaction(engine) as connection:
                return write_mirror(connection, tmp_path / name, gateway=gateway, **options)
        finally:
            engine.dispose()

    return mirror


@pytest.fixture
def filled(store: Store, chain: Any, making: Any) -> Any:
    for name in NAMES:
        chain.publish(name)
    chain.publish("note", "1.1.0", description="Notes: ünïcödé 🦆")
    chain.publish("note", "0.9.0", data=b"not a package")
    chain.mine(making.yanked("note", "1.1.0", "loses notes"))
    chain.mine(making.name_deprecated("ab", "old", "note"))
    making.follow(store, chain)
    return chain


def tree(directory: Path) -> dict[str, bytes]:
    """Every file by its path."""
    files = (path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in files}


def lines(directory: Path, name: str) -> list[Any]:
    text = (directory / path_of(name)).read_text("utf-8")
    assert text.endswith("\n")
    return [json.loads(line) for line in text.removesuffix("\n").split("\n")]


# layout ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("ab", "2/ab"),
        ("abc", "3/a/abc"),
        ("a-b", "3/a/a-b"),
        ("abcd", "ab/cd/abcd"),
        ("a-bc", "a-/bc/a-bc"),
        ("note-book", "no/te/note-book"),
    ],
)
def test_names_lie_where_crates_io_would_put_them(name: str, path: str) -> None:
    assert path_of(name) == path
    assert name_at(path) == name


@given(
    name=st.from_regex(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", fullmatch=True).filter(
        lambda x: 2 <= len(x) <= 64
    )
)
def test_every_name_has_one_path_of_its_own_inside_the_mirror(name: str) -> None:
    path = path_of(check_name(name))
    assert name_at(path) == name
    assert path != CONFIG
    assert ".." not in path.split("/")
    assert not path.startswith("/")


@given(text=st.text() | st.text("abc/.-\\0", max_size=12))
def test_whatever_is_no_name_has_no_path(text: str) -> None:
    try:
        check_name(text)
    except InvalidInput:
        with pytest.raises(InvalidInput):
            path_of(text)
    found = name_at(text)
    assert found is None or path_of(found) == text


@pytest.mark.parametrize(
    "path", ["", "ab", "2/abc", "3/b/abc", "ab/cd/ab", "ab/cd/", "/2/ab", "2//ab", "2/ab/", "2/AB"]
)
def test_a_name_is_found_at_no_other_path(path: str) -> None:
    assert name_at(path) is None


# content --------------------------------------------------------------------------------------


def test_a_file_has_a_line_a_release_in_the_order_they_were_announced(
    filled: Any, write: Write, tmp_path: Path
) -> None:
    written = write()
    assert (written.names, written.releases) == (5, 7)
    assert (written.written, written.unchanged, written.removed) == (6, 0, 0)
    first, second, third = lines(tmp_path / "mirror", "note")
    assert [x["semver"] for x in (first, second, third)] == ["1.0.0", "1.1.0", "0.9.0"]
    sequences = [x["chain"]["sequence"] for x in (first, second, third)]
    assert sequences == sorted(sequences)
    assert first["acp_metadata"]["description"] == "What note does."
    assert first["verification"]["verdict"] == "verified"
    assert second["status"]["yanked"] is True
    assert second["status"]["yank_reason"] == "loses notes"
    assert "🦆" in second["acp_metadata"]["description"]
    assert third["verification"]["verdict"] == "invalid"
    assert third["verification"]["reason"]
    assert third["acp_metadata"] is None
    [old] = lines(tmp_path / "mirror", "ab")
    assert old["status"]["replaced_by"] == "note"


def test_the_config_says_which_index_this_is(
    filled: Any, write: Write, tmp_path: Path, search_index: Index
) -> None:
    written, state = write(), search_index.status()
    config = json.loads((tmp_path / "mirror" / CONFIG).read_bytes())
    assert config == {
        "format": "capdex.mirror/1",
        "chain_id": 31337,
        "contract": "0x5FbDB2315678afecb367f032d93F642f64180aa3",
        "block_number": filled.head.number,
        "block_hash": "0x" + filled.head.hash.hex(),
        "log": {"count": 9, "head": state.log_head},
        "index_digest": state.index_digest,
        "content_digest": state.content_digest,
        "decoder_version": written.digest.decoder_version,
        "rules_version": written.digest.rules_version,
        "gateway": GATEWAY,
        "denied": 0,
    }


def test_a_release_that_waits_to_be_judged_says_nothing_of_the_waiting(
    store: Store, chain: Any, making: Any, write: Write, tmp_path: Path
) -> None:
    chain.publish("late")
    making.append(store, chain)
    write()
    before = tree(tmp_path / "mirror")
    [job] = store.due(1e12, 10)
    store.delay_many([Delay(job.release_id, "nobody has it", 1e12)])
    write()
    assert tree(tmp_path / "mirror") == before
    [late] = lines(tmp_path / "mirror", "late")
    assert (late["verification"]["verdict"], late["acp_metadata"]) == (None, None)


def test_two_nodes_with_one_index_write_the_same_bytes(
    filled: Any, making: Any, write: Write, tmp_path: Path
) -> None:
    write()
    url = f"sqlite:///{tmp_path / 'other.db'}"
    other = Store.open(url, making.DEPLOYMENT)
    step = filled.step()
    engine = open_reader(url)
    try:
        other.append(step, making.heads(step))
        for job in reversed(other.due(1e12, 100)):  # judged in another order
            other.record_many([(job.release_id, making.judge(filled, job))])
        with transaction(engine) as connection:
            directory = tmp_path / "other"
            write_mirror(connection, directory, gateway=GATEWAY, report=lambda *_: None)
    finally:
        engine.dispose()
        other.close()
    assert tree(tmp_path / "other") == tree(tmp_path / "mirror")


# writing --------------------------------------------------------------------------------------


def test_only_what_has_changed_is_written_again(
    filled: Any, store: Store, making: Any, write: Write, tmp_path: Path
) -> None:
    write()
    directory = tmp_path / "mirror"
    for path in directory.rglob("*"):
        os.utime(path, (1, 1))
    again = write()
    assert (again.written, again.unchanged) == (0, 6)
    filled.publish("ab", "2.0.0")
    making.follow(store, filled)
    assert (write().written, write().written) == (2, 0)
    times = {path_of(name): (directory / path_of(name)).stat().st_mtime for name in NAMES}
    assert [path for path, at in times.items() if at != 1] == ["2/ab"]


def test_a_file_that_was_damaged_is_mended(filled: Any, write: Write, tmp_path: Path) -> None:
    write()
    before = tree(tmp_path / "mirror")
    file = tmp_path / "mirror" / path_of("note")
    file.write_bytes(file.read_bytes()[::-1])
    (tmp_path / "mirror" / path_of("ab")).unlink()
    assert write().written == 2
    assert tree(tmp_path / "mirror") == before


def test_names_that_a_reorganisation_took_are_removed(
    store: Store, chain: Any, making: Any, write: Write, tmp_path: Path
) -> None:
    chain.publish("note")
    chain.publish("gone")
    making.follow(store, chain)
    write()
    store.rollback(chain.fork(1))
    chain.publish("other")
    making.follow(store, chain)
    assert write().removed == 1
    assert set(tree(tmp_path / "mirror")) == {CONFIG, path_of("note"), path_of("other")}
    assert not (tmp_path / "mirror" / "go").exists()


def test_what_the_operator_denies_is_left_out_and_comes_back(
    filled: Any, write: Write, tmp_path: Path, database_url: str, search_index: Index
) -> None:
    write()
    before = tree(tmp_path / "mirror")
    cid = next(x.cid for x in search_index.releases("note") if x.semver == "1.1.0")
    with Operator(database_url) as operator:
        operator.deny("ab")
        operator.deny(cid)
        written = write()
        assert (written.names, written.releases, written.removed, written.denied) == (4, 5, 1, 2)
        assert [x["semver"] for x in lines(tmp_path / "mirror", "note")] == ["1.0.0", "0.9.0"]
        config = json.loads((tmp_path / "mirror" / CONFIG).read_bytes())
        assert config["index_digest"] == json.loads(before[CONFIG])["index_digest"]
        assert config["denied"] == 2
        operator.undeny("ab")
        operator.undeny(cid)
    write()
    assert tree(tmp_path / "mirror") == before


@pytest.mark.parametrize("foreign", ["thesis.txt", "2/ab/thesis.txt", "config.json"])
def test_a_directory_of_something_else_is_left_alone(
    filled: Any, write: Write, tmp_path: Path, foreign: str
) -> None:
    file = tmp_path / "mirror" / foreign
    file.parent.mkdir(parents=True)
    file.write_text('{"format": "another"}')
    with pytest.raises(UsageError):
        write()
    assert tree(tmp_path / "mirror") == {foreign: b'{"format": "another"}'}


def test_files_of_somebody_else_beside_a_mirror_stay(
    filled: Any, write: Write, tmp_path: Path
) -> None:
    write()
    (tmp_path / "mirror" / "index.html").write_text("hello")
    write()
    assert (tmp_path / "mirror" / "index.html").exists()


def test_a_run_that_was_cut_short_is_ended_by_the_next(
    filled: Any, write: Write, tmp_path: Path
) -> None:
    def stop(done: int, total: int) -> None:
        assert total == len(NAMES)
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(report=stop)
    partial = tree(tmp_path / "mirror")
    assert len(partial) == 2
    abandoned = tmp_path / "mirror" / "2" / ".new-abandoned"
    abandoned.parent.mkdir(exist_ok=True)
    abandoned.write_text("half")  # a moment ago, and published it would be another CID
    write()
    assert not abandoned.exists()
    write("whole")
    assert tree(tmp_path / "mirror") == tree(tmp_path / "whole")


def test_a_file_that_is_gone_before_it_is_looked_at_ends_no_run(
    filled: Any, write: Write, tmp_path: Path
) -> None:
    write()
    finished = tmp_path / "mirror" / ".new-finished"  # by a run beside this one
    finished.symlink_to("nowhere")
    assert write().written == 0


def test_a_run_of_an_older_index_undoes_nothing_of_a_newer_one_beside_it(
    filled: Any, making: Any, store: Store, database_url: str, write: Write, tmp_path: Path
) -> None:
    engine = open_reader(database_url)

    def older(done: int, total: int) -> None:
        if done == total:
            with pytest.raises(Unavailable, match="another run"):
                write_mirror(connection, tmp_path / "mirror", gateway=GATEWAY, report=skip)

    def skip(done: int, total: int) -> None:
        """Nobody looks."""

    try:
        with transaction(engine) as connection:
            before = write_mirror(connection, tmp_path / "before", gateway=GATEWAY, report=skip)
            filled.publish("note", "2.0.0")
            filled.publish("newest")
            making.follow(store, filled)
            newer = write(report=older)
    finally:
        engine.dispose()
    assert newer.names == before.names + 1
    write("whole")
    assert tree(tmp_path / "mirror") == tree(tmp_path / "whole")


STEPS = st.one_of(
    st.tuples(st.just("publish"), st.sampled_from(NAMES), st.integers(0, 3)),
    st.tuples(st.just("yank"), st.sampled_from(NAMES), st.integers(0, 3)),
    st.tuples(st.just("reorg"), st.integers(1, 3)),
    st.tuples(st.just("deny"), st.sampled_from(NAMES)),
    st.tuples(st.just("undeny"), st.sampled_from(NAMES)),
    st.tuples(st.just("mirror")),
)


@settings(max_examples=10, deadline=None)
@given(steps=st.lists(STEPS, max_size=12))
def test_a_mirror_kept_up_to_date_is_the_same_as_a_new_one(steps: list[Any], making: Any) -> None:
    with TemporaryDirectory() as folder:
        place, chain = Path(folder), making.Chain()
        url = f"sqlite:///{place / 'index.db'}"
        store, operator, engine = (
            Store.open(url, making.DEPLOYMENT),
            Operator(url),
            open_reader(url),
        )

        def follow() -> None:
            chain.mine()
            making.follow(store, chain)

        def mirror(name: str) -> dict[str, bytes]:
            with transaction(engine) as connection:
                write_mirror(connection, place / name, gateway=None, report=lambda *_: None)
            return tree(place / name)

        try:
            for kind, *rest in steps:
                if kind == "publish":
                    chain.publish(rest[0], f"1.{rest[1]}.0")
                elif kind == "yank":
                    chain.mine(making.yanked(rest[0], f"1.{rest[1]}.0"))
                elif kind == "deny":
                    operator.deny(rest[0])
                elif kind == "undeny":
                    operator.undeny(rest[0])
                elif kind == "mirror":
                    follow()
                    mirror("kept")
                else:
                    follow()
                    store.rollback(chain.fork(min(rest[0], len(chain.blocks) - 1)))
            follow()
            assert mirror("kept") == mirror("new")
        finally:
            operator.close()
            engine.dispose()
            store.close()


def test_a_place_that_is_no_directory_is_told(filled: Any, write: Write, tmp_path: Path) -> None:
    (tmp_path / "mirror").write_text("a file")
    with pytest.raises(UsageError):
        write()


def test_an_index_without_a_block_has_no_mirror_yet(write: Write) -> None:
    with pytest.raises(Unavailable):
        write()


# served ---------------------------------------------------------------------------------------


@pytest.fixture
async def node(
    search_index: Index, block_directory: BlockDirectory, serving: Any
) -> AsyncIterator[Any]:
    async with serving.serve(Surface(search_index, block_directory, Health())) as node:
        yield node


async def test_a_node_serves_the_very_files_that_a_mirror_holds(
    filled: Any, write: Write, tmp_path: Path, node: Any
) -> None:
    write()
    for path, body in tree(tmp_path / "mirror").items():
        answer = await node(f"/index/{path}")
        assert (answer.status, answer.body) == (200, body)
        tag = f'"{hashlib.sha256(body).hexdigest()}"'
        assert answer.headers["ETag"] == tag
        head = await node(f"/index/{path}", method="HEAD")
        assert (head.status, head.headers["ETag"], head.body) == (200, tag, b"")
        again = await node(f"/index/{path}", If_None_Match=f'"x", W/{tag}')
        assert (again.status, again.body) == (304, b"")


async def test_a_tag_no_longer_holds_once_the_file_has_changed(
    filled: Any, store: Store, making: Any, node: Any
) -> None:
    tag = (await node("/index/2/ab")).headers["ETag"]
    filled.publish("ab", "2.0.0")
    making.follow(store, filled)
    answer = await node("/index/2/ab", If_None_Match=tag)
    assert answer.status == 200
    assert answer.body.count(b"\n") == 2


async def test_what_has_no_file_is_not_found(filled: Any, node: Any, database_url: str) -> None:
    with Operator(database_url) as operator:
        operator.deny("ab")
    for path in ("", "2/ab", "2/zz", "no/te/nobody", "2/../config.json", "%2e%2e/x", "no/te"):
        assert (await node(f"/index/{path}")).status == (200 if path.endswith("json") else 404)


async def test_the_config_of_an_empty_index_is_there(store: Store, node: Any) -> None:
    answer = await node(f"/index/{CONFIG}")
    assert answer.json["format"] == "capdex.mirror/1"
    assert answer.json["block_number"] is None
