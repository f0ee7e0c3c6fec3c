"""The lock file: one entry a line, unknown fields kept, bounded, and nothing else accepted."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import Code, UsageError
from capdex.ipld.cid import Cid
from capdex_router.install import lockfile
from capdex_router.install.lockfile import (
    MAX_ITEMS,
    MAX_PACKAGES,
    MAX_TEXT_CHARS,
    Lock,
    Locked,
    Places,
)

DIGEST = "ab" * 32


def entry(name: str = "weather", **changed: Any) -> Locked:
    values: dict[str, Any] = {
        "name": name,
        "request": "^1",
        "version": "1.2.0",
        "cid": Cid.raw(bytes.fromhex(DIGEST)).text,
        "sha256": DIGEST,
        "verdict": "verified",
        "signer": "did:key:z6Mk#z6Mk",
        "chain": {"chain_id": 1, "publisher": "0x" + "11" * 20},
        "permissions": ("state.create",),
        "hosts": ("api.example.org",),
        "tools": "cd" * 32,
        "lint": (),
        "explicit": True,
    } | changed
    return Locked(**values)


def lock(*entries: Locked, **extra: Any) -> Lock:
    return Lock({one.name: one for one in entries}, extra)


names = st.from_regex(r"[a-z][a-z0-9]{1,10}(-[a-z0-9]{1,5})?", fullmatch=True)
texts = st.text(st.characters(codec="utf-8"), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
extras = st.dictionaries(texts.filter(lambda key: key.startswith("x")), values, max_size=3)
entries = st.builds(
    entry,
    names,
    request=st.sampled_from(["", "1.2.0", "^1", ">=1 <3"]),
    signer=texts,
    permissions=st.lists(texts, max_size=3).map(tuple),
    hosts=st.lists(texts, max_size=3).map(tuple),
    lint=st.lists(texts, max_size=3).map(tuple),
    explicit=st.booleans(),
    extra=extras,
)
locks = st.builds(lambda found, extra: lock(*found, **extra), st.lists(entries, max_size=4), extras)


@given(locks)
def test_what_is_written_is_read_again(found: Lock) -> None:
    data = found.to_bytes()
    assert Lock.parse(data) == found
    assert Lock.parse(data).to_bytes() == data


@given(st.binary(max_size=200) | values.map(orjson.dumps))
def test_other_bytes_are_one_error(data: bytes) -> None:
    with pytest.raises(UsageError) as caught:
        Lock.parse(data)
    assert caught.value.code is Code.CONFIG


@given(locks, st.data())
def test_a_flipped_byte_is_an_error_or_a_lock(found: Lock, data: st.DataObject) -> None:
    written = bytearray(found.to_bytes())
    place = data.draw(st.integers(0, len(written) - 1))
    written[place] = data.draw(st.integers(0, 255))
    with suppress(UsageError):
        again = Lock.parse(bytes(written))
        assert Lock.parse(again.to_bytes()) == again


def test_an_entry_is_one_line_and_the_names_are_sorted() -> None:
    data = lock(entry("b-one"), entry("a-one"), later={"z": 1, "a": 2}).to_bytes()
    lines = data.decode().splitlines()
    assert lines[0] == '{"later":{"a":2,"z":1},"version":1,"packages":['
    assert [orjson.loads(line.rstrip(","))["name"] for line in lines[1:3]] == ["a-one", "b-one"]
    assert lines[3] == "]}"


def test_fields_of_a_later_version_stay() -> None:
    one = entry(extra={"provenance": {"by": "somebody"}})
    data = lock(one).to_bytes()
    assert b'"provenance":{"by":"somebody"}' in data
    assert Lock.parse(data).packages["weather"].extra == {"provenance": {"by": "somebody"}}


@pytest.mark.parametrize(
    ("folder", "written"),
    [
        ("/home/alice/work/.claude/skills/weather", ".claude/skills/weather"),
        ("/home/alice/work/weather", "weather"),
        ("/home/alice/.claude/skills/weather", "~/.claude/skills/weather"),
        ("/home/alice/work2/weather", "~/work2/weather"),
        ("/home/alice/work/~/weather", "~/work/~/weather"),
        ("/home/alice/work", "~/work"),
        ("/home/alice", "/home/alice"),
        ("/home/bob/weather", "/home/bob/weather"),
        ("/", "/"),
    ],
)
def test_a_folder_moves_with_the_lock_file_or_is_of_its_reader_s_home(
    folder: str, written: str
) -> None:
    places = Places("/home/alice/work", "/home/alice")
    assert places.written(folder) == written
    assert places.read(written) == folder


def test_a_home_below_the_directory_of_the_lock_file_is_a_home_nevertheless() -> None:
    assert Places("/", "/root").written("/root/.claude/skills/x") == "~/.claude/skills/x"
    assert Places("/home", "/home/a").written("/home/a/skills/x") == "~/skills/x"
    assert Places("/home/a", "/home/a").written("/home/a/skills/x") == "skills/x"


parts = st.sampled_from(["a", "~", "~a", ".a", "..a", "é", "b c", "\\", "a\nb"])
paths = st.lists(parts, max_size=4).map(lambda names: "/" + "/".join(names))


@given(paths, paths, st.lists(paths, max_size=3))
def test_whatever_is_written_of_a_folder_is_read_as_the_same(
    directory: str, home: str, folders: list[str]
) -> None:
    places = Places(directory, home)
    found = lock(entry(folders=tuple(dict.fromkeys(folders))))
    data = found.placed(places.written).to_bytes()
    assert Lock.parse(data).placed(places.read) == found


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "Weather"),
        ("name", None),
        ("version", "1.2"),
        ("request", "banana"),
        ("cid", "QmNo"),
        ("sha256", "AB" * 32),
        ("sha256", "ab"),
        ("tools", ""),
        ("verdict", "signed"),
        ("chain", {"publisher": "0x"}),
        ("chain", {"chain_id": True, "publisher": "0x"}),
        ("permissions", ["a"] * (MAX_ITEMS + 1)),
        ("hosts", [1]),
        ("explicit", 1),
        ("signer", "x" * 5000),
        ("folders", [""]),
        ("folders", ["."]),
        ("folders", [".."]),
        ("folders", ["../skills/weather"]),
        ("folders", ["~"]),
        ("folders", ["~/../other/weather"]),
        ("folders", ["~other/skills/weather"]),
        ("folders", ["./skills/weather"]),
        ("folders", ["/skills/../weather"]),
        ("folders", ["/skills/\0/weather"]),
    ],
)
def test_a_field_that_cannot_be_is_refused(field: str, value: Any) -> None:
    document = orjson.loads(lock(entry()).to_bytes())
    document["packages"][0][field] = value
    with pytest.raises(UsageError, match="lock file"):
        Lock.parse(orjson.dumps(document))


OTHERS: tuple[Any, ...] = (None, 1, True, "", "x" * 5_000, [], ["x" * 5_000], {}, list(DIGEST))
RIGHT = {  # those of the others that a field may have
    "request": [""],
    "signer": [""],
    "explicit": [True],
    "permissions": [[], list(DIGEST)],
    "hosts": [[], list(DIGEST)],
    "lint": [[], list(DIGEST)],
    "folders": [[], list(DIGEST)],
}


@pytest.mark.parametrize(
    "field", [*orjson.loads(lock(entry(folders=("a",))).to_bytes())["packages"][0]]
)
def test_a_field_has_one_type_and_a_bound(field: str) -> None:
    taken = []
    for value in OTHERS:
        document = orjson.loads(lock(entry()).to_bytes())
        document["packages"][0][field] = value
        with suppress(UsageError):
            Lock.parse(orjson.dumps(document))
            taken.append(value)
    assert taken == RIGHT.get(field, [])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"version":2,"packages":[]}',
        b'{"version":1,"packages":{}}',
        b'{"version":1,"packages":[[]]}',
        b'{"version":1,"packages":[],"x":' + b"[" * 200 + b"]" * 200 + b"}",
        b'{"version":1,"packages":[' + b"{}," * (MAX_PACKAGES + 1) + b"{}]}",
    ],
)
def test_a_file_that_is_no_lock_is_refused(data: bytes) -> None:
    with pytest.raises(UsageError) as caught:
        Lock.parse(data)
    assert caught.value.code is Code.CONFIG
    assert caught.value.fix


@pytest.mark.parametrize("mark", [b"<<<<<<< HEAD", b"=======", b">>>>>>> theirs"])
def test_a_mark_of_a_merge_is_named_with_its_line(mark: bytes) -> None:
    with pytest.raises(UsageError) as caught:
        Lock.parse(b'{"version":1,"packages":[\n' + mark + b"\n]}\n")
    assert caught.value.why == "line 2 is a mark of a merge: keep one line of each package"


@pytest.mark.parametrize(
    ("right", "wrong", "line"),
    [(b"},\n{", b"}\n{", 2), (b"},\n{", b"}\r\n{", 2), (b"}\n]", b"},\n]", 3)],
)
def test_a_comma_that_a_merge_left_wrong_is_named_with_its_line(
    right: bytes, wrong: bytes, line: int
) -> None:
    """Both sides of a merge that appended a package end without a comma."""
    written = lock(entry(), entry("other")).to_bytes()
    with pytest.raises(UsageError) as caught:
        Lock.parse(written.replace(right, wrong))
    says = "each package but the last ends its line with a comma"
    assert caught.value.why == f"line {line}: {says}"


def test_the_most_that_a_lock_file_may_hold_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is written and not read again would stop every other package, too."""
    monkeypatch.setattr(lockfile, "MAX_PACKAGES", 2)
    most = entry(hosts=("x" * MAX_TEXT_CHARS,) * MAX_ITEMS)
    full = Lock().plus([most, entry("other")])
    assert Lock.parse(full.to_bytes()) == full
    with pytest.raises(UsageError) as caught:
        full.plus([entry("third")])
    assert caught.value.code is Code.TOO_LARGE


def test_a_name_that_is_there_twice_is_refused() -> None:
    document = orjson.loads(lock(entry()).to_bytes())
    document["packages"] *= 2
    with pytest.raises(UsageError) as caught:
        Lock.parse(orjson.dumps(document))
    assert "twice" in caught.value.why


def test_an_entry_is_the_announcement_that_its_bytes_are_verified_with() -> None:
    one = entry(request="")
    assert str(one.uri) == "did:nuwa:cap:weather@1.2.0"
    assert str(one.wanted) == "did:nuwa:cap:weather"
    assert one.announcement.sha256.hex() == DIGEST
    assert str(entry().wanted) == "did:nuwa:cap:weather@^1"
