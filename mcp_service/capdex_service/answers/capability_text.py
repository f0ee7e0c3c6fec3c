"""CAP manifests and CMP levels for a model: as a text, a line for each thing, and as structure.

Each function takes what `cap` and `cmp` return, and cuts the author's words alike in both forms.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import orjson

from capdex.json import Json
from capdex.uri import PREFIX
from capdex_service.answers.brief import EVERYTHING, get, page, step
from capdex_service.answers.text import cut

LINE_TOKENS: Final = 30
PATTERN_TOKENS: Final = 16
PATTERNS_SHOWN: Final = 3
DOMAINS: Final = 'capability_browse {"level":"domains"}'

Told = tuple[str, Json]  # the text, and the structure with the step after it


def manifests(listed: Sequence[Json], cursor: str | None) -> Told:
    """Return a page of CAP manifests."""
    lines = (
        f"{entry['capability_id']} {entry['version']} [{entry['kind']}] "
        f"{cut(entry['name'] + ': ' + entry['description'], LINE_TOKENS)}"
        for entry in listed
    )
    items = [
        {key: entry[key] for key in ("capability_id", "version", "kind")}
        | {key: cut(entry[key], LINE_TOKENS) for key in ("name", "description")}
        for entry in listed
    ]
    after = step("capability_describe", capability_id=listed[0]["capability_id"]) if listed else ""
    return _page("No capabilities.", lines, "capabilities", items, cursor, after or DOMAINS)


def manifest(full: Json, cap_uri: str) -> Told:
    """Return one CAP manifest without what says nothing; `cap_uri` is of its package."""
    said = ("capability_id", "version", "kind", "name", "input_schema")
    made = {key: full[key] for key in said}
    made["description"] = cut(full["description"], 4 * LINE_TOKENS)
    lines = [
        f"{full['capability_id']} {full['version']} [{full['kind']}] {cut(full['name'], 20)}",
        made["description"],
        f"input: {_json(full['input_schema'])}",
    ]
    if output := full["output_schema"]:
        made["output_schema"] = output
        lines.append(f"output: {_json(output)}")
    if permissions := full["required_permissions"]:
        made["required_permissions"] = permissions
        lines.append(f"needs {', '.join(permissions)}")
    if tools := full.get("tools"):
        made["tools"] = [x["capability_id"] for x in tools]
        lines.append("tools: " + ", ".join(made["tools"]))
    return "\n".join(lines), made | {"next": get(cap_uri)}


def domains(level: Json) -> Told:
    """Return CMP's level 0, the domains; the text has their numbers of packages."""
    names = level["domains"]
    counts = ", ".join(f"{name} {level['counts'][name]}" for name in names)
    first = step("capability_browse", level="manifests", of=names[0]) if names else EVERYTHING
    return f"domains: {counts or 'none'}", page("domains", names, None, first)


def tools(level: Json, cursor: str | None) -> Told:
    """Return CMP's level 1: the packages of a domain."""
    items = [x | {"summary": cut(x["summary"], LINE_TOKENS)} for x in level["tools"]]
    lines = (f"{x['name']} {x['version']}: {x['summary']}" for x in items)
    first = step("capability_browse", level="capabilities", of=items[0]["name"]) if items else ""
    empty, after = "No tools in this domain.", first or DOMAINS
    return _page(empty, lines, "tools", items, cursor, after, domain=level["domain"])


def intents(level: Json, cursor: str | None) -> Told:
    """Return CMP's level 2 of a package."""
    tool = level["tool"]
    items = [
        {key: intent[key] for key in ("command", "confirm") if intent.get(key)}
        | {"patterns": [cut(x, PATTERN_TOKENS) for x in intent["patterns"][:PATTERNS_SHOWN]]}
        for intent in level["intents"]
    ]
    lines = (
        f"- {intent.get('command', tool)}{' (confirm)' * intent.get('confirm', False)}: "
        + " | ".join(intent["patterns"])
        for intent in items
    )
    after = step("capability_browse", level="schema", of=tool)
    return _page(f"{tool} names no intents.", lines, "intents", items, cursor, after, tool=tool)


def schema(level: Json, cursor: str | None) -> Told:
    """Return CMP's level 3: the parameters of one command, or the commands."""
    tool = level["tool"]
    if "params" in level:
        summary = cut(level["summary"], 2 * LINE_TOKENS)
        after = _examples(f"{tool}#{level['command']}")
        words = f"{level['command']}: {summary}\n{_json(level['params'])}"
        return words, level | {"summary": summary, "next": after}
    items = [{"command": x["command"], "params": _parameters(x)} for x in level["commands"]]
    lines = (f"- {x['command']}({x['params']})" for x in items)
    empty, after = f"{tool} has no commands.", _examples(tool)
    return _page(empty, lines, "commands", items, cursor, after, tool=tool)


def examples(level: Json, cursor: str | None) -> Told:
    """Return CMP's level 4 of a package: what is said, and the call."""
    tool = level["tool"]
    items = [example | {"say": cut(example["say"], LINE_TOKENS)} for example in level["examples"]]
    lines = (
        f"- {example['say']} → {example.get('command', tool)}"
        + (f" {_json(example['input'])}" if "input" in example else "")
        for example in items
    )
    empty, after = f"{tool} gives no examples.", get(PREFIX + tool)
    return _page(empty, lines, "examples", items, cursor, after, tool=tool)


def _examples(of: str) -> str:
    return step("capability_browse", level="examples", of=of)


def _parameters(command: Json) -> str:
    """Return the parameters of a command; `?` marks what need not be given."""
    names = (x if x in command["required"] else f"{x}?" for x in command["params"])
    return cut(", ".join(names), LINE_TOKENS)


def _page(
    empty: str,
    lines: Iterable[str],
    key: str,
    items: Sequence[Json],
    cursor: str | None,
    after: str,
    **more: str,
) -> Told:
    shown = list(lines) or [empty]
    words = "\n".join(shown if cursor is None else [*shown, f"next_cursor {cursor}"])
    return words, page(key, items, cursor, after, **more)


def _json(value: object) -> str:
    return orjson.dumps(value).decode("utf-8")
