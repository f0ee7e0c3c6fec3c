"""`capdex diff`: what changed between two releases, and whether the version says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import unified_diff
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from capdex.diff.semver_step import Rule, taken_step
from capdex.errors import CapdexError, InvalidInput, UsageError
from capdex.ipld.cid import Cid
from capdex.problems import Severity
from capdex.uri import CapabilityURI
from capdex_cli.commands.find.get import get_files, get_package
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import command
from capdex_cli.terminal.errors import NO, OK
from capdex_cli.terminal.file_arguments import read
from capdex_cli.terminal.output import Stream
from capdex_cli.terminal.text import safe

if TYPE_CHECKING:
    from capdex.diff.change import Change
    from capdex.diff.diff import Difference
    from capdex.manifest.manifest import Manifest
    from capdex.manifest.resources import Resource

MAX_LINES = 10_000  # of a text: lining up more takes longer than anybody waits
BELOW_1 = (
    "below 1.0.0: what breaks callers requires a minor step (0.0.z: a patch), "
    "what widens rights a minor step, all else a patch"
)
_SUFFIXES = (".yaml", ".yml")


class Side(NamedTuple):
    """One of the two packages, with its name on the command line."""

    source: str
    data: bytes
    manifest: Manifest

    def to_json(self) -> dict[str, Any]:
        """Return the package as JSON."""
        cid, uri = Cid.of(self.data), str(self.manifest.uri)
        return {"source": self.source, "cap_uri": uri, "cid": cid.text, "sha256": cid.digest.hex()}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two packages, their changes of meaning, and the SemVer steps required and taken.

    `taken` is None where the versions have no order to speak of, `refusal` where the step is
    enough, `text` (the changed lines) where it was not asked for.
    """

    old: Side
    new: Side
    difference: Difference
    required: str
    taken: str | None
    refusal: CapdexError | None
    text: list[str] | None

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as JSON."""
        return {
            "old": self.old.to_json(),
            "new": self.new.to_json(),
            "changes": [change.to_json() for change in self.difference.changes],
            "required": self.required,
            "taken": self.taken,
            "enough": self.refusal is None,
            "schema_conflict": self.difference.schema_conflict,
            "permissions_widened": bool(self.difference.risks),
            "error": self.refusal.to_json() if self.refusal else None,
            "text": self.text,
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
@click.option("--text", is_flag=True, help="Show the changed lines, too, also of files.")
def diff_command(app: App, old: str, new: str, text: bool) -> int:
    """Compare two releases by meaning and tell the required SemVer step.

    OLD and NEW are files, - for stdin, or URIs (name@version), which are fetched and verified
    against the chain before anything is compared. Exit code: 0 the version moves as far as the
    changes require, 1 it does not, or the schema changed incompatibly under an unchanged $id.
    """
    if old == new == "-":
        raise UsageError("only one of the two can be stdin", fix="write the other one to a file")
    # files first: they are quick to be wrong
    sides = {name: _read_side(name) for name in (old, new) if _is_file(name)}
    for name in (old, new):
        if name not in sides:
            package = app.run(get_package(app, CapabilityURI.loose(name)))
            sides[name] = Side(name, package.data, package.manifest)
    diff = _compare(app, sides[old], sides[new], text=text)
    was, now = (side.manifest.uri.name for side in (diff.old, diff.new))
    if was != now:
        app.output.warn(f"{safe(was)} and {safe(now)} are two capabilities: no step is required")
    human = _human(app.output.out, diff)
    app.output.result("diff", diff.to_json(), human=human, plain=[diff.required])
    return NO if diff.refusal else OK


def _compare(app: App, old: Side, new: Side, *, text: bool) -> Comparison:
    from capdex.diff.diff import check_step, compare

    difference = compare(old.manifest, new.manifest)
    was, now = old.manifest.uri, new.manifest.uri
    required, taken, refusal = "none", None, None
    if was.name == now.name:
        required = str(difference.required_after(was.version, now.version))
        taken = str(taken_step(was.version, now.version)) if now.version > was.version else None
        try:
            if difference.changes or was != now:
                check_step(difference, was.version, now.version)
        except InvalidInput as error:
            refusal = error
    lines = _text(old, new) if text else None
    if lines is not None:
        lines += app.run(_file_texts(app, old, new, MAX_LINES - len(lines)))
    return Comparison(old, new, difference, required, taken, refusal, lines)


def _is_file(name: str) -> bool:
    return name == "-" or "/" in name or name.endswith(_SUFFIXES) or Path(name).is_file()


def _read_side(name: str) -> Side:
    from capdex.manifest.manifest import read as read_manifest

    data = read(name)
    reading = read_manifest(data)
    if reading.manifest is None:
        problem = next(x for x in reading.problems if x.severity is Severity.ERROR)
        raise InvalidInput(
            f"{name} is not a valid package",
            why=f"{problem.path}: {problem.message}, line {problem.line}".removeprefix(": "),
            fix=f"capdex validate {name}",
        )
    return Side(name, data, reading.manifest)


def _human(stream: Stream, diff: Comparison) -> list[str]:
    arrow, dot = ("→", "·") if stream.unicode else ("->", "-")
    uris = (side.manifest.uri for side in (diff.old, diff.new))
    ends = f" {arrow} ".join(safe(f"{uri.name} {uri.version}") for uri in uris)
    lines = [stream.style(ends, bold=True)]
    for section, changes in groupby(diff.difference.changes, key=lambda x: x.rule.section):
        lines += ["", stream.style(section, bold=True)]
        lines += [_line(stream, change, diff.difference) for change in changes]
    if not diff.difference.changes:
        lines += ["", "no changes of meaning"]
    if diff.text:
        lines += ["", *(_colored(stream, line) for line in diff.text)]
    mark = stream.mark("fail" if diff.refusal else "ok")
    lines += ["", f"required: {diff.required} {dot} taken: {diff.taken or 'none'} {mark}"]
    if diff.old.manifest.uri.version.major == 0 and diff.required != "none":
        lines.append(f"  {BELOW_1}")
    if diff.refusal:
        lines += [f"  {safe(diff.refusal.message)}", f"  fix: {safe(diff.refusal.fix)}"]
    return lines


def _line(stream: Stream, change: Change, difference: Difference) -> str:
    """Return the row of one change: mark, SemVer step, text; red for security."""
    conflict = difference.schema_conflict and change.rule is Rule.SCHEMA_INCOMPATIBLE
    mark = stream.mark("fail" if conflict else "warn" if change.rule.risk else "plan")
    red = "red" if conflict or change.rule.risk else None
    step = str(change.rule.step).ljust(5)
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


async def _file_texts(app: App, before: Side, after: Side, most: int) -> list[str]:
    """The unified diffs of the files that changed, as far as they are texts and can be had."""
    sides = [{file.path: file for file in side.manifest.resources} for side in (before, after)]
    paths = [x for x in dict.fromkeys([*sides[0], *sides[1]]) if sides[0].get(x) != sides[1].get(x)]
    wanted = [[side[path] for path in paths if path in side] for side in sides]
    old, new = [await _bytes_of(app, *pair) for pair in zip((before, after), wanted, strict=True)]
    lines: list[str] = []
    for path in paths:
        was, now = [
            side.get(path, b"").decode(errors="replace").splitlines() for side in (old, new)
        ]
        if any(b"\0" in side.get(path, b"") for side in (old, new)):
            lines.append(f"--- {path}: not a text")
        elif len(was) + len(now) + len(lines) > most:
            lines.append(f"--- {path}: too long to be compared here")
        else:
            lines += unified_diff(was, now, path, path, lineterm="")
    return lines


async def _bytes_of(app: App, side: Side, resources: Sequence[Resource]) -> dict[str, bytes]:
    """The files of a side: of a release those on IPFS, of a package on disk those beside it."""
    if not _is_file(side.source):
        return await get_files(app, resources)
    from capdex_publisher.authoring.files import folder_of, read_files

    folder = folder_of(None if side.source == "-" else Path(side.source))
    return read_files(resources, folder).require(side.source, folder)


def _colored(stream: Stream, line: str) -> str:
    shown = safe(line)
    if line.startswith(("+++", "---")):
        return stream.style(shown, bold=True)
    return stream.style(shown, {"+": "green", "-": "red", "@": "cyan"}.get(line[:1]))
