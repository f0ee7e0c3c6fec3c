"""`capdex help` and `explain`: topics, the help of each command, and the meaning of each code."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import wrap
from typing import Any, Final

import click

from capdex.codes import all_codes, error_codes, reason_codes
from capdex.errors import Code, InvalidInput
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import command
from capdex_cli.views.help_topics import TOPICS

WIDTH: Final = 88  # columns of a line of an explanation

# Codes that a help topic explains in more detail.
_TOPICS = {Code.STEP_TOO_SMALL: "steps", Code.SCHEMA_CHANGED: "steps"}


@command("help", examples=["capdex help exit-codes", "capdex help ranges", "capdex help publish"])
@click.argument("topic", nargs=-1, metavar="TOPIC|COMMAND")
def help_command(app: App, topic: tuple[str, ...]) -> None:
    """Read about exit codes, the environment, ranges, steps, verdicts.

    Topics: exit-codes, environment, ranges, verdicts, steps; or the name of a command.
    """
    root = click.get_current_context().find_root()
    if len(topic) == 1 and topic[0] in TOPICS:
        app.output.out.write(TOPICS[topic[0]]())
        return
    context: click.Context = root
    for word in topic:
        group = context.command
        subcommand = group.get_command(context, word) if isinstance(group, click.Group) else None
        if subcommand is None:
            known = [*TOPICS, *getattr(root.command, "entries", ())]
            otherwise = f"topics: {', '.join(TOPICS)}"
            raise _unknown("help on", " ".join(topic), known, otherwise)
        context = click.Context(subcommand, context, word, **subcommand.context_settings)
    app.output.out.write(context.get_help())


def _codes(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    return [code for code in sorted(all_codes()) if code.startswith(typed)]


@command("explain", examples=["capdex explain NOT_BOUND", "capdex explain"])
@click.argument("code", required=False, shell_complete=_codes)
def explain_command(app: App, code: str | None) -> None:
    """Explain an error or reason code; without one, list them all."""
    if code:
        value = _explanation(code.strip().upper().replace("-", "_"))
        app.output.result("explanation", value, human=_human(value), plain=[_brief(value)])
        return
    values = [_explanation(code) for code in sorted(all_codes())]
    human = [(x["code"], _brief(x)) for x in values]
    app.output.results("explanation", values, human=human, plain=[x["code"] for x in values])


def _explanation(code: str) -> dict[str, Any]:
    """Return the meaning of a code; raises InvalidInput NOT_FOUND with a suggestion."""
    value: dict[str, Any] = {"code": code}
    if error := error_codes().get(code):
        value["error"] = {**error._asdict(), "retryable": error.retryable}
    if reason := reason_codes().get(code):
        value["reason"] = reason._asdict()
    if code in _TOPICS:
        value["help"] = _TOPICS[Code(code)]
    if len(value) == 1:
        raise _unknown("code", code, all_codes(), "capdex explain lists them all")
    return value


def _brief(value: dict[str, Any]) -> str:
    return str((value.get("reason") or value["error"])["meaning"])


def _human(value: dict[str, Any]) -> list[str]:
    lines = [value["code"]]
    if reason := value.get("reason"):
        lines += ["", *_explained("in a package", reason)]
    if error := value.get("error"):
        again = "may succeed later" if error["retryable"] else "a retry does not help"
        answered = f"exit {error['exit']} · HTTP {error['http']} · CAP {error['cap']} · {again}"
        lines += ["", *_explained("as an error", error), f"  {'answered as':<13} {answered}"]
    if topic := value.get("help"):
        lines += ["", *TOPICS[topic]().split("\n")]
    return lines


def _explained(place: str, value: dict[str, Any]) -> list[str]:
    """Return meaning, cause, remedy and example, wrapped; each line of the example alone."""
    lines = []
    for label, text in (
        (place, value["meaning"]),
        ("cause", value["cause"]),
        ("remedy", value["remedy"]),
    ):
        head, indent = f"  {label:<13} ", " " * 16
        lines += wrap(text, WIDTH, initial_indent=head, subsequent_indent=indent)
    examples = [x.strip() for x in value["example"].split(";")]
    return [*lines, f"  {'example':<13} {examples[0]}", *(" " * 16 + x for x in examples[1:])]


def _unknown(what: str, word: str, known: Iterable[str], otherwise: str) -> InvalidInput:
    """Return the error for an unknown word, with the words that look like it."""
    from difflib import get_close_matches

    near = get_close_matches(word, known, n=2)
    fix = f"did you mean {' or '.join(near)}?" if near else otherwise
    return InvalidInput(f"there is no {what} {word!r}", Code.NOT_FOUND, fix=fix)
