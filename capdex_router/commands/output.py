"""Outputs of programs as JSON: one value, a value on each line, lines, or a table. Pure."""

from __future__ import annotations

import re
from typing import Any, Final, Literal

from capdex.errors import Code, ExecutionFailed
from capdex.net import json_reply

Kind = Literal["json", "jsonLines", "lines", "table", "auto"]
MIN_VALUE_BYTES: Final = 4
_OVERWRITTEN: Final = re.compile(r"\r(?=[^\r\n])")  # what stood before it is not shown
_ODD: Final = "\N{REPLACEMENT CHARACTER}"
_LONG_BYTES: Final = 1024 * 1024


def parse(kind: Kind, data: bytes, stderr: str = "", *, truncated: bool = False) -> dict[str, Any]:
    """Return an output: an object as it is, else `{result}`, `{records}`, `{lines}` or `{rows}`.

    `auto` is for outputs that nobody has described: JSON if it is that, else lines. A table whose
    rows do not have its columns is lines, too.
    An output that was cut ends at its last whole line and has `truncated`. `stderr` stands beside
    what was not promised to be JSON alone, `not_utf8` says in how many places it is no UTF-8, and
    `overwritten` how many returns of the carriage took what stood before them off a line.
    Raises ExecutionFailed OUTPUT_INVALID if JSON was promised and something else came.
    """
    beside: dict[str, Any] = {"stderr": stderr} if stderr and kind != "json" else {}
    if kind == "auto":
        kind = "json" if not truncated and is_json(data) else "lines"
    if truncated and kind == "json":
        raise _invalid(kind, f"over {len(data)} bytes")
    if truncated:
        data = data[: data.rfind(b"\n") + 1]
        beside["truncated"] = True
    text = data.decode(errors="replace")
    if odd := text.count(_ODD) - data.count(_ODD.encode()):
        beside["not_utf8"] = odd
    if kind in ("lines", "table") and (lost := len(_OVERWRITTEN.findall(text))):
        beside["overwritten"] = lost
    if kind == "json" and beside:  # nothing is put into an object of the program
        return {"result": _json(kind, data), **beside}
    return _parsed(kind, data, text) | beside


def _parsed(kind: Kind, data: bytes, text: str) -> dict[str, Any]:
    if kind == "json":
        value = _json(kind, data) if data.strip() else None
        return value if isinstance(value, dict) else {"result": value}
    if kind == "jsonLines":
        # One parse of the whole, so that the bounds hold for the whole.
        lines = [line for line in data.splitlines() if line.strip()]
        return {"records": _json(kind, b"[" + b",".join(lines) + b"]")}
    # Not `splitlines`: a form feed, say, is a part of its line. A progress is shown by returns.
    parts = text.removesuffix("\n").split("\n") if text else []
    shown = [line.rstrip("\r").rpartition("\r")[2] for line in parts]
    rows = [re.split(r"\s{2,}|\t", line.strip()) for line in shown if line.strip()]
    head, *rest = rows or [[]]
    # A row of more or fewer cells than the head has cells whose names nobody knows.
    if kind == "lines" or any(len(row) != len(set(head)) for row in rows):
        return {"lines": shown}
    return {"rows": [dict(zip(head, row, strict=True)) for row in rest]}


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
