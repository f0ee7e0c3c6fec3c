"""One trigger as it is matched: what a message must have for it, and whether it does match.

Keywords are whole words of the folded message, regexes are RE2's and ignore case, unless they say
`(?-i)`. A regex is compiled when a message first has its literals: most never are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

import re2

from capdex.manifest.triggers import (
    MAX_KEYWORD_CHARS,
    MAX_PATTERN_BYTES,
    MAX_UNRELATED,
    UNRELATED,
    Trigger,
)
from capdex.routing.literals import required, size
from capdex.routing.text import bounded, fold, has_word, is_negated, views, width

TRAITS_VERSION: Final = 1  # raised whenever the same trigger gives other traits or windows
MAX_SIZE: Final = 4_000  # instructions of one regex (see literals.size); a usual one has 100
MAX_UNRELATED_KEYWORD: Final = 2  # "the" stands in more of the unrelated messages
MAX_CANDIDATES: Final = 200  # regexes that one message runs because it has their texts
MAX_OPEN: Final = 100  # active regexes that need no text: every message runs them
MAX_KEYWORDS: Final = 1_000  # keywords that are looked for in one message
MAX_WORK: Final = 20_000  # instructions (literals.size) of the regexes of one message
MOST_SIZE: Final = 0xFFFF  # in the order of candidates, larger ones are alike
MOST_WIDTH: Final = 0xFFF
MAX_GRAM: Final = 16  # characters of a window
KEPT: Final = 4_096  # compiled regexes
PATTERN_MEMORY: Final = 1 << 18  # of a kept regex; it grows to that by hostile messages alone


class Level(IntEnum):
    """How much a hit says. A broad trigger also matches messages about other matters."""

    BROAD = 0
    REGEX = 1
    KEYWORD = 2


Kind = Literal["keyword", "regex"]


class Pattern(NamedTuple):
    """The part of a trigger that is matched: a keyword as it was written, or a regex."""

    kind: Kind
    value: str


class Traits(NamedTuple):
    """What is known of a pattern without a message.

    `choices` has for each alternative the case-folded texts that every match has; it is empty for
    an open pattern, which every message may match. `size` is in instructions of RE2.
    """

    broad: bool
    size: int
    choices: tuple[tuple[str, ...], ...]


class Message(NamedTuple):
    """The beginning of a message as patterns see it."""

    text: str
    folded: str
    views: tuple[bytes, ...]

    @classmethod
    def of(cls, message: str) -> Message:
        """Return a message bounded to MAX_MESSAGE_BYTES, and folded."""
        text = bounded(message).encode("utf-8", "replace").decode()
        folded = fold(text)
        return cls(text, folded, views(text, folded))


def pattern_of(trigger: Trigger) -> Pattern | None:
    """Return the pattern of a trigger; None if it has none, or one that is too long or large."""
    if trigger.type == "regex":
        try:
            length = len(trigger.value.encode())
        except UnicodeEncodeError:
            return None
        if length > MAX_PATTERN_BYTES or size(trigger.value) > MAX_SIZE:
            return None
        return Pattern("regex", trigger.value)
    if trigger.type == "keyword" and len(trigger.value) <= MAX_KEYWORD_CHARS:
        return Pattern("keyword", trigger.value) if fold(trigger.value).strip() else None
    return None


def traits(pattern: Pattern) -> Traits:
    """Return what is known of a pattern without a message."""
    if pattern.kind == "keyword":
        word = fold(pattern.value).strip()
        return Traits(width(word) < 2 or _is_common(word), 0, ((word.casefold(),),))
    choices = required(pattern.value)
    return Traits(not choices or _is_unrelated(pattern, choices), size(pattern.value), choices)


def distinct(triggers: Iterable[Trigger]) -> Iterator[Pattern]:
    """Return the patterns of a package's triggers; of keywords that fold alike the first."""
    seen: set[tuple[str, str]] = set()
    for trigger in triggers:
        pattern = pattern_of(trigger)
        if pattern is None:
            continue
        value = fold(pattern.value).strip() if pattern.kind == "keyword" else pattern.value
        if (pattern.kind, value) not in seen:
            seen.add((pattern.kind, value))
            yield pattern


