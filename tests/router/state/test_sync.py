"""Exchange by file: two machines agree; a file that is not whole is merged not at all."""

# ruff: noqa: E501 - tables

from __future__ import annotations

import io
import json
import os
import resource
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import loro
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from capdex.errors import Code, InvalidInput, UsageError
from capdex_router.state import sync
from capdex_router.state.patch import apply
from capdex_router.state.query import read
from capdex_router.state.rows import Space
from capdex_router.state.store import ObjectStore
from capdex_router.state.strategies import model
from capdex_router.state.sync import entries, export, merge

OWNER = "did:nuwa:cap:note"
SPACE = Space(OWNER, "sc:note")
MODEL = model(
    "did:nuwa:state:note#v1",
    {
        "x-asm": {"x-ttl": "PT1H"},
        "properties": {"n": {"x-crdt": "counter"}, "log": {"x-crdt": "log_rga"}},
    },
)
PUBLIC = model("did:nuwa:state:open#v1", {"x-asm": {"x-visibility": "public"}})


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Machine:
    """A store in a folder, and its exports."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        folder.mkdir()
        self.store = ObjectStore(folder / "state.sqlite", clock)
        self.file = folder / "state.jsonl"

    def send(self, **options: Any) -> Path:
        export(self.store, OWNER, self.file, **options)
        return self.file

    def pass_on(self, other: Machine) -> None:
        """Merge an export into another machine; one that keeps nothing has none."""
        try:
            file = self.send()
        except InvalidInput as error:
            if error.code is not Code.NOT_FOUND:
                raise
        else:
            merge(other.store, file)

    def objects(self) -> dict[str, Any]:
        page = self.store.query(SPACE, MODEL, read({"limit": 100}))
        return {hit.id: hit.value for hit in page.hits}

    def inc(self, id_: str, by: int = 1) -> None:
        self.store.update(SPACE, MODEL, id_, lambda value: apply(value, {"$inc": {"n": by}}))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def machines(tmp_path: Path, clock: Clock) -> Iterator[Callable[[], Machine]]:
    made: list[Machine] = []

    def machine() -> Machine:
        made.append(Machine(tmp_path / str(len(made)), clock))
        return made[-1]

    yield machine
    for one in made:
        one.store.close()


def test_two_machines_agree_after_an_exchange(machines: Callable[[], Machine]) -> None:
    here, there = machines(), machines()
    for id_ in "abc":
        here.store.create(SPACE, MODEL, id_, {"n": 1, "log": [id_]})
    assert merge(there.store, here.send(), empty=True) == (OWNER, (3, 0, 0))
    here.inc("a", 2)
    there.inc("a", 3)
    here.store.delete(SPACE, MODEL, "b")
    there.store.delete(SPACE, MODEL, "c", hard=True)
    assert merge(there.store, here.send()) == (OWNER, (0, 2, 1))
    assert merge(here.store, there.send()) == (OWNER, (0, 2, 1))
    assert here.objects() == there.objects() == {"a": {"n": 6, "log": ["a"]}}
    assert merge(here.store, there.send()) == (OWNER, (0, 0, 3)), "again changes nothing"
    assert here.store.purge() == 2
    assert merge(here.store, there.send()).__class__ is tuple
    assert here.objects() == there.objects(), "what was erased does not come back"


def test_an_import_needs_an_owner_without_objects(machines: Callable[[], Machine]) -> None:
    here, there = machines(), machines()
    here.store.create(SPACE, MODEL, "a", {"n": 1})
    there.store.create(Space(OWNER, "sc:more"), MODEL, "a", {"n": 5})
    with pytest.raises(InvalidInput, match="has objects"):
        merge(there.store, here.send(), empty=True)
    assert there.objects() == {}


def test_what_expired_is_not_sent_and_not_taken(
    machines: Callable[[], Machine], clock: Clock
) -> None:
    here, there = machines(), machines()
    here.store.create(SPACE, MODEL, "a", {"n": 1})
    there.store.create(SPACE, MODEL, "b", {"n": 1})
    file = here.send()
    clock.now += 3_601
    assert merge(there.store, file) == (OWNER, (0, 0, 1))
    assert export(here.store, OWNER, here.file) == 0
    assert there.objects() == {}


def test_what_was_deleted_is_not_passed_on_to_others(machines: Callable[[], Machine]) -> None:
    here, there = machines(), machines()
    here.store.create(SPACE, PUBLIC, "a", {"t": "to take back"})
    merge(there.store, here.send(public=True))
    here.store.delete(SPACE, PUBLIC, "a")
    found = list(entries(here.store, OWNER, public=True))
    assert [(one.id, one.document) for one in found] == [("a", None)]
    assert merge(there.store, here.send(public=True))[1] == (0, 1, 0)
    assert [one.deleted for one in there.store.collections()] == [1]


def test_public_objects_alone_are_for_others(machines: Callable[[], Machine]) -> None:
    here, there = machines(), machines()
    here.store.create(SPACE, MODEL, "a", {"t": "private"})
    here.store.create(SPACE, PUBLIC, "p", {"t": "public"})
    file = here.send(public=True)
    assert merge(there.store, file) == (OWNER, (1, 0, 0))
    assert b'"id":"a"' not in file.read_bytes()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_any_cut_or_changed_byte_refuses_the_whole_file(machines: Callable[[], Machine]) -> None:
    here, there = machines(), machines()
    for id_ in "ab":
        here.store.create(SPACE, MODEL, id_, {"n": 1})
    data = here.send().read_bytes()
    random = Random(1)  # noqa: S311 - random numbers here are not secret
    for _ in range(150):
        place = random.randrange(len(data))
        bad = random.choice([data[:place], data + b"x", data[:place] + b"\n" + data[place:],
                             data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]])  # fmt: skip
        there.file.write_bytes(bad)
        with pytest.raises(InvalidInput):
            merge(there.store, there.file)
    assert there.objects() == {}
    assert merge(there.store, here.file) == (OWNER, (2, 0, 0))


def line(**fields: Any) -> bytes:
    return json.dumps(fields).encode() + b"\n"


HEADER = line(format="capdex-state/1", owner=OWNER)
OBJECT = {"scope": "s", "schema_uri": "u", "id": "i"}


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\n", b"{}\n", b"[" * 100_000 + b"\n", line(format="capdex-state/2", owner=OWNER),
        line(format="capdex-state/1", owner=""), line(format="capdex-state/1", owner="x" * 600), HEADER,
        HEADER + line(**OBJECT), HEADER + line(**OBJECT, more=1), HEADER + line(**OBJECT, document="*"),
        HEADER + line(**OBJECT, document=5), HEADER + line(**(OBJECT | {"id": ""})),
        HEADER + line(**OBJECT, document=""), HEADER + b'{"objects":', HEADER + b'{"objects":0}\n',
        HEADER + line(**OBJECT, document="bG9ybwAA"),
    ],
)  # fmt: skip
def test_a_file_that_is_none_is_refused(machines: Callable[[], Machine], data: bytes) -> None:
    here = machines()
    here.file.write_bytes(data)
    with pytest.raises(InvalidInput):
        merge(here.store, here.file)
    assert [x for x in here.store.collections() if x.live or x.deleted] == []


def test_an_object_of_32_mib_is_refused(machines: Callable[[], Machine]) -> None:
    here = machines()
    with here.file.open("wb") as file:
        file.write(HEADER + b'{"scope":"s","schema_uri":"u","id":"i","document":"')
        file.write(b"A" * (32 * 1024 * 1024) + b'"}\n')
    with pytest.raises(InvalidInput) as caught:
        merge(here.store, here.file)
    assert caught.value.code is Code.TOO_LARGE


def test_what_was_kept_can_be_sent(machines: Callable[[], Machine]) -> None:
    here, there = machines(), machines()
    here.store.create(SPACE, MODEL, "a", {})

    def written(number: int) -> None:  # little when it is compressed, as it is kept
        patch = [{"op": "add", "path": "/t", "value": str(number) * 100_000}]
        here.store.update(SPACE, MODEL, "a", lambda value: apply(value, patch))

    for number in range(10, 30):
        written(number)
    with pytest.raises(InvalidInput) as caught:
        written(30)
    assert caught.value.code is Code.TOO_LARGE
    here.store.delete(SPACE, MODEL, "a")
    assert merge(there.store, here.send())[1].new == 1


def test_an_object_that_cannot_be_sent_or_merged_is_named(
    machines: Callable[[], Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = machines(), machines()
    here.store.create(SPACE, MODEL, "small", {})
    here.store.create(SPACE, MODEL, "large", {"t": "x" * 10_000})
    here.send()
    monkeypatch.setattr("capdex_router.state.object.MAX_BLOB_BYTES", 5_000)
    for exchanged in (here.send, lambda: merge(there.store, here.file)):
        with pytest.raises(InvalidInput, match="'large'") as caught:
            exchanged()
        assert caught.value.code is Code.TOO_LARGE


def crowded() -> loro.LoroDoc:
    """A list of very many items: three bytes each, and much memory once imported."""
    doc = loro.LoroDoc()
    items = doc.get_list("l")
    for _ in range(1_200_000):
        items.insert(0, None)
    return doc


def nested() -> loro.LoroDoc:
    """A value that is nested deeper than the stack of who reads it."""
    doc = loro.LoroDoc()
    value: Any = []
    for _ in range(50_000):
        value = [value]
    doc.get_map("meta").insert("x", value)
    return doc


@pytest.mark.parametrize("make", [crowded, nested])
def test_an_object_that_would_end_its_reader_is_refused_before_the_merge(
    tmp_path: Path, make: Callable[[], loro.LoroDoc]
) -> None:
    blobs: list[bytes] = []

    def build() -> None:
        doc = make()
        doc.commit()
        blobs.append(doc.export(loro.ExportMode.Updates(loro.VersionVector())))

    before = threading.stack_size(1 << 30)  # the writer of the file has the stack for it
    builder = threading.Thread(target=build)
    builder.start()
    builder.join()
    threading.stack_size(before)
    path = tmp_path / "hostile.state"
    with path.open("wb") as stream:
        entry = sync.SyncEntry("sc:note", "did:nuwa:state:note#v1", "a", blobs[0])
        assert sync._write(stream, OWNER, [entry]) == 1
    with pytest.raises(InvalidInput) as refused:
        sync.judge(path)
    assert refused.value.code is Code.TOO_LARGE


@pytest.mark.parametrize("field", ["registers", "mv_register:m"])
def test_a_value_that_is_nested_too_deep_is_refused(tmp_path: Path, field: str) -> None:
    doc = loro.LoroDoc()
    deep = doc.get_map(field)
    deep.insert("1", "0")  # of a register with two values one is shown, and both are conflicts
    deep.insert("2", '{"a":' * 900 + "1" + "}" * 900)
    doc.commit()
    blob = doc.export(loro.ExportMode.Updates(loro.VersionVector()))
    entry = sync.SyncEntry(SPACE.scope, "did:nuwa:state:note#v1", "a", blob)
    kind = model("did:nuwa:state:note#v1", {"properties": {"m": {"x-crdt": "mv_register"}}})
    with ObjectStore(tmp_path / "state.sqlite") as store:
        store.query(SPACE, kind, read({}))
        with pytest.raises(InvalidInput, match=r"'a'.*nested deeper"):
            sync.merge_entries(store, OWNER, [entry])


def test_an_export_that_the_disk_cuts_short_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", others.append)
    path, limits = tmp_path / "state.sqlite", resource.getrlimit(resource.RLIMIT_FSIZE)
    with ObjectStore(path) as store:
        for number in range(3):
            store.create(SPACE, MODEL, str(number), {"t": "x" * 100_000})

    def exported() -> None:
        with ObjectStore(path) as store:
            resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
            try:
                export(store, OWNER, tmp_path / "state")
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    with pytest.raises(UsageError, match="cannot write"):
        exported()
    assert not others


def test_whatever_else_is_in_a_file_is_left_to_its_merge(
    machines: Callable[[], Machine], tmp_path: Path
) -> None:
    machine = machines()
    machine.store.create(SPACE, MODEL, "a", {"n": 1})
    sync.judge(machine.send())
    (tmp_path / "none").write_bytes(b"no state")
    sync.judge(tmp_path / "none")
    sync.judge(tmp_path / "absent")


def test_a_file_beyond_its_limit_is_refused_unread(
    machines: Callable[[], Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = machines()
    monkeypatch.setattr(sync, "MAX_FILE_BYTES", 10)
    here.file.write_bytes(b"x" * 11)
    with pytest.raises(InvalidInput) as caught:
        merge(here.store, here.file)
    assert caught.value.code is Code.TOO_LARGE


def test_files_that_are_not_there_are_unreadable(machines: Callable[[], Machine]) -> None:
    here = machines()
    here.store.create(SPACE, MODEL, "a", {"n": 1})
    for work in (merge, lambda store, path: export(store, OWNER, path)):
        with pytest.raises(UsageError):
            work(here.store, here.file.parent / "none" / "file")


def test_an_export_takes_the_place_of_a_file_alone(
    machines: Callable[[], Machine], tmp_path: Path
) -> None:
    here = machines()
    here.store.create(SPACE, MODEL, "a", {"n": 1})
    os.mkfifo(tmp_path / "special")
    for path in (Path(), Path("/"), tmp_path, tmp_path / "special"):
        with pytest.raises(UsageError):
            export(here.store, OWNER, path)
    assert (tmp_path / "special").is_fifo()
    (tmp_path / "kept").write_bytes(b"")
    (tmp_path / "kept").chmod(0o644)
    (tmp_path / "link").symlink_to("kept")
    export(here.store, OWNER, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert merge(here.store, tmp_path / "kept")[0] == OWNER
    assert stat.S_IMODE((tmp_path / "kept").stat().st_mode) == 0o600


def test_a_writer_with_our_number_is_refused(
    machines: Callable[[], Machine], tmp_path: Path, clock: Clock
) -> None:
    """As if a copy of a database had kept its numbers."""
    here, there = machines(), machines()
    here.store.create(SPACE, MODEL, "a", {"n": 1})
    merge(there.store, here.send())
    [peer] = [row[0] for row in rows_of(here.store, "SELECT peer FROM documents")]
    with there.store.database.writing() as run:
        run("UPDATE documents SET peer = ?", (peer,))
    there.inc("a", 5)
    clock.now += 1
    here.inc("a", 1)
    before = here.objects()
    with pytest.raises(InvalidInput, match="never"):
        merge(here.store, there.send())
    assert here.objects() == before


def rows_of(store: ObjectStore, sql: str) -> list[Any]:
    with store.database.reading() as run:
        return list(run(sql).fetchall())


@given(st.binary(max_size=200) | st.builds(lambda x: HEADER + x, st.binary(max_size=200)))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput):  # noqa: PT012 - to the end of the file
        _, found = sync.read(io.BytesIO(data))
        list(found)


@settings(max_examples=12)
@given(st.integers(0, 2**32))
@example(416)  # a machine keeps nothing when it is to send
def test_stores_converge_with_deletions_and_expiry(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - random numbers here are not secret
    clock = Clock()
    with TemporaryDirectory() as folder:
        machines = [Machine(Path(folder) / str(n), clock) for n in range(random.randint(2, 3))]
        gone: set[str] = set()
        for number in range(random.randint(5, 25)):
            one, other = random.sample(machines, 2)
            clock.now += random.choice([1, 60, 1_500])
            live = sorted(one.objects())
            match random.random():
                case x if x < 0.3 or not live:
                    one.store.create(SPACE, MODEL, f"o{number}", {"n": number, "log": [number]})
                case x if x < 0.6:
                    one.inc(random.choice(live), random.randint(-3, 3))
                case x if x < 0.75:
                    id_ = random.choice(live)
                    one.store.delete(SPACE, MODEL, id_, hard=random.random() < 0.5)
                    gone.add(id_)
                case x if x < 0.8:
                    one.store.purge()
                case _:
                    one.pass_on(other)
        for _ in range(2):
            for one in machines:
                for other in machines:
                    if one is not other:
                        one.pass_on(other)
        contents = [one.objects() for one in machines]
        for one in machines:
            one.store.close()
        assert all(each == contents[0] for each in contents)
        assert not gone & contents[0].keys()
