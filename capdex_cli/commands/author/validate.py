"""`capdex validate` and `schema`: check a file as a node would, and its format, for editors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from capdex.errors import UsageError
from capdex.problems import Severity
from capdex_cli.publish.allowances import files_option, secret_option
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import FILE_NAME, command
from capdex_cli.terminal.errors import NO, OK, worst
from capdex_cli.terminal.file_arguments import expand, package_file, telling, write
from capdex_cli.terminal.output import Format
from capdex_cli.terminal.text import safe
from capdex_cli.views.problems import concise, counted, full, github

if TYPE_CHECKING:
    from capdex_publisher.authoring.validate import PackageValidation

FORMATS = tuple(x.value for x in Format)  # those of every command, besides its own


@command(
    "validate",
    examples=[
        "capdex validate weather.acp.yaml",
        "capdex validate --format github *.acp.yaml",
        "capdex validate - < weather.acp.yaml",
    ],
)
@click.argument("packages", nargs=-1, required=True, type=FILE_NAME, metavar="FILE...")
@click.option(
    "--format",
    "form",
    type=click.Choice(["full", "concise", "github", *FORMATS]),
    help="How problems are written; human is full, plain is concise.  "
    "[default: full; into a pipe one JSON object a file]",
)
@secret_option
@files_option
def validate_command(
    app: App,
    packages: tuple[str, ...],
    form: str | None,
    allow_secret_like: tuple[str, ...],
    files: Path | None,
) -> int:
    """Check packages and show what to correct.

    The files that a package names are checked where they are there.

    FILE may be - for stdin or @LIST for a file of names. Exit code: 0 valid, 1 not, 2 unreadable.
    """
    if form in FORMATS:
        app.options.format, form = Format(form), None
    from capdex_publisher.authoring.validate import validate

    codes: list[int] = []
    validated: list[PackageValidation] = []
    names = expand(packages)
    for name in names:
        with telling(app, name, codes, UsageError):
            validated.append(validate(package_file(name, files), allow_secret_like))
    form = form or {Format.HUMAN: "full", Format.PLAIN: "concise"}.get(app.output.format, "json")
    if form == "json":
        values = [_value(check) for check in validated]
        if app.output.format is Format.JSON and len(values) == len(names) == 1:
            app.output.result("validation", values[0], plain=())
        else:
            ok = all(check.valid for check in validated) and not codes
            app.output.results("validation", values, plain=(), ok=ok)
    else:
        _write(app, validated, form)
    return worst([*codes, *(OK if check.valid else NO for check in validated)])


def _write(app: App, validated: list[PackageValidation], form: str) -> None:
    stream = app.output.out
    for check in validated:
        for problem in check.problems:
            if form == "github":
                lines = [github(check.file.name, problem)]
            elif form == "concise":
                lines = [concise(check.file.name, problem, stream)]
            else:
                lines = full(check.file.name, check.file.data, problem, stream)
            for line in lines:
                stream.write(line)
    for check in validated:
        uri = f"  {check.manifest.uri}" if check.manifest else ""
        words = f"{safe(check.file.name)}: {counted(check.problems)}, {check.verdict}{safe(uri)}"
        app.output.say(f"{app.output.err.mark('ok' if check.valid else 'fail')} {words}")


def _value(check: PackageValidation) -> dict[str, Any]:
    from capdex.ipld.cid import Cid
    from capdex.manifest.prompt_injection import lint_summary

    cid = Cid.of(check.file.data)
    return {
        "file": check.file.name,
        "ok": check.valid,
        "verdict": str(check.verdict),
        "cap_uri": str(check.manifest.uri) if check.manifest else None,
        "cid": cid.text,
        "sha256": cid.digest.hex(),
        "lint": lint_summary(x.code for x in check.problems if x.severity is not Severity.ERROR),
        "problems": [problem.to_json() for problem in check.problems],
    }


@command("schema", examples=["capdex schema > acp-1.json"])
def schema_command(app: App) -> None:
    """Print the schema of package files, for editors.

    It is a JSON Schema 2020-12. With it, an editor completes and checks a file whose first line is
    `# yaml-language-server: $schema=acp-1.json`.
    """
    from capdex.manifest.editor_schema import to_json

    write("-", to_json())
