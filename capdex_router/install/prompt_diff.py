"""The difference of two prompts as lines of a question: nothing of a change is left out. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Final

from capdex_router.policy.quoting import quoted

PART_CHARS: Final = 160  # of a prompt in one line
MAX_COMPARED: Final = 200  # parts between the first and the last change: comparing takes their cube
_SENTENCES: Final = re.compile(r"(?<=[.!?;:])[ \t]+")


def prompt_diff(old: str, new: str) -> Iterator[str]:
    """Yield the parts that are gone and those that are new, in order; none for equal prompts."""
    before, after = list(_parts(old)), list(_parts(new))
    start = _equal(before, after)
    before, after = before[start:], after[start:]
    if end := _equal(before[::-1], after[::-1]):
        before, after = before[:-end], after[:-end]
    blocks = [(0, len(before), 0, len(after))]
    if max(len(before), len(after)) <= MAX_COMPARED:
        found = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        blocks = [(a, b, c, d) for tag, a, b, c, d in found if tag != "equal"]
    for a, b, c, d in blocks:
        yield from (f"prompt, gone: {quoted(part)}" for part in before[a:b])
        yield from (f"prompt, new: {quoted(part)}" for part in after[c:d])


def _equal(these: list[str], those: list[str]) -> int:
    """Return how many parts at the start are equal."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(these, those)))  # noqa: B905 - as long as the shorter


def _parts(prompt: str) -> Iterator[str]:
    for line in prompt.splitlines() or [""]:
        for sentence in _SENTENCES.split(line):
            for place in range(0, max(len(sentence), 1), PART_CHARS):
                yield sentence[place : place + PART_CHARS]
