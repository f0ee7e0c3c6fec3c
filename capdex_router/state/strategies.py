"""The strategies of a package's state schema (NIP-8, Agent State Model). Pure.

Each property of the schema is one field of a document and merges by its `x-crdt`; what is inside of
a field merges as a whole. `x-asm` at the top gives the container, the time to live and the
visibility. Where NIP-8 leaves a choice, the rule stands here or in `capdex_router.state.object`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal

from capdex.json import Json, object_of
from capdex.json_schema.schema import at_pointer, pointer_steps

MAX_REFERENCES: Final = 8  # that one property may go through
MAX_TTL_S: Final = 100 * 365 * 86_400.0

Visibility = Literal["private", "shared", "public"]


class Strategy(StrEnum):
    """The eight canonical words of `x-crdt` (NIP-8)."""

    LWW_REGISTER = "lww_register"
    MV_REGISTER = "mv_register"
    RGA_TEXT = "rga_text"
    GROW_ONLY_SET = "grow_only_set"
    OR_MAP = "or_map"
    COUNTER = "counter"
    FLAG = "flag"
    LOG_RGA = "log_rga"


# NIP-8's own example of a log says append_only, which its list of words does not have.
_WORDS: Final = {str(word): word for word in Strategy} | {"append_only": Strategy.LOG_RGA}
_TYPES: Final = {  # of the values that a strategy can hold; a register holds any
    Strategy.RGA_TEXT: "string",
    Strategy.GROW_ONLY_SET: "array",
    Strategy.OR_MAP: "object",
    Strategy.COUNTER: "integer",
    Strategy.FLAG: "boolean",
    Strategy.LOG_RGA: "array",
}
_CONTAINERS: Final = {  # the default of fields of a type (NIP-8, Container Kinds)
    "map": ("object", Strategy.OR_MAP),
    "log": ("array", Strategy.LOG_RGA),
}
# Years and months have no fixed length: 365 and 30 days.
_UNITS_S: Final = (365 * 86_400, 30 * 86_400, 7 * 86_400, 86_400, 3_600, 60, 1)
_NUMBER: Final = r"([0-9]{1,9})"
_DURATION: Final = re.compile(
    rf"P(?=.)(?:{_NUMBER}Y)?(?:{_NUMBER}M)?(?:{_NUMBER}W)?(?:{_NUMBER}D)?"
    rf"(?:T(?=.)(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Model:
    """The state of one schema: how each field merges, its time to live in seconds, who sees it.

    A field that `strategies` does not name is a last-writer-wins register. `schema` is what objects
    are checked against: the package's, without the `$id`, which is not a URI.
    """

    uri: str
    schema: Json = field(default_factory=dict, repr=False)
    strategies: Mapping[str, Strategy] = field(default_factory=dict)
    ttl_s: float | None = None
    visibility: Visibility = "private"
    warnings: tuple[str, ...] = ()

    def strategy(self, name: str) -> Strategy:
        """Return the strategy of a field."""
        return self.strategies.get(name, Strategy.LWW_REGISTER)


def model(uri: str, schema: Json) -> Model:
    """Return the model of a package's schema, which `check_schema` of capdex accepts.

    Nothing in it refuses a package: what is not known is read as the cautious default, with a
    warning.
    """
    warnings: list[str] = []
    asm, fields = object_of(schema.get("x-asm")), object_of(schema.get("properties"))
    strategies = {
        name: _strategy(name, _resolved(value, schema), asm, warnings)
        for name, value in fields.items()
    }
    for name, value in fields.items():
        if _has_inner_mark(value):
            warnings.append(f"{name!r}: an x-crdt inside of it is not used: it merges as a whole")
    return Model(
        uri,
        {word: value for word, value in schema.items() if word not in ("$id", "$schema")},
        strategies,
        _ttl(asm.get("x-ttl", schema.get("x-ttl")), warnings),
        _visibility(asm.get("x-visibility", schema.get("x-visibility")), warnings),
        tuple(warnings),
    )


def duration_s(text: str) -> float | None:
    """Return the seconds of an ISO 8601 duration; None if it is none, or longer than 100 years."""
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    seconds = sum(
        unit * int(part or 0) for unit, part in zip(_UNITS_S, match.groups(), strict=True)
    )
    return float(seconds) if 0 < seconds <= MAX_TTL_S else None


def _strategy(name: str, value: Json, asm: Json, warnings: list[str]) -> Strategy:
    type_ = value.get("type")
    word = _word(value.get("x-crdt")) or _word(value.get("x-asm"))
    if word is None:
        kind, default = _CONTAINERS.get(str(asm.get("container")), (None, Strategy.LWW_REGISTER))
        inherited = _WORDS.get(_word(asm) or "")
        if inherited is not None and _TYPES.get(inherited, type_) == type_:
            return inherited
        return default if kind == type_ else Strategy.LWW_REGISTER
    strategy = _WORDS.get(word)
    if strategy is None:
        warnings.append(f"{name!r}: {word[:64]!r} is not a strategy: the last writer wins")
        return Strategy.LWW_REGISTER
    needed = _TYPES.get(strategy)
    if needed is not None and type_ is not None and needed != type_:
        warnings.append(f"{name!r}: {strategy} merges values of the type {needed} alone")
    return strategy


def _word(mark: object) -> str | None:
    """Return the word of a mark: itself, or what its `crdt`, `strategy` or `type` names."""
    if isinstance(mark, dict):
        mark = next((mark[key] for key in ("crdt", "strategy", "type") if key in mark), None)
    return mark if mark is None or isinstance(mark, str) else str(type(mark).__name__)


def _resolved(value: object, schema: Json) -> Json:
    """Return a property with what its local references say; its own words come first."""
    merged: Json = {}
    for _ in range(MAX_REFERENCES):
        if not isinstance(value, dict):
            break
        merged = {**value, **merged}
        reference = value.get("$ref")
        steps = pointer_steps(reference) if isinstance(reference, str) else None
        if steps is None:
            break
        _, value = at_pointer(schema, steps)
    return merged


def _has_inner_mark(value: object) -> bool:
    rest = list(object_of(value).values())
    while rest:
        inner = rest.pop()
        if isinstance(inner, dict):
            if "x-crdt" in inner:
                return True
            rest += inner.values()
        elif isinstance(inner, list):
            rest += inner
    return False


def _ttl(value: object, warnings: list[str]) -> float | None:
    if value is None:
        return None
    seconds = duration_s(value) if isinstance(value, str) else None
    if seconds is None:
        warnings.append("x-ttl is not a duration such as P14D: objects are kept")
    return seconds


def _visibility(value: object, warnings: list[str]) -> Visibility:
    known: Final[tuple[Visibility, ...]] = ("private", "shared", "public")
    if value is None:
        return "private"
    for word in known:
        if value == word:
            return word
    warnings.append("x-visibility is none of private, shared and public: it is private")
    return "private"
