"""The versions of a name, what differs between two of them, and what happened on chain."""

from __future__ import annotations

from difflib import unified_diff
from itertools import accumulate, takewhile
from typing import Final

from capdex.diff.change import Change
from capdex.diff.diff import compare
from capdex.diff.semver_step import taken_step
from capdex.errors import InvalidInput
from capdex.json import Json
from capdex.manifest.manifest import Manifest
from capdex.problems import Availability
from capdex.version import Version
from capdex_explorer.pages.growth import MAX_MESSAGE_CHARS, MORE, add_growth
from capdex_explorer.pages.package import open_page
from capdex_explorer.site import PageRequest, Site, View, not_found, release_tag
from capdex_explorer.views.text import cut
from capdex_indexer.query.history import read_block_history, read_name_history
from capdex_service.queries.history import chain_events
from capdex_service.queries.releases import list_versions, open_release

PAGE: Final = 100  # versions
EVENTS: Final = 30  # on a page; fewer than are read, so that it is known whether more follow
MAX_LINES: Final = 1500  # of each file: lining up more takes longer than a page may
MAX_LINE_CHARS: Final = 400
MAX_DIFF_CHARS: Final = 30_000  # of the changed lines, with those around them
LINE_CHARS: Final = 60  # that a line takes besides its text
MAX_CHANGES: Final = 150


async def versions(site: Site, request: PageRequest) -> View:
    """Show the versions of a name with their steps."""
    name, page = request.parts["name"], request.number("page", 1, 10**6)
    shown, head = await open_page(
        site, request, "versions", lambda x: list_versions(x, site.reader, name, PAGE, page)
    )
    rows, total = shown.more, head["versions"]
    releases = rows[:PAGE]
    if not releases:
        raise not_found(f"{name} has no page {page} of versions", "see the first page")
    await add_growth(site, releases)
    for at, release in enumerate(releases, 1):
        lower = rows[at:] if _is_served(site, release) else ()
        before = next((x for x in lower if _is_served(site, x)), None)
        release["step"] = release["before"] = None
        if before is not None:
            old, new = Version.parse(before["semver"]), Version.parse(release["semver"])
            release |= {"step": str(taken_step(old, new)), "before": before["semver"]}
    listed = {"releases": releases, "total": total, "page": page, "pages": -(-total // PAGE)}
    return _view("versions.html", f"Versions of {name}", head | {"listed": listed})


async def history(site: Site, request: PageRequest) -> View:
    """Show the events of a name."""
    name = request.parts["name"]
    before = request.before_event()
    shown, head = await open_page(
        site, request, "history", lambda x: chain_events(x, read_name_history, name, before)
    )
    data = head | shown.more | request.events_page(shown.more["events"], EVENTS)
    return _view("history.html", f"History of {name}", data)


async def block(site: Site, request: PageRequest) -> View:
    """Show the events of a block."""
    text = request.parts["number"]
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise not_found(f"{text[:40]} is not a block number")
    number, first = int(text), request.number("from", 0)
    data = await site.reader.read(chain_events, read_block_history, number, first)
    data |= {"number": number, "first": first}
    return View("block.html", f"Block {number}", data)


async def diff(site: Site, request: PageRequest) -> View:
    """Show what changed from one version of a name to another."""
    name = request.parts["name"]
    shown, head = await open_page(
        site, request, "versions", lambda x: list_versions(x, site.reader, name, PAGE)
    )
    old, new = request.text("old"), request.text("new")
    data = head | {"old": old, "new": new, "difference": None}
    if old and new:
        sides = [
            await site.reader.read(open_release, site.reader, name, version, long=True)
            for version in (old, new)
        ]
        manifests = [side.manifest for side in sides if side.manifest is not None]
        if len(manifests) < 2:
            raise InvalidInput(
                "this node does not serve one of the two versions",
                fix="choose verified versions",
            )
        files = [side.data or b"" for side in sides]
        data["difference"] = await site.reader.run(_compare, *manifests, *files, long=True)
    held = [x["semver"] for x in shown.more if _is_served(site, x)]
    data["choices"] = [*held, *dict.fromkeys(x for x in (new, old) if x and x not in held)]
    return _view("diff.html", f"{name}: {old} to {new}" if new else f"Compare {name}", data)


def _view(template: str, title: str, data: Json) -> View:
    release = data["release"]
    feed = f"/c/{release['name']}/feed.atom"
    return View(template, title, data, feed=feed, cache_tag=release_tag(release))


def _is_served(site: Site, release: Json) -> bool:
    """Return whether this node serves the file of a release, so that it can be compared."""
    served = release["verification"]["verdict"] in site.reader.serve and not release["denied"]
    return served and release["availability"] == Availability.AVAILABLE


def _compare(old: Manifest, new: Manifest, was: bytes, now: bytes) -> Json:
    """Return the changes of meaning, the steps required and taken, and the changed lines."""
    difference = compare(old, new)
    before, after = old.uri.version, new.uri.version
    first, second = (data.decode("utf-8").split("\n") for data in (was, now))
    text = None
    if max(len(first), len(second)) <= MAX_LINES:
        lines = unified_diff(first, second, str(before), str(after), lineterm="")
        text = [cut(line, MORE, MAX_LINE_CHARS) for line in lines][2:]
    lengths = accumulate(len(line) + LINE_CHARS for line in text or ())
    shown = sum(1 for _ in takewhile(lambda length: length <= MAX_DIFF_CHARS, lengths))
    return {
        "changes": [_shown(change) for change in difference.changes[:MAX_CHANGES]],
        "more_changes": max(0, len(difference.changes) - MAX_CHANGES),
        "risks": [_shown(change) for change in difference.risks[:MAX_CHANGES]],
        "more_risks": max(0, len(difference.risks) - MAX_CHANGES),
        "required": str(difference.required_after(before, after)) if after > before else None,
        "taken": str(taken_step(before, after)) if after > before else None,
        "schema_conflict": difference.schema_conflict,
        "text": text and text[:shown],
        "cut": text is not None and len(text) > shown,
    }


def _shown(change: Change) -> Json:
    """Return the part of a change that a page shows."""
    fields = change.to_json()
    return {
        "path": cut(fields["path"], MORE, MAX_MESSAGE_CHARS),
        "step": fields["step"],
        "message": cut(fields["message"], MORE, MAX_MESSAGE_CHARS),
    }
