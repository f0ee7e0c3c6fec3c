"""Routing of one message: commands, then the top of the stack, then all triggers (NIP-7). Pure.

/back, /switch ─> top of the stack, if it matches ─> best trigger, if it is clearly the best
               ─> top of the stack, if nothing matches ─> fallback: the agent by itself
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Final

from capdex.routing.matches import TriggerHit
from capdex.routing.patterns import Level, Message, Pattern, is_denied
from capdex.routing.text import bounded
from capdex_router.policy.quoting import escaped
from capdex_router.routing.index import TriggerIndex
from capdex_router.routing.stack import Stack

MARGIN: Final = 2  # by which the text of the best trigger must be wider than that of the next
MAX_CANDIDATES: Final = 5
MAX_SHOWN_CHARS: Final = 80


@dataclass(frozen=True, slots=True)
class RoutedCapability:
    """A capability that gets the message, and why."""

    capability: str
    why: str


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """Capabilities of which a person must name one, the best first: some of `total`."""

    candidates: tuple[str, ...]
    total: int
    why: str


@dataclass(frozen=True, slots=True)
class Fallback:
    """No capability: the agent answers by itself (NIP-7, Backwards compatibility)."""

    why: str


Answer = RoutedCapability | Ambiguous | Fallback


def route(message: str, stack: Stack, index: TriggerIndex, now: float) -> tuple[Answer, Stack]:
    """Return where a message goes, and the stack after it. `now` is in seconds, as in `stack`.

    A message that goes to another capability than the top replaces the top; `/switch` keeps it.
    """
    stack = stack.at(now)
    for capability in stack.capabilities:
        if capability not in index:
            stack = stack.without(capability)
    command, argument = _command(message)
    if command == "/back":
        return _back(stack)
    if command == "/switch":
        return _switch(argument, stack, index)
    return _classify(message, stack, index)


def _command(message: str) -> tuple[str, str]:
    text = unicodedata.normalize("NFKC", bounded(message)).strip()
    word, _, argument = text.partition(" ")
    word = word.casefold()
    if word == "/back" and not argument:
        return word, ""
    if word == "/switch":
        return word, argument.partition("@")[0].strip()  # a list shows URIs with versions
    return "", ""


def _back(stack: Stack) -> tuple[Answer, Stack]:
    left = stack.pop()
    if left.top is None:
        return Fallback("/back, and no capability is active now"), left
    return RoutedCapability(left.top, "/back"), left


def _switch(name: str, stack: Stack, index: TriggerIndex) -> tuple[Answer, Stack]:
    names = index.named(name) or index.starting(name)
    if name and len(names) == 1:
        return RoutedCapability(names[0], f"/switch {_shown(name)}"), stack.push(names[0])
    if not names:
        names, why = index.starting(""), f"nothing that is installed starts with {_shown(name)}"
    elif name:
        why = f"/switch {_shown(name)} may mean {len(names)} capabilities"
    else:
        why = "/switch names no capability"
    if not names:
        return Fallback("/switch, and no capability is installed"), stack
    return Ambiguous(tuple(names[:MAX_CANDIDATES]), len(names), why), stack


def _classify(message: str, stack: Stack, index: TriggerIndex) -> tuple[Answer, Stack]:
    best: dict[str, TriggerHit] = {}  # of each capability; of equal ones the first
    for hit in sorted(index.hits(message), key=lambda x: (x.level, x.width, x.text), reverse=True):
        best.setdefault(hit.name, hit)
    ranked = sorted(best.values(), key=lambda hit: (-hit.level, -hit.width, hit.name))
    own = best.get(stack.top) if stack.top is not None else None
    # A broad trigger neither keeps a message that another capability names, nor takes one away.
    if own is not None and (own.level > Level.BROAD or ranked[0].level == Level.BROAD):
        return RoutedCapability(own.name, f"active, and {_why(own)}"), stack
    if not ranked or (stack.top is not None and ranked[0].level == Level.BROAD):
        return _unmatched(message, stack, index)
    first = ranked[0]
    close = [x for x in ranked if x.level == first.level and first.width - x.width < MARGIN]
    if len(close) > 1:
        why = f"{len(close)} capabilities match about equally: {_why(first)}"
        names = tuple(hit.name for hit in close[:MAX_CANDIDATES])
        return Ambiguous(names, len(close), why), stack
    if is_denied(Pattern(first.kind, first.text), Message.of(message)):
        why = f"{_why(first)}, but the sentence has a negation"
        return Ambiguous((first.name,), 1, why), stack
    return RoutedCapability(first.name, _why(first)), stack.pop().push(first.name)


def _unmatched(message: str, stack: Stack, index: TriggerIndex) -> tuple[Answer, Stack]:
    if stack.top is not None:
        return RoutedCapability(stack.top, "active, and nothing precise matches"), stack
    named = index.named(message)
    if len(named) == 1:
        return RoutedCapability(named[0], "its name"), stack.push(named[0])
    if named:
        names = tuple(named[:MAX_CANDIDATES])
        return Ambiguous(names, len(named), f"{len(named)} capabilities have this name"), stack
    if not index.ready:
        return Fallback("no name matches, and triggers are still being compiled"), stack
    return Fallback("no trigger matches"), stack


def _why(hit: TriggerHit) -> str:
    broad = "broad " if hit.level == Level.BROAD else ""
    return f"{broad}{hit.kind} {_shown(hit.text)}"


def _shown(text: str) -> str:
    """Return a text in quotes, which it cannot close, cut and on one line."""
    more = "…" if len(text) > MAX_SHOWN_CHARS else ""
    return f'"{escaped(text[:MAX_SHOWN_CHARS])}{more}"'
