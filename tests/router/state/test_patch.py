"""JSON Patch against the public cases, NIP-8's deltas, and patches that would grow without end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import Code, InvalidInput
from capdex_router.state.patch import MAX_OPERATIONS, apply
from capdex_router.state.values import canonical, equal

CASES = json.loads((Path(__file__).parents[2] / "vectors/json-patch/cases.json").read_text("utf-8"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False,
    allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner,
    max_size=3),
    max_leaves=12,
)  # fmt: skip


def test_every_public_case_ends_as_it_says() -> None:
    ended = {"passed": 0, "refused": 0, "disabled": 0}
    for file, comment, disabled, case in CASES:
        if disabled:
            ended["disabled"] += 1
            continue
        before = json.dumps(case["doc"])
        if "error" in case:
            with pytest.raises(InvalidInput):
                apply(case["doc"], case["patch"])
            ended["refused"] += 1
        else:
            found = apply(case["doc"], case["patch"]).value
            assert equal(found, case.get("expected", found)), (file, comment, case)
            ended["passed"] += 1
        assert json.dumps(case["doc"]) == before, "the document itself stays as it is"
    assert ended == {"passed": 74, "refused": 34, "disabled": 4}


def test_a_patch_of_64_copies_is_refused_before_it_grows() -> None:
    patch = [{"op": "copy", "from": "", "path": f"/{n}"} for n in range(64)]
    with pytest.raises(InvalidInput) as caught:
        apply({"a": "x" * 100}, patch)
    assert caught.value.code in (Code.TOO_LARGE, Code.INVALID_INPUT)


def test_nesting_by_copies_is_refused() -> None:
    patch = [{"op": "copy", "from": "/a", "path": "/a" * 30 + "/a"} for _ in range(3)]
    with pytest.raises(InvalidInput):
        apply({"a": {}}, patch)


def test_more_than_64_operations_are_refused() -> None:
    step = {"op": "add", "path": "/a", "value": 1}
    assert apply({}, [step] * MAX_OPERATIONS).value == {"a": 1}
    with pytest.raises(InvalidInput, match="65 operations"):
        apply({}, [step] * 65)


def test_the_error_names_the_operation_and_nothing_is_changed() -> None:
    document = {"a": 1}
    with pytest.raises(InvalidInput, match="operation 1") as caught:
        apply(document, [{"op": "add", "path": "/b", "value": 2}, {"op": "remove", "path": "/c"}])
    assert caught.value.details == {"operation": 1}
    assert document == {"a": 1}


@pytest.mark.parametrize("name", ["a/b", "\0", "__proto__", "$inc", "", "~", "a.b"])
def test_any_name_is_a_field(name: str) -> None:
    path = "/" + name.replace("~", "~0").replace("/", "~1")
    found = apply({}, [{"op": "add", "path": path, "value": 1}])
    assert found.value == {name: 1}
    assert found.touched == {name}


def test_a_field_with_a_dot_in_its_name_counts() -> None:
    assert apply({"a.b": 1}, {"$inc": {"a.b": 1}}).value == {"a.b": 2}


def test_an_operation_that_is_none_is_told_what_came() -> None:
    with pytest.raises(InvalidInput) as caught:
        apply({}, [{"op": "add", "path": "title", "value": 1}])
    assert "'title'" in caught.value.why
    assert '"path": "/field"' in caught.value.fix


def test_a_replaced_field_that_is_not_there_yet_is_answered_with_the_operation_that_makes_it() -> (
    None
):
    with pytest.raises(InvalidInput, match="operation 0") as refused:
        apply({"title": "milk"}, [{"op": "replace", "path": "/done", "value": True}])
    assert "add makes a field that is not there" in (refused.value.fix or "")


def test_touched_are_the_fields_that_were_written() -> None:
    patch = [
        {"op": "test", "path": "/a", "value": 1},
        {"op": "copy", "from": "/a", "path": "/b"},
        {"op": "move", "from": "/c/x", "path": "/d"},
    ]
    assert apply({"a": 1, "c": {"x": 2}}, patch).touched == {"b", "c", "d"}
    assert apply({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 1}}]).touched == {"a", "b"}


def test_inc_and_push() -> None:
    patch = {"$inc": {"n": 2, "m": -1}, "$push": {"l": "x"}}
    assert apply({"n": 1, "l": ["a"]}, patch).value == {"n": 3, "m": -1, "l": ["a", "x"]}


@pytest.mark.parametrize(
    "patch",
    [
        {"$inc": {"l": 1}},
        {"$push": {"n": 1}},
        {"$inc": {"n": "1"}},
        {"$inc": {"n": True}},
        {"$inc": {"n": 2**64 - 1}},
        {"$inc": {"x": 1e308}},
        {"$inc": 1},
        {"$inc": {"o.n": 1}},
        {"$push": {"o.l": 1}},
        {"$set": {"n": 1}},
        [{"op": "$inc", "path": "/n", "value": 1}],
        [{"op": "$inc", "field": ["n"], "value": 1}],
        [{"op": "$push", "field": "l"}],
        {"op": "add"},
        None,
        "x",
    ],
)
def test_another_delta_is_refused(patch: Any) -> None:
    with pytest.raises(InvalidInput):
        apply({"n": 1, "l": [], "x": 1e308, "o": {"n": 1, "l": []}}, patch)


def test_true_is_not_1() -> None:
    with pytest.raises(InvalidInput):
        apply({"a": True}, [{"op": "test", "path": "/a", "value": 1}])
    assert apply({"a": 1.0}, [{"op": "test", "path": "/a", "value": 1}]).value == {"a": 1}


STEPS = st.sampled_from(["a", "0", "1", "-", "~0", "~1", "~", ""])
OPERATIONS = st.fixed_dictionaries(
    {
        "op": st.sampled_from(
            ["add", "remove", "replace", "move", "copy", "test", "x", "$inc", "$push"]
        )
    },
    optional={
        "path": st.lists(
            st.sampled_from(["a", "0", "1", "-", "~0", "~1", "~", ""]), max_size=3
        ).map(lambda steps: "".join(f"/{step}" for step in steps)),
        "from": st.sampled_from(["", "/a", "/0", "/a/0", "a"]),
        "value": VALUES,
        "field": STEPS | VALUES,
    },
)


@given(VALUES, st.lists(OPERATIONS, max_size=6) | VALUES)
def test_any_patch_makes_a_document_or_is_refused(document: Any, patch: Any) -> None:
    before = canonical(document)
    try:
        found = apply(document, patch, budget=10_000)
    except InvalidInput:
        pass
    else:
        assert len(canonical(found.value)) <= 10_000
    assert canonical(document) == before
