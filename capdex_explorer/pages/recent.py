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
    return atom(request, f"capdex: {title}", page, [_entry(x) for x in releases])


def atom(request: PageRequest, title: str, page: str, entries: list[Json]) -> bytes:
    """Return an Atom document; entries have title, address, summary, author and time."""
    feed = Element("feed", xmlns=_ATOM)
    SubElement(feed, "title").text = visible(title)
    SubElement(feed, "id").text = f"{request.base}{request.path}"
    SubElement(feed, "link", rel="self", href=f"{request.base}{request.path}")
    SubElement(feed, "link", rel="alternate", href=f"{request.base}{page}")
    SubElement(feed, "updated").text = _time(max((x["at"] for x in entries), default=0))
    for entry in entries:
        element = SubElement(feed, "entry")
        SubElement(element, "title").text = visible(entry["title"])
        SubElement(element, "id").text = entry["id"]
        SubElement(element, "link", rel="alternate", href=f"{request.base}{entry['address']}")
        SubElement(element, "updated").text = _time(entry["at"])
        SubElement(SubElement(element, "author"), "name").text = visible(entry["author"])
        SubElement(element, "summary").text = visible(entry["summary"])
    return bytes(tostring(feed, "utf-8", xml_declaration=True))


def _entry(release: Json) -> Json:
    words = [badge_of(release).word, *(mark.words for mark in marks_of(release))]
    title = title_of(release)
    return {
        "id": release["cap_uri"],
        "title": f"{title and title + ': '}{release['name']} {release['semver']}",
        "address": f"/c/{release['name']}/{release['semver']}",
        "summary": f"{', '.join(words)}. From the publisher: {visible(about_of(release))}"[:500],
        "author": release["chain"]["publisher"],
        "at": release["chain"]["timestamp"],
    }


def _time(epoch_s: float) -> str:
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
