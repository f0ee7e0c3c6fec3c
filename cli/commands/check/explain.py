"""`capdex explain`: the meaning of every error and reason code."""

from __future__ import annotations

from typing import Any

import click

from capdex.errors import KINDS, Code, InvalidInput
from capdex.problems import REASONS, Reason
from cli.terminal.app import App
from cli.terminal.click_commands import command
from cli.terminal.text import columns

# Codes that a help topic explains in more detail.
_TOPICS = {Code.STEP_TOO_SMALL: "steps", Code.SCHEMA_CHANGED: "steps"}


def explanation(code: str) -> dict[str, Any]:
    """Return the meaning of a code; raises InvalidInput NOT_FOUND with a suggestion."""
    value: dict[str, Any] = {"code": code}
    if code in KINDS:
        kind = KINDS[Code(code)]
        value["error"] = {
            "meaning": kind.when,
            "exit": kind.exit,
            "http": kind.http,
            "cap": kind.cap,
            "retryable": kind.retryable,
        }
    if code in Reason.__members__:
        reason = REASONS[Reason(code)]
        value["reason"] = {"meaning": reason.meaning, "hint": reason.hint}
    if code in _TOPICS:
        value["help"] = _TOPICS[Code(code)]
    if len(value) == 1:
        from difflib import get_close_matches

        near = get_close_matches(code, [*KINDS, *REASONS], n=2)
        raise InvalidInput(
            f"there is no code {code!r}",
            Code.NOT_FOUND,
            fix=f"did you mean {' or '.join(near)}?" if near else "capdex explain lists them all",
        )
    return value


def _codes(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    return [
        code for code in sorted({*map(str, KINDS), *map(str, REASONS)}) if code.startswith(typed)
    ]


@command("explain", examples=["capdex explain NOT_BOUND", "capdex explain"])
@click.argument("code", required=False, shell_complete=_codes)
def explain_command(app: App, code: str | None) -> None:
    """Explain an error or reason code; without one, list them all."""
    if code:
        value = explanation(code.strip().upper().replace("-", "_"))
        app.output.result("explanation", value, human=lambda: _human(value), plain=[_brief(value)])
        return
    names = sorted({*map(str, KINDS), *map(str, REASONS)})
    values = [explanation(name) for name in names]
    app.output.results(
        "explanation",
        values,
        human=lambda: columns([(x["code"], _brief(x)) for x in values], indent=0),
        plain=names,
    )


def _brief(value: dict[str, Any]) -> str:
    return str((value.get("reason") or value["error"])["meaning"])


def _human(value: dict[str, Any]) -> list[str]:
    lines = [value["code"]]
    if reason := value.get("reason"):
        lines += [f"  in a package: {reason['meaning']}", f"           fix: {reason['hint']}"]
    if error := value.get("error"):
        again = "may succeed later" if error["retryable"] else "a retry does not help"
        lines += [
            f"  as an error:  {error['meaning']}",
            f"                exit {error['exit']} · HTTP {error['http']} · CAP {error['cap']}"
            f" · {again}",
        ]
    if topic := value.get("help"):
        from cli.views.help_topics import TOPICS

        lines += ["", *TOPICS[topic]().split("\n")]
    return lines
