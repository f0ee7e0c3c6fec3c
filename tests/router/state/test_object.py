"""Objects as CRDT documents: histories of replicas against an oracle, names, hostile documents."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import loro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capdex.errors import Code, InvalidInput
from capdex_router.state.object import MAX_BLOB_BYTES, MAX_FOREIGN_WRITES, StateObject
from capdex_router.state.strategies import Strategy, model
from tests.router.state import histories

MODEL = model("did:nuwa:state:demo#v1", histories.SCHEMA)
NAMES = ["a/b", "\0", "", "__proto__", "$inc", "é日", "%2F", "x" * 500]


def made(value: Any, peer: int = 1) -> StateObject:
    return StateObject.create(MODEL, peer, value, 1.0)


@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_replicas_agree_with_the_oracle_after_any_history(seed: int) -> None:
    histories.run(seed)


@pytest.mark.parametrize("strategy", list(Strategy))
@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_a_field_of_any_strategy(name: str, strategy: Strategy) -> None:
    value = {
        "string": "x", "array": ["x"], "object": {name: 1}, "integer": 3, "boolean": True,
    }[{"rga_text": "string", "grow_only_set": "array", "or_map": "object", "counter": "integer",
       "flag": "boolean", "log_rga": "array"}.get(strategy, "string")]  # fmt: skip
    one = model("did:nuwa:state:demo#v1", {"properties": {name: {"x-crdt": str(strategy)}}})
    document = StateObject.create(one, 1, {name: value}, 1.0)
    again = StateObject.load(one, 2, document.stored())
    assert again.value() == {name: value}


def test_a_change_of_a_text_is_one_splice() -> None:
    left = made({"text": "one two three"})
    right = StateObject.load(MODEL, 2, left.exported())
    left.write({"text": "ONE two three"}, ["text"], 2.0)
    right.write({"text": "one two THREE"}, ["text"], 3.0)
    left.merge(right.exported())
    assert left.value() == {"text": "ONE two THREE"}


def test_places_in_a_text_are_code_points() -> None:
    document = made({"text": "é日x😀y"})
    document.write({"text": "é日Zx😀!y"}, ["text"], 2.0)
    assert document.value() == {"text": "é日Zx😀!y"}


def test_a_conflict_shows_all_values_and_a_write_ends_it() -> None:
    left = made({"mv": 1})
    right = StateObject.load(MODEL, 2, left.exported())
    left.write({"mv": "l"}, ["mv"], 2.0)
    right.write({"mv": "r"}, ["mv"], 2.0)
    left.merge(right.exported())
    assert sorted(left.conflicts()["mv"]) == ["l", "r"]
    assert left.value()["mv"] == left.conflicts()["mv"][0]
    left.write({"mv": left.value()["mv"]}, ["mv"], 3.0)  # the same value, said again
    assert left.conflicts() == {}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"set": [1]}, {"set": [2]}),
        ({"set": [1]}, {}),
        ({"log": [1, 2]}, {"log": [1]}),
        ({"log": [1, 2]}, {"log": [2, 2, 3]}),
        ({"log": [1]}, {}),
        ({}, {"n": 1.5}),
        ({}, {"n": True}),
        ({}, {"n": 2**53 + 1}),
        ({}, {"text": None}),
        ({}, {"flag": 1}),
        ({}, {"map": []}),
        ({}, {"set": {}}),
        ({}, {"log": "x"}),
    ],
)
def test_a_strategy_refuses_what_it_cannot_merge(old: Any, new: Any) -> None:
    with pytest.raises(InvalidInput):
        made(old).write(new, {*old, *new}, 2.0)


def test_empty_and_missing_are_two_things() -> None:
    empty = {"text": "", "set": [], "map": {}, "n": 0, "flag": False, "log": []}
    document = made(empty)
    assert document.value() == empty
    for name in ("text", "map", "n", "flag"):
        kept = {key: value for key, value in empty.items() if key != name}
        changed = made(empty)
        changed.write(kept, [name], 2.0)
        assert changed.value() == kept
    assert made({}).value() == {}


def test_whole_floats_are_integers_and_numbers_keep_their_value() -> None:
    assert made({"set": [1.0, 1, 1.5], "n": 4}).value()["set"] == [1, 1.5]


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput):
        StateObject.load(MODEL, 1, data)


@given(st.data())
def test_a_truncated_or_altered_document_is_refused(data: st.DataObject) -> None:
    blob = made({"text": "abc", "a/b": 1, "set": [1]}).exported()
    place = data.draw(st.integers(0, len(blob) - 1))
    with pytest.raises(InvalidInput):
        made({}, 2).foreign(blob[:place])
    bit = data.draw(st.integers(1, 255))
    altered = bytes([*blob[:place], blob[place] ^ bit, *blob[place + 1 :]])
    unused = range(4, 16)  # of Loro's header: nothing reads them
    other = StateObject(MODEL, 2)
    if place in unused:
        other.merge(altered)
        assert other.value() == {"text": "abc", "a/b": 1, "set": [1]}
    else:
        with pytest.raises(InvalidInput):
            other.foreign(altered)


def test_a_document_of_32_mib_is_refused_before_it_is_read() -> None:
    for check in (made({}).foreign, made({}).merge):
        with pytest.raises(InvalidInput) as caught:
            check(bytes(32 * 1024 * 1024))
        assert caught.value.code is Code.TOO_LARGE


def test_a_document_of_very_many_small_writes_is_refused_before_it_is_imported() -> None:
    hostile = loro.LoroDoc()
    items = hostile.get_list("l")
    for _ in range(MAX_FOREIGN_WRITES + 1):
        items.insert(0, None)
    hostile.commit()
    blob = hostile.export(loro.ExportMode.Updates(loro.VersionVector()))
    assert len(blob) < MAX_BLOB_BYTES
    document = made({"n": 1}, 2)
    before = document.exported()
    with pytest.raises(InvalidInput, match="writes") as caught:
        document.foreign(blob)
    assert caught.value.code is Code.TOO_LARGE
    assert document.exported() == before


def test_a_compressed_document_of_another_is_refused() -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        made({}, 2).foreign(made({"text": "a" * 100_000}).stored())


def test_a_part_of_a_history_is_refused() -> None:
    first = made({"n": 1})
    seen = first._doc.oplog_vv
    first.write({"n": 2}, ["n"], 2.0)
    part = first._doc.export(loro.ExportMode.Updates(seen))
    with pytest.raises(InvalidInput, match="cannot be read"):
        StateObject(MODEL, 2).merge(part)


def test_changes_under_our_own_number_that_we_never_made_are_refused() -> None:
    ours = made({"n": 1}, peer=7)
    copy = StateObject.load(MODEL, 7, ours.stored())
    ours.foreign(copy.exported())  # so far it is the same
    copy.write({"n": 5}, ["n"], 2.0)
    with pytest.raises(InvalidInput, match="never made"):
        ours.foreign(copy.exported())
    ours.write({"n": 6}, ["n"], 3.0)  # as many changes, but others
    with pytest.raises(InvalidInput, match="never made"):
        ours.foreign(copy.exported())
    with pytest.raises(InvalidInput, match="never made"):
        StateObject(MODEL, 7).foreign(copy.exported())


def test_our_own_changes_come_back_in_any_division() -> None:
    ours, theirs = made({"text": "a", "n": 1}, 1), StateObject(MODEL, 2)
    for number in range(5):
        theirs.merge(ours.exported())
        value = ours.value()
        ours.write({**value, "text": value["text"] + "b", "n": number}, ["text", "n"], 2.0 + number)
    theirs.write({**theirs.value(), "n": 9}, ["n"], 9.0)
    ours.foreign(theirs.exported())
    ours.merge(theirs.exported())
    theirs.foreign(ours.exported())
    theirs.merge(ours.exported())
    assert ours.value() == theirs.value()


def test_content_that_no_write_of_ours_makes_is_left_out() -> None:
    """Whoever makes a document by hand can put anything anywhere; reading it never fails."""
    anything: list[Any] = ["{", 5, 2**62, 1.5, True, None, b"x", {"a": 1}]
    doc = loro.LoroDoc()
    registers = doc.get_map("registers")
    held_at: dict[str, Any] = {"a": "{", "b": 5, "c": b"x", "d": None, "e": [1], "f": "1", "": "2"}
    for name, held in held_at.items():
        registers.insert(name, held)
    registers.insert_container("g", loro.LoroMap())
    for strategy, name in zip(Strategy, histories.KINDS, strict=True):
        if strategy not in (Strategy.RGA_TEXT, Strategy.LOG_RGA):
            root = doc.get_map(f"{strategy}:{quote(name, safe='')}")
            for key in ("x", "[", '["k"]', '["k", 1]', "[1, 2, 3]", "\0"):
                for number, held in enumerate(anything):
                    root.insert(f"{key}{number}" if number else key, held)
    doc.get_list("log_rga:log").push({"a": 1})
    doc.get_list("log_rga:log").push("[1]")
    doc.get_map("meta").insert("deleted", [1])
    doc.get_map("changed").insert("1", float("nan"))
    doc.get_map("changed").insert("2", "late")
    doc.commit()
    blob = doc.export(loro.ExportMode.Updates(loro.VersionVector()))
    document = StateObject(MODEL, 3)
    document.foreign(blob)
    document.merge(blob)
    value = document.value()
    assert value["f"] == 1
    assert value["log"] == [[1]]
    assert document.changed == 0.0
    document.conflicts()
    new = {**value, "n": 1, "mv": 2, "map": {}, "flag": False}
    document.write(new, ["n", "mv", "map", "flag"], 2.0)
    assert StateObject.load(MODEL, 4, document.exported()).value() == document.value()


def test_a_document_at_its_limit_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(chr(0x4E00 + n) for n in range(500))
    document = made({"text": text})
    assert MAX_BLOB_BYTES > 500
    monkeypatch.setattr("capdex_router.state.object.MAX_BLOB_BYTES", 500)
    with pytest.raises(InvalidInput):
        document.stored()
    with pytest.raises(InvalidInput) as caught:
        made({"text": text})
    assert caught.value.code is Code.TOO_LARGE
