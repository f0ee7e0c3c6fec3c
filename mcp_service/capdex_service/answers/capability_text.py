"""Texts of CAP manifests and CMP levels for a model: a line for each thing, the author's words cut.

Each function takes what `cap` and `cmp` return.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import orjson

from capdex.json import Json
from capdex_service.answers.text import cut

LINE_TOKENS: Final = 30
PATTERN_TOKENS: Final = 16
PATTERNS_SHOWN: Final = 3


def manifests(found: Sequence[Json], cursor: str | None) -> str:
    """Return a line for each CAP manifest."""
    lines = (
        f"{x['capability_id']} {x['version']} [{x['kind']}] "
        f"{cut(x['name'] + ': ' + x['description'], LINE_TOKENS)}"
        for x in found
    )
    return _page("No capabilities.", lines, cursor)


def manifest(found: Json) -> str:
    """Return one CAP manifest: what it is, its input schema, and how to go on."""
    lines = [
        f"{found['capability_id']} {found['version']} [{found['kind']}] {cut(found['name'], 20)}",
        cut(found["description"], 4 * LINE_TOKENS),
        f"input: {_json(found['input_schema'])}",
    ]
    if found["output_schema"]:
        lines.append(f"output: {_json(found['output_schema'])}")
    if permissions := found["required_permissions"]:
        lines.append(f"needs {', '.join(permissions)}")
    if tools := found.get("tools"):
        lines.append("tools: " + ", ".join(x["capability_id"] for x in tools))
    return "\n".join(lines)


def domains(level: Json) -> str:
    """Return the domains with their numbers of packages."""
    counts = ", ".join(f"{name} {level['counts'][name]}" for name in level["domains"])
    return f"domains: {counts or 'none'}"


def tools(level: Json, cursor: str | None) -> str:
    """Return a line for each CMP manifest of a domain."""
    lines = (
        f"{x['name']} {x['version']}: {cut(x['summary'], LINE_TOKENS)}" for x in level["tools"]
    )
    return _page("No tools in this domain.", lines, cursor)


def intents(level: Json, cursor: str | None) -> str:
    """Return a line for each intent of a package."""
    lines = (
        f"- {x.get('command', level['tool'])}{' (confirm)' * x['confirm']}: "
        + " | ".join(cut(pattern, PATTERN_TOKENS) for pattern in x["patterns"][:PATTERNS_SHOWN])
        for x in level["intents"]
    )
    return _page(f"{level['tool']} names no intents.", lines, cursor)


def schema(level: Json, cursor: str | None) -> str:
    """Return the parameters of one command, or a line for each command."""
    if "params" in level:
        summary = cut(level["summary"], 2 * LINE_TOKENS)
        return f"{level['command']}: {summary}\n{_json(level['params'])}"
    lines = (f"- {x['command']}({parameters(x)})" for x in level["commands"])
    return _page(f"{level['tool']} has no commands.", lines, cursor)


def examples(level: Json, cursor: str | None) -> str:
    """Return a line for each example: what is said, and the call."""
    lines = (
        f"- {cut(x['say'], LINE_TOKENS)} → {x.get('command', level['tool'])}"
        + (f" {_json(x['input'])}" if "input" in x else "")
        for x in level["examples"]
    )
    return _page(f"{level['tool']} gives no examples.", lines, cursor)


def parameters(command: Json) -> str:
    """Return the parameters of a command; `?` marks what need not be given."""
    names = (x if x in command["required"] else f"{x}?" for x in command["params"])
    return cut(", ".join(names), LINE_TOKENS)


def _page(empty: str, lines: Iterable[str], cursor: str | None) -> str:
    shown = list(lines) or [empty]
    return "\n".join(shown if cursor is None else [*shown, f"next_cursor {cursor}"])


def _json(value: object) -> str:
    return orjson.dumps(value).decode("utf-8")
