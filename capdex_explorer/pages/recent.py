"""Releases and names in an order: as pages, and as Atom feeds (RFC 4287)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final
from xml.etree.ElementTree import Element, SubElement, tostring

from capdex.errors import InvalidInput
from capdex.json import Json
from capdex_explorer.pages.growth import add_growth
from capdex_explorer.site import PageRequest, Site, View, account_in
from capdex_explorer.views.text import visible
from capdex_explorer.views.verdicts import about_of, badge_of, marks_of, title_of
from capdex_indexer.query.catalog import LISTED_BY
from capdex_indexer.query.history import read_name_history
from capdex_service.queries.releases import find_release, listed_by, newest_releases

NEWEST: Final = 30  # on a page
_ATOM: Final = "http://www.w3.org/2005/Atom"


async def recent(site: Site, request: PageRequest) -> View:
    """Show the newest releases; a script adds those that come while the page is open."""
    before = request.number("before", 0) or None
    releases = await site.reader.read(newest_releases, site.reader, NEWEST + 1, None, before)
    end = str(releases[NEWEST - 1]["chain"]["sequence"]) if len(releases) > NEWEST else None
    await add_growth(site, releases[:NEWEST])
    data = {
        "releases": releases[:NEWEST],
        "first": before and request.address(before=None),
        "after": end and request.address(before=end),
    }
    return View("recent.html", "Newest releases", data, feed="/feed.atom")


async def names_in_order(
    site: Site, request: PageRequest, facet: tuple[str, str] | None = None
) -> Json:
    """Return the page of listed names that a request asks for, in one of several orders.

    With `facet`, a key and a value, those that have it. Raises InvalidInput for another order.
    """
    order = request.text("sort", "newest")
    if order not in LISTED_BY:
        raise InvalidInput(f"sort is one of {', '.join(LISTED_BY)}")
    after = request.text("after")
    data = await site.reader.read(listed_by, site.reader, order, NEWEST, after, facet)
    await add_growth(site, data["releases"])
    return data | {
        "sort": order,
        "orders": {x: request.address(sort=x, after=None) for x in LISTED_BY},
        "first": request.address(after=None) if after else None,
        "after": data["following"] and request.address(after=data["following"]),
    }


async def feed(site: Site, request: PageRequest) -> bytes:
    """Return the feed of the newest served releases: of all, or of a name or account in the path.

    Raises InvalidInput, NOT_FOUND for a name without a release.
    """
    of, title, page = next(iter(request.parts.items()), None), "newest releases", "/recent"
    if of is not None and of[0] == "name":
        await site.reader.read(find_release, site.reader, of[1])
        title, page = of[1], f"/c/{of[1]}"
    elif of is not None:
        account = account_in(of[1])
        if account is None:
            raise InvalidInput("only accounts have a feed", fix="write 0x and 40 digits")
        of, title, page = ("publisher", account), f"publications of {account}", f"/p/{account}"
    releases = await site.reader.read(newest_releases, site.reader, NEWEST, of)
    await add_growth(site, releases)
    times = [await _updated_at(site, x) for x in releases]
    root = Element("feed", xmlns=_ATOM)
    SubElement(root, "title").text = f"capdex: {title}"
    SubElement(root, "id").text = f"{request.base}{request.path}"
    SubElement(root, "link", rel="self", href=f"{request.base}{request.path}")
    SubElement(root, "link", rel="alternate", href=f"{request.base}{page}")
    SubElement(root, "updated").text = _time(max(times, default=0))
    for release, at in zip(releases, times, strict=True):
        element, given = SubElement(root, "entry"), title_of(release)
        words = ", ".join([badge_of(release).word, *(mark.words for mark in marks_of(release))])
        about = f"{words}. From the publisher: {visible(about_of(release))}"[:500]
        titled = f"{given and given + ': '}{release['name']} {release['semver']}"
        address = f"{request.base}/c/{release['name']}/{release['semver']}"
        SubElement(element, "title").text = visible(titled)
        SubElement(element, "id").text = release["cap_uri"]
        SubElement(element, "link", rel="alternate", href=address)
        SubElement(element, "updated").text = _time(at)
        SubElement(SubElement(element, "author"), "name").text = release["chain"]["publisher"]
        SubElement(element, "summary").text = visible(about)
    return bytes(tostring(root, "utf-8", xml_declaration=True))


async def _updated_at(site: Site, release: Json) -> float:
    """Return when a release was published, or when it or its name was deprecated after that."""
    at, status = float(release["chain"]["timestamp"]), release["status"]
    if not status["deprecated"] and not status["name_deprecated"]:
        return at
    events = await site.reader.read(read_name_history, release["name"], None)
    of_it = (x for x in events if x["semver"] in (None, release["semver"]))
    return max([at, *(float(x["timestamp"]) for x in of_it if x["kind"] == "deprecated")])


def _time(epoch_s: float) -> str:
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
