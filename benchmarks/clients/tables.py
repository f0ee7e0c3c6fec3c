"""The tables of docs/conformance.md and docs/benchmarks.md, in Markdown."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from loop import Part
from tried import NODE, ROUTER, Asked, Tried, tokens

SHOWN = ("resolve_capability", "search_capabilities", "route_message", "get_capability")
TASK = ("find", "describe", "call")


def _row(*cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def _head(*cells: str, numbers: int) -> list[str]:
    """Return the head of a table, whose last `numbers` columns are numbers."""
    rule = ["---"] * (len(cells) - numbers) + ["---:"] * numbers
    return [_row(*cells), _row(*rule)]


def machine() -> str:
    """Return what a table was measured on, and when."""
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    python = platform.python_version()
    return f"Made on {today}: {os.cpu_count()} cores, {platform.machine()}, Linux, Python {python}."


def _says(asked: Asked) -> str:
    return "yes" if asked.tells_the_error else f"no: `{asked.error[:40]}`" if asked.error else "–"


def _given(asked: Asked, names: Sequence[str]) -> str:
    return " / ".join(str(len(asked.handed[x])) if x in asked.handed else "–" for x in names)


def clients(rows: Sequence[Tried]) -> list[str]:
    """Return the table of clients: what each connects to, lists, calls, and what a model reads."""
    head = _head(
        *("client", "version", "MCP SDK", "connects", "functions", "calls", "reads an error"),
        *("resolve / search / route / get", "find / describe / call"),
        numbers=2,
    )
    lines = []
    for row in rows:
        both = (row.node, row.router)
        if not any(asked.connects for asked in both):
            why = row.node.failure.replace("|", "/")[:80]
            lines.append(_row(row.name, row.version, row.sdk, f"no: {why}", *["–"] * 5))
            continue
        how = [name for name, x in zip(("HTTP", "stdio"), both, strict=True) if x.connects]
        errors = list(dict.fromkeys(map(_says, both)))
        lines.append(
            _row(
                *(row.name, row.version, row.sdk, ", ".join(how)),
                f"{row.node.functions} + {row.router.functions}",
                f"{row.node.right} of {len(NODE)}, {row.router.right} of {len(ROUTER)}",
                *("; ".join(errors), _given(row.node, SHOWN), _given(row.router, TASK)),
            )
        )
    return head + lines


def _tokens(asked: Asked, names: Sequence[str]) -> list[object]:
    return [tokens(asked.handed[x]) if x in asked.handed else "–" for x in names]


def models(rows: Sequence[Tried]) -> list[str]:
    """Return the table of tokens that models are handed."""
    head = _head(
        *("client", "definitions, node", "router", "resolve", "search", "route", "get"),
        *("find", "describe", "call", "find, describe, call"),
        numbers=10,
    )
    return head + [
        _row(
            *(row.name, row.node.definitions, row.router.definitions),
            *_tokens(row.node, SHOWN),
            *_tokens(row.router, TASK),
            row.task_tokens or "–",
        )
        for row in rows
        if row.node.connects
    ]


def loops(days: dict[str, list[Part]]) -> list[str]:
    """Return the table of the agent loop: tokens and turns of each part, by framework."""
    head = _head("part", *days, numbers=len(days))
    parts = next(iter(days.values()))
    lines = [
        _row(part.name, *(f"{day[i].tokens} in {day[i].turns}" for day in days.values()))
        for i, part in enumerate(parts)
    ]
    sums = [(sum(x.tokens for x in day), sum(x.turns for x in day)) for day in days.values()]
    return [*head, *lines, _row("all", *(f"{spent} in {turns}" for spent, turns in sums))]


def put(page: Path, name: str, lines: Sequence[str]) -> None:
    """Replace a table of a page, which stands between two comments with its name."""
    begin, end = f"<!-- {name}: make bench-clients -->\n", f"\n<!-- {name} ends -->"
    text = page.read_text("utf-8")
    before, _, rest = text.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"{page} has no place for {name}")
    page.write_text(before + begin + "\n" + "\n".join(lines) + "\n" + end + after, "utf-8")


def dump(rows: Sequence[Tried]) -> str:
    """Return the answers themselves, to look at."""
    return json.dumps([row.__dict__ for row in rows], default=lambda x: x.__dict__, indent=1)
