"""What a model reads of two packages, compared as lines of a question. Pure.

A text that a model reads can make it act otherwise: nothing of a change is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Any, Final

from capdex.diagnostics import walk
from capdex.diff.change import Change
from capdex.diff.semver_step import Rule
from capdex.manifest.manifest import Manifest
from capdex_router.policy.quoting import quoted

PART_CHARS: Final = 160  # of a text in one line
MAX_COMPARED: Final = 200  # parts between the first and the last change: comparing takes their cube
_DESCRIBED: Final = ("name", "description", "summary")  # by which a package is chosen
_SENTENCES: Final = re.compile(r"(?<=[.!?;:])[ \t]+")


def texts_changed(old: Manifest, new: Manifest) -> Iterator[str]:
    """Yield a line for each part of a text that a model reads and that is gone or new.

    Compared are the title, the descriptions, the prompt, the schema, and all that is written of a
    tool that both have. A new tool is agreed to by what it calls, as at an installation.
    """
    before, after = _read_by_models(old), _read_by_models(new)
    for name in [name for name in before if name in after]:
        was, now = _texts(name, before[name]), _texts(name, after[name])
        for label in dict.fromkeys([*was, *now]):
            yield from _differences(label, was.get(label, []), now.get(label, []))


def is_shown_whole(change: Change) -> bool:
    """Return True for a change whose old and new words are all in `texts_changed`."""
    if change.rule in (Rule.TOOL_ADDED, Rule.TOOL_REMOVED):
        return False
    described = change.path.removeprefix("metadata.") in _DESCRIBED
    return (
        change.rule.section in ("prompt", "tools")
        or change.rule is Rule.SCHEMA_WORDING
        or described
    )


def _read_by_models(manifest: Manifest) -> dict[str, Any]:
    """Return what is compared, by its name in a question."""
    functions = [item["function"] for item in manifest.document.get("tools") or []]
    return {
        **{name: manifest.metadata.get(name) or "" for name in _DESCRIBED},
        "prompt": manifest.prompt or "",
        "schema": manifest.schema,
        **{f"tool {function['name']}": function for function in functions},
    }


def _texts(name: str, part: Any) -> dict[str, list[str]]:
    """Return the lines of each scalar, and of each empty list or mapping, by its place.

    The items of a list such as `required` have one place, so that one that goes moves no other.
    """
    made: dict[str, list[str]] = {}
    whole = set[tuple[str | int, ...]]()
    for path, value in walk(part):
        label = "".join([name, *map(_step, path)])
        if isinstance(value, list) and value and all(_is_one_part(item) for item in value):
            made[f"{label}[]"] = [line for item in value for line in _parts(item)]
            whole.add(path)
        elif (not value or not isinstance(value, dict | list)) and path[:-1] not in whole:
            made[label] = _parts(value)
    return made


def _is_one_part(value: Any) -> bool:
    return not isinstance(value, dict | list) and len(_parts(value)) == 1


def _step(step: str | int) -> str:
    bare = isinstance(step, str) and step.isascii() and step.replace("$", "_").isidentifier()
    return f".{step}" if bare else f"[{quoted(step) if isinstance(step, str) else step}]"


def _differences(label: str, before: list[str], after: list[str]) -> Iterator[str]:
    start = _equal(before, after)
    before, after = before[start:], after[start:]
    if end := _equal(before[::-1], after[::-1]):
        before, after = before[:-end], after[:-end]
    blocks = [(0, len(before), 0, len(after))]
    if max(len(before), len(after)) <= MAX_COMPARED:
        opcodes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
        blocks = [(a, b, c, d) for tag, a, b, c, d in opcodes if tag != "equal"]
    for a, b, c, d in blocks:
        yield from (f"{label}, gone: {part}" for part in before[a:b])
        yield from (f"{label}, new: {part}" for part in after[c:d])


def _equal(these: list[str], those: list[str]) -> int:
    """Return how many parts at the start are equal."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(these, those)))  # noqa: B905 - as long as the shorter


def _parts(value: Any) -> list[str]:
    if not isinstance(value, str):
        return [json.dumps(value)]
    return [
        quoted(sentence[place : place + PART_CHARS])
        for line in value.splitlines() or [""]
        for sentence in _SENTENCES.split(line)
        for place in range(0, max(len(sentence), 1), PART_CHARS)
    ]
