"""Outputs of programs as JSON: one value, a value on each line, lines, or a table. Pure."""

from __future__ import annotations

import re
from typing import Any, Final, Literal

from capdex.errors import Code, ExecutionFailed
from capdex.net import json_reply

Kind = Literal["json", "jsonLines", "lines", "table", "auto"]
MIN_VALUE_BYTES: Final = 4
_LONG_BYTES: Final = 1024 * 1024


def parse(kind: Kind, data: bytes, *, truncated: bool = False) -> dict[str, Any]:
    """Return an output: an object as it is, else `{result}`, `{records}`, `{lines}` or `{rows}`.

    `auto` is for outputs that nobody has described: JSON if it is that, else lines.
    An output that was cut ends at its last whole line and has `truncated`. Raises ExecutionFailed
    OUTPUT_INVALID if JSON was promised and something else came.
    """
    if kind == "auto":
        kind = "json" if not truncated and is_json(data) else "lines"
    if truncated and kind == "json":
        raise _invalid(kind, f"over {len(data)} bytes")
    if truncated:
        data = data[: data.rfind(b"\n") + 1]
    parsed = _parsed(kind, data)
    return {**parsed, "truncated": True} if truncated else parsed


def _parsed(kind: Kind, data: bytes) -> dict[str, Any]:
    if kind == "json":
        value = _json(kind, data) if data.strip() else None
        return value if isinstance(value, dict) else {"result": value}
    if kind == "jsonLines":
        # One parse of the whole, so that the bounds hold for the whole.
        lines = [line for line in data.splitlines() if line.strip()]
        return {"records": _json(kind, b"[" + b",".join(lines) + b"]")}
    text = "\n".join(map(_last_shown, data.decode(errors="replace").split("\n")))
    lines_of_text = text.splitlines()
    if kind == "lines":
        return {"lines": lines_of_text}
    rows = [re.split(r"\s{2,}|\t", line.strip()) for line in lines_of_text if line.strip()]
    head, *rest = rows or [[]]
    return {"rows": [dict(zip(head, row, strict=False)) for row in rest]}


def _last_shown(line: str) -> str:
    """Return what is left of a line after returns of the carriage, by which a progress is shown."""
    return line[line.rstrip("\r").rfind("\r") + 1 :]


def is_json(data: bytes) -> bool:
    """Return True for an object or a list in JSON."""
    if data.lstrip()[:1] not in (b"{", b"["):
        return False
    try:
        _json("json", data)
    except ExecutionFailed:
        return False
    return True


def _json(kind: Kind, data: bytes) -> Any:
    try:
        return json_reply.parse(data, long_bytes=_LONG_BYTES, min_value_bytes=MIN_VALUE_BYTES)
    except ValueError as error:
        raise _invalid(kind, str(error)) from None


def _invalid(kind: Kind, why: str) -> ExecutionFailed:
    return ExecutionFailed(
        f"the program's output is not the {kind} that was promised",
        Code.OUTPUT_INVALID,
        why=f"it is {why}",
        fix="the program ran: look at what it did before you call it again",
    )
