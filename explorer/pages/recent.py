"""Releases in the order of their publication: as a page, and as Atom feeds (RFC 4287)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final
from xml.etree.ElementTree import Element, SubElement, tostring

from capdex.errors import InvalidInput
from explorer.site import Json, PageRequest, Site, View
from explorer.views.text import visible
from explorer.views.verdicts import badge_of
from mcp_service.queries.releases import find_release, newest_releases

NEWEST: Final = 30
_ATOM: Final = "http://www.w3.org/2005/Atom"


async def recent(site: Site, request: PageRequest) -> View:
    """Show the newest releases; a script adds those that come while the page is open."""
    data = {"releases": await newest_releases(site.reader, NEWEST)}
    return View("recent.html", "Newest releases", data, feed="/feed.atom")


async def feed_of_all(site: Site, request: PageRequest) -> bytes:
    """Return the feed of the newest releases."""
    found = await newest_releases(site.reader, NEWEST)
    return atom(request, "capdex: newest releases", "/recent", [_entry(x) for x in found])


async def feed_of_name(site: Site, request: PageRequest) -> bytes:
    """Return the feed of a name; raises InvalidInput NOT_FOUND."""
    name = request.parts["name"]
    await find_release(site.reader, name)
    found = await newest_releases(site.reader, NEWEST, ("name", name))
    return atom(request, f"capdex: {name}", f"/c/{name}", [_entry(x) for x in found])


async def feed_of_publisher(site: Site, request: PageRequest) -> bytes:
    """Return the feed of the newest served releases of an account."""
    who = request.parts["who"]
    if not who.startswith("0x"):
        raise InvalidInput("only accounts have a feed", fix="write 0x and 40 digits")
    found = await newest_releases(site.reader, NEWEST, ("publisher", who))
    entries = [_entry(x) for x in found]
    return atom(request, f"capdex: publications of {who}", f"/p/{who}", entries)


def atom(request: PageRequest, title: str, page: str, entries: list[Json]) -> bytes:
    """Return an Atom document; entries have title, address, summary, author and time."""
    feed = Element("feed", xmlns=_ATOM)
    SubElement(feed, "title").text = visible(title)
    SubElement(feed, "id").text = f"{request.base}{request.path}"
    SubElement(feed, "link", rel="self", href=f"{request.base}{request.path}")
    SubElement(feed, "link", rel="alternate", href=f"{request.base}{page}")
    SubElement(feed, "updated").text = _time(max((x["at"] for x in entries), default=0))
    for one in entries:
        entry = SubElement(feed, "entry")
        SubElement(entry, "title").text = visible(one["title"])
        SubElement(entry, "id").text = f"{request.base}{one['address']}"
        SubElement(entry, "link", rel="alternate", href=f"{request.base}{one['address']}")
        SubElement(entry, "updated").text = _time(one["at"])
        SubElement(SubElement(entry, "author"), "name").text = visible(one["author"])
        SubElement(entry, "summary").text = visible(one["summary"])
    return bytes(tostring(feed, "utf-8", xml_declaration=True))


def _entry(release: Json) -> Json:
    about = release["acp_metadata"] or {}
    summary = about.get("summary") or about.get("description") or ""
    return {
        "title": f"{release['name']} {release['semver']}",
        "address": f"/c/{release['name']}/{release['semver']}",
        "summary": f"{badge_of(release).word}: {' '.join(str(summary).split())}"[:500],
        "author": release["chain"]["publisher"],
        "at": release["chain"]["timestamp"],
    }


def _time(epoch_s: float) -> str:
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
