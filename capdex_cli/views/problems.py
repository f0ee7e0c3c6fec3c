"""Problems of a file as text: with the source line and a caret, or on one line each."""

from __future__ import annotations

from collections.abc import Iterable

from capdex.codes import reason_codes
from capdex.problems import Problem, Reason, Severity
from capdex_cli.terminal.output import Stream
from capdex_cli.terminal.text import clip, safe, width

COLORS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}
GITHUB = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
MAX_LINE_COLUMNS = 160  # of a source line; longer ones are cut


def full(name: str, data: bytes, problem: Problem, stream: Stream) -> list[str]:
    """Return position and message, the source line with a caret, and the fix."""
    lines = [concise(name, problem, stream)]
    text = _line(data, problem.line)
    # A line that holds a secret is not repeated: logs of other machines would have it.
    if problem.line and text is not None and problem.code is not Reason.LINT_SECRET_VALUE:
        gutter = " " * len(str(problem.line))
        before = safe(text[: max(problem.column - 1, 0)])
        shown = clip(safe(text), MAX_LINE_COLUMNS, "…" if stream.unicode else "...")
        lines += [f"{gutter} |", f"{problem.line} | {shown}"]
        if width(before) < MAX_LINE_COLUMNS:
            caret = stream.style("^", COLORS[problem.severity], bold=True)
            lines.append(f"{gutter} | {' ' * width(before)}{caret}")
    hint = problem.hint or reason_codes()[problem.code].hint
    return [*lines, f"  = {stream.style('fix', bold=True)}: {safe(hint)}", ""]


def concise(name: str, problem: Problem, stream: Stream) -> str:
    """Return `file:line:column: error[CODE] path: message`."""
    position = f"{safe(name)}:{problem.line}:{problem.column}" if problem.line else safe(name)
    label = f"{problem.severity}[{problem.code}]"
    path = f"{safe(problem.path)}: " if problem.path else ""
    return (
        f"{stream.style(position, bold=True)}: "
        f"{stream.style(label, COLORS[problem.severity], bold=True)} {path}{safe(problem.message)}"
    )


def github(name: str, problem: Problem) -> str:
    """Return the GitHub workflow command that shows the problem in a pull request."""
    values = {
        "file": name,
        "line": str(max(problem.line, 1)),
        "col": str(max(problem.column, 1)),
        "title": str(problem.code),
    }
    escaped = {k: _data(v).replace(":", "%3A").replace(",", "%2C") for k, v in values.items()}
    properties = ",".join(f"{key}={value}" for key, value in escaped.items())
    path = f"{problem.path}: " if problem.path else ""
    return f"::{GITHUB[problem.severity]} {properties}::{_data(path + problem.message)}"


def counted(problems: Iterable[Problem]) -> str:
    """Return `1 error, 2 notes`, without severities that do not occur; or `no problems`."""
    severities = [problem.severity for problem in problems]
    counts = [(severity, severities.count(severity)) for severity in Severity]
    parts = [f"{count} {name}{'' if count == 1 else 's'}" for name, count in counts if count]
    return ", ".join(parts) or "no problems"


def _line(data: bytes, number: int) -> str | None:
    lines = data.split(b"\n", number)
    if not 0 < number <= len(lines):
        return None
    return lines[number - 1].decode("utf-8", "replace")


def _data(text: str) -> str:
    return safe(text).replace("%", "%25")
