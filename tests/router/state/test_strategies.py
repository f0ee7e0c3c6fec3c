"""The strategies of a schema: the words of NIP-8, its own examples, and the cautious defaults."""

from __future__ import annotations

from typing import Any

import pytest

from capdex_router.state.strategies import Strategy, duration_s, model

URI = "did:nuwa:state:demo#v1"


def of(mark: Any = None, type_: str | None = None, **top: Any) -> Any:
    field = {key: value for key, value in (("x-crdt", mark), ("type", type_)) if value is not None}
    found = model(URI, {"type": "object", "properties": {"f": field}, **top})
    return found.strategy("f"), len(found.warnings)


@pytest.mark.parametrize("strategy", list(Strategy))
def test_the_eight_words(strategy: Strategy) -> None:
    assert of(str(strategy)) == (strategy, 0)
    assert of({"crdt": str(strategy)}) == (strategy, 0)
    assert of({"type": str(strategy)}) == (strategy, 0)


def test_append_only_is_a_log() -> None:
    assert of("append_only") == (Strategy.LOG_RGA, 0)


@pytest.mark.parametrize("word", ["lww-register", "map", 7, ["flag"], {"x": 1}])
def test_an_unknown_word_is_a_register_with_a_warning(word: Any) -> None:
    assert of(word)[0] is Strategy.LWW_REGISTER
    assert of(word)[1] == (0 if word == {"x": 1} else 1)


def test_nothing_said_is_a_register() -> None:
    assert of() == (Strategy.LWW_REGISTER, 0)
    assert model(URI, {}).strategy("any") is Strategy.LWW_REGISTER


def test_a_type_that_a_strategy_cannot_merge_is_warned_of() -> None:
    assert of("rga_text", "object") == (Strategy.RGA_TEXT, 1)
    assert of("rga_text", "string") == (Strategy.RGA_TEXT, 0)
    assert of("lww_register", "object") == (Strategy.LWW_REGISTER, 0)


def test_the_conversation_log_of_nip_8() -> None:
    found = model(
        URI,
        {
            "x-asm": {"container": "log", "crdt": "append_only", "x-ttl": "P14D",
                      "x-compression": "br", "x-visibility": "private"},
            "properties": {"entries": {"type": "array", "x-crdt": "log_rga"},
                           "other": {"type": "array"}, "name": {"type": "string"}},
        },
    )  # fmt: skip
    assert found.strategies == {
        "entries": Strategy.LOG_RGA, "other": Strategy.LOG_RGA, "name": Strategy.LWW_REGISTER,
    }  # fmt: skip
    assert (found.ttl_s, found.visibility, found.warnings) == (14 * 86_400, "private", ())


def test_the_memory_store_of_nip_8() -> None:
    asm = {"container": "map", "x-retention": {"window": "P90D"}, "x-visibility": "shared"}
    found = model(URI, {"x-asm": asm, "properties": {"items": {"type": "object"}}})
    assert found.strategies == {"items": Strategy.OR_MAP}
    assert (found.ttl_s, found.visibility) == (None, "shared")


def test_a_local_reference_is_followed_and_a_circle_ends() -> None:
    schema = {
        "$defs": {"tags": {"type": "array", "x-crdt": "grow_only_set"},
                  "me": {"$ref": "#/$defs/me"}},
        "properties": {"tags": {"$ref": "#/$defs/tags"}, "me": {"$ref": "#/$defs/me"},
                       "own": {"$ref": "#/$defs/tags", "x-crdt": "lww_register"},
                       "none": {"$ref": "#/$defs/x"}, "any": True},
    }  # fmt: skip
    found = model(URI, schema).strategies
    assert found["tags"] is Strategy.GROW_ONLY_SET
    assert {found[name] for name in ("me", "own", "none", "any")} == {Strategy.LWW_REGISTER}


def test_a_strategy_inside_of_a_field_is_warned_of() -> None:
    inner = {"type": "object", "properties": {"deep": {"x-crdt": "counter"}}}
    found = model(URI, {"properties": {"f": inner}})
    assert len(found.warnings) == 1
    assert "'f'" in found.warnings[0]


def test_what_objects_are_checked_against_has_no_id() -> None:
    found = model(URI, {"$id": URI, "$schema": "x", "type": "object"})
    assert found.schema == {"type": "object"}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("P14D", 14 * 86_400), ("PT1S", 1), ("P1Y2M3W4DT5H6M7S", 38_898_367),
        ("P1W", 604_800), ("PT90M", 5_400), ("P", None), ("PT", None), ("P0D", None), ("14D", None),
        ("P-1D", None), ("P1.5D", None), ("P200Y", None), ("P" + "9" * 50 + "D", None),
        ("P1DT", None),
    ],
)  # fmt: skip
def test_durations(text: str, seconds: float | None) -> None:
    assert duration_s(text) == seconds


@pytest.mark.parametrize("asm", [{"x-ttl": 5}, {"x-ttl": "soon"}, {"x-visibility": "all"}])
def test_a_bad_lifecycle_is_warned_of(asm: Any) -> None:
    found = model(URI, {"x-asm": asm})
    assert (found.ttl_s, found.visibility, len(found.warnings)) == (None, "private", 1)
