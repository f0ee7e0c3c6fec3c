"""`capdex validate`: what a node would say of a file, before anybody pays for it."""

from __future__ import annotations

from typing import Any

import click

from capdex.errors import UsageError
from cli.publish.validate import Judged, judge_file
from cli.terminal.app import App
from cli.terminal.click_commands import command
from cli.terminal.errors import NO, OK, exit_code, show, worst
from cli.terminal.file_arguments import expand, read
from cli.terminal.output import Format
from cli.terminal.text import safe
from cli.views.problems import concise, counted, full, github

FORMATS = tuple(one.value for one in Format)  # those of every command, besides its own


@command(
    "validate",
    examples=[
        "capdex validate weather.acp.yaml",
        "capdex validate --format github *.acp.yaml",
        "capdex validate - < weather.acp.yaml",
    ],
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--format",
    "form",
    type=click.Choice(["full", "concise", "github", *FORMATS]),
    help="How problems are written; human is full, plain is concise.  "
    "[default: full; into a pipe one JSON object a file]",
)
def validate_command(app: App, files: tuple[str, ...], form: str | None) -> int:
    """Check packages and show what to mend.

    FILE may be - for stdin or @LIST for a file of names. Exit code: 0 valid, 1 not, 2 unreadable.
    """
    if form in FORMATS:
        app.options.format, form = Format(form), None
    codes: list[int] = []
    judged: list[Judged] = []
    names = expand(files)
    for name in names:
        try:
            judged.append(judge_file(name, read(name)))
        except UsageError as error:
            show(error, app.output)
            codes.append(exit_code(error))
    form = form or {Format.HUMAN: "full", Format.PLAIN: "concise"}.get(app.output.format, "json")
    if form == "json":
        values = [_value(one) for one in judged]
        if app.output.format is Format.JSON and len(values) == len(names) == 1:
            app.output.result("validation", values[0], human=list)
        else:
            ok = all(one.valid for one in judged) and not codes
            app.output.results("validation", values, human=list, ok=ok)
    else:
        _write(app, judged, form)
    return worst([*codes, *(OK if one.valid else NO for one in judged)])


def _write(app: App, judged: list[Judged], form: str) -> None:
    stream = app.output.out
    for one in judged:
        for problem in one.problems:
            if form == "full":
                for line in full(one.name, one.data, problem, stream):
                    stream.write(line)
            elif form == "github":
                stream.write(github(one.name, problem))
            else:
                stream.write(concise(one.name, problem, stream))
    for one in judged:
        uri = f"  {one.manifest.uri}" if one.manifest else ""
        words = f"{safe(one.name)}: {counted(one.problems)}, {one.verdict}{safe(uri)}"
        app.output.say(f"{app.output.err.mark('ok' if one.valid else 'fail')} {words}")


def _value(one: Judged) -> dict[str, Any]:
    from capdex.ipld.cid import Cid
    from capdex.manifest.prompt_injection import lint_summary

    cid = Cid.of(one.data)
    return {
        "file": one.name,
        "ok": one.valid,
        "verdict": str(one.verdict),
        "cap_uri": str(one.manifest.uri) if one.manifest else None,
        "cid": cid.text,
        "sha256": cid.digest.hex(),
        "lint": lint_summary(problem.code for problem in one.problems),
        "problems": [problem.to_json() for problem in one.problems],
    }
