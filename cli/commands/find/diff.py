"""`capdex diff`: what changed between two releases, and whether the version says so."""

from __future__ import annotations

from difflib import unified_diff
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from capdex.errors import CapdexError, InvalidInput, UsageError
from capdex.uri import CapabilityURI
from cli.terminal.app import App
from cli.terminal.click_commands import command
from cli.terminal.errors import NO, OK
from cli.terminal.file_arguments import read
from cli.terminal.output import Stream
from cli.terminal.text import safe

if TYPE_CHECKING:
    from capdex.diff.diff import Change, Difference
    from capdex.manifest.manifest import Manifest

MAX_LINES = 10_000  # of a text: lining up more takes longer than anybody waits
_SUFFIXES = (".yaml", ".yml")


class Side(NamedTuple):
    """One of the two packages, with its name on the command line."""

    source: str
    data: bytes
    manifest: Manifest

    def to_json(self) -> dict[str, Any]:
        """Return the package as JSON."""
        from capdex.ipld.cid import Cid

        cid = Cid.of(self.data)
        return {
            "source": self.source,
            "cap_uri": str(self.manifest.uri),
            "cid": cid.text,
            "sha256": cid.digest.hex(),
        }


@command(
    "diff",
    examples=[
        "capdex diff weather weather.acp.yaml     # what is published, and what would be next",
        "capdex diff weather@1.2.0 weather@1.3.0 --text",
        "capdex diff old.acp.yaml - < new.acp.yaml",
    ],
)
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.option("--text", is_flag=True, help="Show the changed lines, too.")
def diff_command(app: App, old: str, new: str, text: bool) -> int:
    """Compare two releases by meaning and tell the SemVer step owed.

    OLD and NEW are files, - for stdin, or URIs (name@version), which are fetched and verified
    against the chain before anything is compared. Exit code: 0 the version moves as far as the
    changes owe, 1 it does not, or the schema changed incompatibly under an unchanged $id.
    """
    from capdex.diff.diff import check_step, compare

    if old == new == "-":
        raise UsageError("only one of the two can be stdin", fix="write the other one to a file")
    before, after = app.run(_sides(app, old, new))
    difference = compare(before.manifest, after.manifest)
    was, now = before.manifest.uri, after.manifest.uri
    refusal: CapdexError | None = None
    if was.name != now.name:
        app.output.warn(f"{safe(was.name)} and {safe(now.name)} are two capabilities: none is owed")
    elif difference.changes or was != now:
        try:
            check_step(difference, was.version, now.version)
        except InvalidInput as error:
            refusal = error
    lines = _text(before, after) if text else []
    app.output.result(
        "diff",
        _value(before, after, difference, refusal, lines if text else None),
        human=lambda: _human(app.output.out, before, after, difference, refusal, lines),
        plain=[_owed(before, after, difference)],
    )
    return NO if refusal else OK


async def _sides(app: App, old: str, new: str) -> tuple[Side, Side]:
    """Both packages; files first, since they are quick to be wrong."""
    found = {name: _side(name, read(name)) for name in (old, new) if _is_file(name)}
    for name in (old, new):
        if name not in found:
            found[name] = await _fetched(app, name)
    return found[old], found[new]


def _is_file(name: str) -> bool:
    return name == "-" or "/" in name or name.endswith(_SUFFIXES) or Path(name).exists()


async def _fetched(app: App, name: str) -> Side:
    from cli.commands.find.get import get_package

    package = await get_package(app, CapabilityURI.loose(name))
    return Side(name, package.data, package.manifest)


def _side(name: str, data: bytes) -> Side:
    from capdex.manifest.manifest import read as read_manifest
    from capdex.problems import Severity

    reading = read_manifest(data)
    if reading.manifest is None:
        problem = next(x for x in reading.problems if x.severity is Severity.ERROR)
        raise InvalidInput(
            f"{name} is not a valid package",
            why=f"{problem.path}: {problem.message}, line {problem.line}",
            fix=f"capdex validate {name}",
        )
    return Side(name, data, reading.manifest)


def _owed(before: Side, after: Side, difference: Difference) -> str:
    was, now = before.manifest.uri, after.manifest.uri
    if was.name != now.name:
        return "none"
    return str(difference.owed_after(was.version, now.version))


def _taken(before: Side, after: Side) -> str | None:
    """The step taken; None where the versions have no order to speak of."""
    from capdex.diff.diff import taken_step

    was, now = before.manifest.uri, after.manifest.uri
    if was.name != now.name or now.version <= was.version:
        return None
    return str(taken_step(was.version, now.version))


def _value(
    before: Side,
    after: Side,
    difference: Difference,
    refusal: CapdexError | None,
    text: list[str] | None,
) -> dict[str, Any]:
    return {
        "old": before.to_json(),
        "new": after.to_json(),
        "changes": [change.to_json() for change in difference.changes],
        "owed": _owed(before, after, difference),
        "taken": _taken(before, after),
        "enough": refusal is None,
        "schema_conflict": difference.schema_conflict,
        "permissions_widened": difference.permissions_widened,
        "error": refusal.to_json() if refusal else None,
        "text": text,
    }


def _human(
    stream: Stream,
    before: Side,
    after: Side,
    difference: Difference,
    refusal: CapdexError | None,
    text: list[str],
) -> list[str]:
    arrow = "→" if stream.unicode else "->"
    ends = (_name(side) for side in (before, after))
    lines = [stream.style(f" {arrow} ".join(ends), bold=True)]
    for section, changes in groupby(difference.changes, key=lambda x: x.section):
        lines += ["", stream.style(section, bold=True)]
        lines += [_line(stream, change, difference) for change in changes]
    if not difference.changes:
        lines += ["", "no changes of meaning"]
    if text:
        lines += ["", *(_colored(stream, line) for line in text)]
    owed, taken = _owed(before, after, difference), _taken(before, after) or "none"
    mark = stream.mark("fail" if refusal else "ok")
    dot = "·" if stream.unicode else "-"
    lines += ["", f"owed: {owed} {dot} taken: {taken} {mark}"]
    if refusal:
        lines += [f"  {safe(refusal.message)}", f"  fix: {safe(refusal.fix)}"]
    return lines


def _name(side: Side) -> str:
    uri = side.manifest.uri
    return safe(f"{uri.name} {uri.version}")


def _line(stream: Stream, change: Change, difference: Difference) -> str:
    """Return the row of one change: mark, SemVer step, text; red for security."""
    from capdex.diff.diff import Rule

    conflict = difference.schema_conflict and change.rule is Rule.SCHEMA_INCOMPATIBLE
    mark = stream.mark("fail" if conflict else "warn" if change.risk else "plan")
    red = "red" if conflict or change.risk else None
    step = str(change.step).ljust(5)
    return f"  {mark} {step}  {stream.style(safe(change.message), red)}"


def _text(before: Side, after: Side) -> list[str]:
    """The unified diff of both files, its lines as they are written."""
    old, new = (side.data.decode().splitlines() for side in (before, after))
    if len(old) + len(new) > MAX_LINES:
        raise InvalidInput(
            f"the texts have {len(old) + len(new)} lines; at most {MAX_LINES} are compared",
            fix="leave out --text, and compare the files by other means",
        )
    was, now = (str(side.manifest.uri) for side in (before, after))
    return list(unified_diff(old, new, was, now, lineterm=""))


def _colored(stream: Stream, line: str) -> str:
    shown = safe(line)
    if line.startswith(("+++", "---")):
        return stream.style(shown, bold=True)
    return stream.style(shown, {"+": "green", "-": "red", "@": "cyan"}.get(line[:1]))
