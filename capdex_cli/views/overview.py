"""A name at one look: what it does, its tools, what it may do, its owner and its versions."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from capdex.diff.semver_step import taken_step
from capdex.errors import InvalidInput
from capdex.json import Json, list_of, object_of
from capdex.manifest.bindings.contacts import contacts, party
from capdex.version import Version
from capdex_cli.terminal.output import Stream
from capdex_cli.terminal.text import clip, columns, number_of, safe, size
from capdex_cli.views.release import mark, part, rows_of, summary_of

if TYPE_CHECKING:
    from capdex.manifest.manifest import Manifest

WIDTH: Final = 88
MAX_TOOLS: Final = 20
MAX_FILES: Final = 40
MAX_DESCRIPTION_CHARS: Final = 1_000


def package_json(manifest: Manifest) -> Json:
    """Return tools of a package, one line each, permissions, whom it contacts, and its files."""
    return {
        "tools": [
            {"name": x.name, "description": _one_line(x.description)} for x in manifest.tools
        ],
        "permissions": list(manifest.permissions),
        "contacts": list(contacts(manifest.bindings)),
        "unbound": list(manifest.unbound),
        "files": [x.to_json() | {"may_run": x.may_run} for x in manifest.resources],
    }


def overview(
    stream: Stream, latest: Json, package: Json | None, standing: Json | None
) -> list[str]:
    """Return the lines about a name's latest release, and about who owns the name."""
    about = object_of(latest.get("acp_metadata"))
    version = safe(latest.get("semver", "?"))
    title = f"{stream.style(safe(about.get('name') or '?'), bold=True)} {version}"
    lines = [f"{title}  {summary_of(latest)}".rstrip()]
    text = _one_line(about.get("description"))[:MAX_DESCRIPTION_CHARS]
    if text and text != summary_of(latest):
        lines += ["", *textwrap.wrap(text, WIDTH)]
    rows: list[tuple[str, str]] = [
        ("licence", safe(about.get("license") or "not stated")),
        ("tags", _listed(about.get("tags"))),
        ("homepage", safe(about.get("homepage") or "")),
        ("source", safe(about.get("repository") or "")),
    ]
    if package is not None:
        rows.append(("permissions", _listed(package["permissions"]) or "none"))
        rows.append(("contacts", _listed([*map(party, package["contacts"])]) or "no host"))
        rows.append(("not run", _listed(package["unbound"])))
    rows += rows_of(standing) if standing is not None else []
    if standing is not None and standing["maintainers"] == []:
        rows.append(("maintainers", "none" if standing["renounced"] else "none beside the owner"))
    lines += ["", *columns([row for row in rows if row[1]], indent=0)]
    if package is not None:
        lines += ["", *_tools(stream, package["tools"])]
        lines += ["", *_files(stream, package["files"])] if package["files"] else []
    return [*lines, ""]


def versions(
    stream: Stream, shown: Sequence[Json], whys: Iterable[str], owner: object
) -> list[tuple[str, ...]]:
    """Return a row for each release; its publisher is told if it is not `owner`, or the first."""
    owner = owner or (part(shown[0], "chain", "publisher") if shown else None)
    return [
        (
            stream.style(safe(new.get("semver", "?")), bold=True),
            _step(new, before),
            _date(new),
            mark(stream, new),
            safe(new.get("availability") or "") if part(new, "verification", "verdict") else "",
            "latest" if new.get("latest") is True else "",
            why
            if (by := part(new, "chain", "publisher")) in (None, owner)
            else f"by {safe(by)} {why}",
        )
        for new, before, why in zip_longest(shown, shown[1:], whys)
    ]


def _tools(stream: Stream, tools: Sequence[Json]) -> list[str]:
    dots = "…" if stream.unicode else "..."
    rows = [
        (stream.style(safe(tool["name"]), bold=True), clip(safe(tool["description"]), 72, dots))
        for tool in tools[:MAX_TOOLS]
    ]
    more = [f"  {dots} and {len(tools) - MAX_TOOLS} more"] if len(tools) > MAX_TOOLS else []
    return [number_of(len(tools), "tool"), *columns(rows), *more]


def _files(stream: Stream, files: Sequence[Json]) -> list[str]:
    dots = "…" if stream.unicode else "..."
    rows = []
    for file in files[:MAX_FILES]:
        runs = "may be run" if file["may_run"] else ""
        rows.append((safe(file["path"]), size(file["size"]), safe(file["media_type"]), runs))
    whole = size(sum(x["size"] for x in files))
    more = [f"  {dots} and {len(files) - MAX_FILES} more: --json"] if len(files) > MAX_FILES else []
    return [f"{number_of(len(files), 'file')}, {whole}", *columns(rows), *more]


def _step(release: Json, before: Json | None) -> str:
    """Return the SemVer step from the version before; empty for the first, and for no version."""
    if before is None:
        return ""
    try:
        old, new = (Version.parse(str(x.get("semver"))) for x in (before, release))
    except InvalidInput:
        return ""
    return str(taken_step(old, new)) if old < new else ""


def _date(release: Json) -> str:
    seconds = part(release, "chain", "timestamp")
    if not isinstance(seconds, int) or not 0 < seconds < 1 << 36:
        return ""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def _one_line(text: object) -> str:
    return safe(" ".join(str(text or "").split()))


def _listed(values: object) -> str:
    return ", ".join(map(safe, list_of(values)))
