"""What machines read of the explorer: badges, the sitemap, and what crawlers may fetch."""

from __future__ import annotations

import string
from typing import Final
from xml.etree.ElementTree import Element, SubElement, tostring

from explorer.site import PageRequest, Site, not_found
from explorer.views.badge import badge_svg
from explorer.views.verdicts import badge_of
from mcp_service.queries.names import names_like
from mcp_service.queries.releases import find_release

FIRST: Final = string.ascii_lowercase + string.digits  # of names
MAX_NAMES: Final = 50_000  # of one sitemap (https://www.sitemaps.org/protocol.html)
_SITEMAP: Final = "http://www.sitemaps.org/schemas/sitemap/0.9"


async def badge(site: Site, request: PageRequest) -> bytes:
    """Return the badge of a name or release as SVG; raises InvalidInput NOT_FOUND."""
    found = await find_release(site.reader, request.parts["name"], request.parts.get("version"))
    release = found.json["release"]
    flag = " yanked" if release["status"]["yanked"] else ""
    svg = badge_svg(release["name"], badge_of(release), release["semver"] + flag)
    return svg.encode("utf-8")


async def sitemaps(site: Site, request: PageRequest) -> bytes:
    """Return the index of the sitemaps, one for each first character of a name."""
    root = Element("sitemapindex", xmlns=_SITEMAP)
    for first in FIRST:
        if await names_like(site.reader, first, 1):
            entry = SubElement(root, "sitemap")
            SubElement(entry, "loc").text = f"{request.base}/sitemap/{first}.xml"
    return bytes(tostring(root, "utf-8", xml_declaration=True))


async def sitemap(site: Site, request: PageRequest) -> bytes:
    """Return the sitemap of the listed names that begin with a character."""
    first = request.parts["first"]
    if len(first) != 1 or first not in FIRST:
        raise not_found("there is no such sitemap", "see /sitemap.xml")
    root = Element("urlset", xmlns=_SITEMAP)
    for name in await names_like(site.reader, first, MAX_NAMES):
        SubElement(SubElement(root, "url"), "loc").text = f"{request.base}/c/{name}"
    return bytes(tostring(root, "utf-8", xml_declaration=True))


async def robots(site: Site, request: PageRequest) -> bytes:
    """Return what crawlers may fetch: all but the pages that are made for one question."""
    kept_out = ("/search", "/triggers", "/try", "/v1/", "/v0.1/", "/mcp", "/ipfs/", "/c/*/diff")
    lines = ["User-agent: *", *(f"Disallow: {path}" for path in kept_out)]
    return "\n".join([*lines, f"Sitemap: {request.base}/sitemap.xml", ""]).encode("utf-8")