def windows(choice: tuple[str, ...]) -> tuple[str, str, str]:
    """Return three pieces of a choice's texts, of up to MAX_GRAM characters; the first is of the
    longest text.
    """
    runs = sorted(choice, key=lambda run: (-len(run), run))
    first = runs[0]
    pieces = [first[:MAX_GRAM]]
    if len(first) > MAX_GRAM:
        pieces.append(first[-MAX_GRAM:])
    pieces += [run[:MAX_GRAM] for run in runs[1:]]
    key, second, third = (*pieces, pieces[0], pieces[0])[:3]
    return key, second, third


def hits(pattern: Pattern, message: Message) -> bool:
    """True if a message hits a pattern."""
    if pattern.kind == "keyword":
        return has_word(message.folded, fold(pattern.value).strip())
    return searches(compiled(pattern.value), message)


def searches(regex: Any | None, message: Message) -> bool:
    """True if a message has a match of what `compiled` returned."""
    return regex is not None and any(regex.search(view) is not None for view in message.views)


def span(pattern: Pattern, message: Message) -> tuple[int, int] | None:
    """Return where a message hits a pattern; None if that is so in the folded message alone."""
    if pattern.kind == "keyword":
        word = fold(pattern.value).strip()
        return _unfolded(message, word) if has_word(message.folded, word) else None
    regex = compiled(pattern.value)
    match = None if regex is None else regex.search(message.text)
    return None if match is None else (match.start(), match.end())


def is_denied(pattern: Pattern, message: Message) -> bool:
    """True if the part of a message that hits a pattern says not to do it."""
    folded = message.folded
    if pattern.kind == "keyword":
        word = fold(pattern.value).strip()
        start = folded.find(word)
        return is_negated(folded, start, start + len(word))
    regex = compiled(pattern.value)
    match = None if regex is None else regex.search(folded)
    start, end = match.span() if match else (0, len(folded))
    return is_negated(folded, start, end)


@lru_cache(maxsize=KEPT)
def compiled(regex: str) -> Any | None:
    """Return a regex as RE2 runs it; None if RE2 refuses it."""
    options = re2.Options()
    options.max_mem = PATTERN_MEMORY
    options.never_capture = True  # less to compile
    options.log_errors = False
    try:
        return re2.compile(f"(?i){regex}", options)
    except (re2.error, UnicodeEncodeError):
        return None


def _is_common(word: str) -> bool:
    return sum(has_word(text.folded, word) for text in _UNRELATED) >= MAX_UNRELATED_KEYWORD


def _is_unrelated(pattern: Pattern, choices: Sequence[tuple[str, ...]]) -> bool:
    """True if a regex hits messages that have nothing to do with one another."""
    if not any(all(run in _ALL_UNRELATED for run in runs) for runs in choices):
        return False
    return sum(hits(pattern, text) for text in _UNRELATED) >= MAX_UNRELATED


def _unfolded(message: Message, word: str) -> tuple[int, int] | None:
    """Return the place of a folded word in the message as it was written."""
    at = message.folded.find(word)
    while not has_word(message.folded[max(0, at - 1) : at + len(word) + 1], word):
        at = message.folded.find(word, at + 1)
    if len(message.text) == len(message.folded) and message.text.lower() == message.folded:
        return at, at + len(word)
    places: list[int] = []
    folded = ""
    for place, character in enumerate(message.text):
        piece = fold(character)
        folded += piece
        places += [place] * len(piece)
    if folded != message.folded:  # characters were joined
        return None
    return places[at], places[at + len(word) - 1] + 1


_UNRELATED: Final = tuple(map(Message.of, UNRELATED))
_ALL_UNRELATED: Final = "\n".join(
    view.casefold() for text in _UNRELATED for view in (text.text, text.folded)
)
