"""The intent that a sentence asks for: all intents are scored, and the best needs a margin. Pure.

CMP leaves ambiguity open (Open Questions, 3). Here a sentence with a negation reaches no intent,
and a guarded intent (one that confirms, destroys or removes) is reached by a plain order alone: no
question, report, condition or undoing. Everything else is asked back with candidates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import re2

from capdex.errors import Code, InvalidInput
from capdex_router.commands.intents import words
from capdex_router.commands.intents.manifest import CommandTool, Intent

MAX_WANT_CHARS: Final = 2_000
MAX_CANDIDATES: Final = 5
THRESHOLD: Final = 0.65  # of a pattern's words, two of three
MARGIN: Final = 0.15
_SOME: Final = 0.3  # a candidate worth naming shares a third of its words
_REGEX_SCORE: Final = 0.9
_OPTIONS: Final = re2.Options()
_OPTIONS.case_sensitive = False
_OPTIONS.log_errors = False


@dataclass(frozen=True, slots=True)
class IntentMatch:
    """An intent and the part of its best pattern that a sentence has."""

    tool: CommandTool
    intent: Intent
    score: float


def match(want: str, tools: Iterable[CommandTool]) -> IntentMatch:
    """Return the intent that a sentence asks for.

    Raises InvalidInput AMBIGUOUS, with `candidates` in its details, if none is asked for plainly,
    and InvalidInput NOT_FOUND if nothing comes near.
    """
    if not want.strip() or len(want) > MAX_WANT_CHARS:
        raise InvalidInput(
            "the wish cannot be read",
            why=f"it is empty or over {MAX_WANT_CHARS} characters",
            fix="say in one sentence what is to be done",
        )
    text = words.plain(want)
    tokens = words.words(text)
    said = words.meanings(tokens)
    scored = (
        IntentMatch(tool, intent, max((_score(text, said, x) for x in intent.patterns), default=0))
        for tool in tools
        for intent in tool.intents
    )
    near = sorted((x for x in scored if x.score >= _SOME), key=lambda x: -x.score)
    if not near:
        raise InvalidInput(
            "no intent matches",
            Code.NOT_FOUND,
            why=f"the wish is {want[:80]!r}",
            fix="find what fits, then call it by its uri",
        )
    if words.negates(tokens):
        raise _ambiguous(near, "the wish has a negation")
    open_to = [
        hit
        for hit in near
        if not is_guarded(hit.intent)
        or (hit.score >= THRESHOLD and words.orders(text, _verbs(hit.intent.patterns)))
    ]
    if not open_to or open_to[0].score < THRESHOLD:
        why = "an intent that changes or removes something needs a plain order"
        raise _ambiguous(near, "no intent is asked for plainly" if open_to == near else why)
    if len(open_to) > 1 and open_to[0].score - open_to[1].score < MARGIN:
        raise _ambiguous(near, "several intents match equally well")
    return open_to[0]


def is_guarded(intent: Intent) -> bool:
    """Return True if an intent confirms, destroys or removes, by its file or by its words."""
    if intent.confirm or intent.destructive:
        return True
    parts = [element.literal for element in intent.template.elements if element.name is None]
    plain = {part.lstrip("-").lower() for part in parts[1:]} | {parts[0]}
    return bool(words.GUARDED & (plain | _verbs(intent.patterns)))


def _score(text: str, said: frozenset[str], pattern: str) -> float:
    if pattern.startswith("re:"):
        return _REGEX_SCORE if _regex(pattern[3:]).search(text) else 0.0
    wanted = _wanted(pattern)
    if not wanted:
        return 0.0
    # Of two patterns found whole, the one that says more of the sentence is nearer.
    return len(wanted & said) / len(wanted) + 0.2 * len(wanted & said) / max(len(said), 1) - 0.2


@lru_cache(maxsize=4096)
def _wanted(pattern: str) -> frozenset[str]:
    return words.meanings(words.words(words.plain(pattern)))


@lru_cache(maxsize=512)
def _regex(pattern: str) -> re2._Regexp:
    return re2.compile(pattern, _OPTIONS)


@lru_cache(maxsize=1024)
def _verbs(patterns: tuple[str, ...]) -> frozenset[str]:
    phrases = [pattern for pattern in patterns if not pattern.startswith("re:")]
    first = {tokens[0] for phrase in phrases if (tokens := words.words(words.plain(phrase)))}
    # A regular expression has no first word: each word in it that removes counts.
    inside = {
        word
        for pattern in patterns
        if pattern.startswith("re:")
        for word in re.findall(r"[a-z]+", pattern[3:].lower())
        if word in words.GUARDED
    }
    return frozenset(first | inside)


def _ambiguous(near: list[IntentMatch], why: str) -> InvalidInput:
    candidates = [
        {
            "tool": hit.tool.manifest.name,
            "domain": hit.tool.manifest.domain,
            "pattern": hit.intent.patterns[0],
        }
        for hit in near[:MAX_CANDIDATES]
    ]
    return InvalidInput(
        "the wish does not name one intent",
        Code.AMBIGUOUS,
        why=why,
        fix="ask which is meant, and say its pattern",
        details={"candidates": candidates},
    )
