"""The filters of a search, read from JSON."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from capdex.errors import InvalidInput
from capdex.problems import Verdict
from capdex.search.document import CONTEXT_WINDOW, PUBLISHED
from capdex.search.engine import Filters
from capdex_indexer.projection.package_rows import MAX_FACET_CHARS, facet_value

FILTER_NAMES: Final = (
    *("name", "kind", "tag", "domain", "language", "author", "publisher", "license", "permission"),
    *("binding", "host", "tool", "model_family", "memory_scope", "verdict"),
)
HAS_PROMPT, SINCE, WINDOW, NOT = "has_prompt", "published_since", "context_window", "not"
OTHERS: Final = (HAS_PROMPT, SINCE, WINDOW, NOT)
MAX_VALUES: Final = 64  # of all filters together
_CHOICES: Final = {"kind": ("skill", "tools"), "verdict": tuple(map(str, Verdict))}
_DATE: Final = re.compile(
    r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?)?", re.A
)
_PROMPT: Final = ("section", "prompt")

Values = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """Conditions on a release that must all hold; `parse` makes them.

    `has` and `lacks` are filters with values: of those of one filter it has any, and none.
    It was published at `since` (epoch seconds) or later, and needs a context window of `window`
    tokens or less.
    """

    has: Values = ()
    lacks: Values = ()
    since: float | None = None
    window: int | None = None

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> SearchFilters:
        """Read `{filter: value or values, "not": {…}, …}`.

        Raises InvalidInput for an unknown filter or an invalid value.
        """
        has = [*_values(given, (*FILTER_NAMES, *OTHERS))]
        without = given.get(NOT) or {}
        if not isinstance(without, dict):
            raise InvalidInput(f"{NOT} is not an object of filters")
        lacks = [*_values(without, FILTER_NAMES)]
        if (prompt := given.get(HAS_PROMPT)) is not None:
            if not isinstance(prompt, bool):
                fix = "write one of them, or leave it out"
                raise InvalidInput(f"the filter {HAS_PROMPT} is not true or false", fix=fix)
            (has if prompt else lacks).append(_PROMPT)
        if len(has) + len(lacks) > MAX_VALUES:
            raise InvalidInput(f"the filters have more than {MAX_VALUES} values")
        window, since = given.get(WINDOW), given.get(SINCE)
        if window is not None and (
            isinstance(window, bool) or not isinstance(window, int) or not 0 < window < 2**53
        ):
            fix = "write one, as 8000"
            raise InvalidInput(f"the filter {WINDOW} is not a number of tokens", fix=fix)
        return cls(tuple(has), tuple(lacks), None if since is None else _moment(since), window)

    def of_engine(self) -> Filters:
        """Return these filters as the engine takes them."""
        return Filters(
            _by_key(self.has),
            _by_key(self.lacks),
            {} if self.since is None else {PUBLISHED: self.since},
            {} if self.window is None else {CONTEXT_WINDOW: self.window},
        )


def _values(given: Mapping[str, Any], known: Iterable[str]) -> Iterable[tuple[str, str]]:
    for key, value in sorted(given.items(), key=lambda item: str(item[0])):
        if key not in known:
            near = difflib.get_close_matches(str(key)[:64], known, n=1)
            fix = f"did you mean {near[0]}?" if near else f"one of {', '.join(known)}"
            raise InvalidInput(f"there is no filter {str(key)[:64]!r}", fix=fix)
        if key in OTHERS or value is None:
            continue
        values = value if isinstance(value, list) else [value]
        if not values:
            raise InvalidInput(f"the filter {key} has no value")
        for text in values[: MAX_VALUES + 1]:
            if not isinstance(text, str) or not 0 < len(text) <= MAX_FACET_CHARS:
                what = f"the filter {key} is not a text of 1 to {MAX_FACET_CHARS} characters"
                raise InvalidInput(what, fix="write such a text, or a list of them")
            facet = facet_value(key, text)
            if facet not in (choices := _CHOICES.get(key, (facet,))):
                what = f"{text[:64]!r} is not a value of the filter {key}"
                raise InvalidInput(what, fix=f"give one of {', '.join(choices)}")
            yield key, facet


def _moment(given: object) -> float:
    if isinstance(given, str) and _DATE.fullmatch(given):
        try:
            moment = datetime.fromisoformat(given.replace("Z", "+00:00"))
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            pass
    raise InvalidInput(f"the filter {SINCE} is not a date", fix="write it like 2026-01-31")


def _by_key(values: Values) -> dict[str, tuple[str, ...]]:
    by_key: dict[str, tuple[str, ...]] = {}
    for key, value in values:
        by_key[key] = (*by_key.get(key, ()), value)
    return by_key
