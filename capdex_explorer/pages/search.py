"""Pages that list capabilities: search, what would be triggered, home, domains and tags."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from capdex.errors import InvalidInput
from capdex.json import Json
from capdex.manifest.metadata import DOMAINS
from capdex.uri import CapabilityURI
from capdex.version import Version
from capdex_explorer.pages.growth import add_growth
from capdex_explorer.pages.publisher import is_publisher
from capdex_explorer.pages.recent import names_in_order
from capdex_explorer.site import PageRequest, Site, View, address_of, is_uri
from capdex_explorer.views.snippets import connections
from capdex_explorer.views.text import name_of
from capdex_indexer.query.search.filters import FILTER_NAMES, NOT
from capdex_service.queries.names import names_like
from capdex_service.queries.releases import find_by_hash, find_release, lineages, listed_by
from capdex_service.queries.route import route
from capdex_service.queries.search import FACETS, SearchRequest, explained_search, search

PAGE: Final = 10
NEWEST: Final = 8
ROUTES: Final = 10
SUGGESTED: Final = 6
WEAK_SIMILARITY: Final = 0.3  # of a hit without a word of the query; the least is 0.15
EXAMPLES: Final = (
    "what is the weather in Oslo tomorrow",
    "convert miles to kilometres",
    "how much is 50 euros in yen",
)


async def home(site: Site, request: PageRequest) -> View:
    """Show what this is for, how an agent is connected, and the newest names."""
    answer = await _find(site, {"query_string": "", "facets": ["domain", "tag"], "limit": 1})
    read = site.reader.read
    lists = [await read(listed_by, site.reader, x, NEWEST) for x in ("newest", "votes")]
    newest, voted = (x["releases"] for x in lists)
    await add_growth(site, [*newest, *voted])
    data = {
        "newest": newest,
        "voted": voted,
        "connections": connections(request.base),
        "facets": answer["facets"],
        "total": answer["total"],
        "examples": list(EXAMPLES),
        "as_of": answer["as_of"],
    }
    description = "Find capabilities for AI agents, and see where every byte of them comes from."
    return View("home.html", "capdex", data, description=description, feed="/feed.atom")


async def results(site: Site, request: PageRequest) -> View:
    """Show the hits of a search with the reasons why they are hits."""
    query = request.text("q")
    chosen, without = (
        {x: list(values) for x in FILTER_NAMES if (values := request.values(prefix + x))}
        for prefix in ("", f"{NOT}.")
    )
    wanted: dict[str, Any] = {
        "query_string": query,
        "filters": chosen | ({NOT: without} if without else {}),
        "facets": list(FACETS),
        "limit": PAGE,
        "cursor": request.text("cursor") or None,
    }
    answer, corrected = await explained_search(site.reader, SearchRequest.parse(wanted))
    found = answer.to_json()
    hits, following = found["list_of_results"], found["next_cursor"]
    near = await names_like(site.reader, query[:3], SUGGESTED) if query and not hits else ()
    data = found | {
        "query": query,
        "chosen": chosen,
        "without": without,
        "corrected": {word: list(instead) for word, instead in corrected.items()},
        "suggested": [name for name in near if not site.reader.like(name)],
        "named": await _page_named(site, query),
        "first": request.address(cursor=None) if wanted["cursor"] else None,
        "next": request.address(cursor=following) if following else None,
        "filters": [
            {"name": words + name, "value": x, "address": _toggled(request, key + name, values, x)}
            for key, groups, words in (("", chosen, ""), (f"{NOT}.", without, "not "))
            for name, values in groups.items()
            for x in values
        ],
        "domain": query.lower() if query.lower() in DOMAINS else None,
    }
    _add_addresses(data, request)
    await _add_lineage(site, hits)
    for hit in hits:
        similarity = (hit.get("why") or {}).get("similarity") or 1.0
        hit["related"] = bool(query) and not hit["matched"] and similarity < WEAK_SIMILARITY
    hits.sort(key=lambda hit: bool(hit["related"]))
    return View("search.html", f"{query}: search" if query else "Search", data, feed="/feed.atom")


async def triggered(site: Site, request: PageRequest) -> View:
    """Show the capabilities that a message would bring up."""
    message = request.text("message")
    data: Json = {"message": message, "answer": None}
    if message:
        data["answer"] = (await route(site.reader, message, ROUTES)).to_json()
        await _add_lineage(site, data["answer"]["list_of_results"])
    return View("triggered.html", "Would it trigger?", data)


async def browse(site: Site, request: PageRequest) -> View:
    """Show the listed names in an order, and the domains, tags and languages with most of them."""
    answer = await _find(site, {"query_string": "", "facets": list(FACETS), "limit": 1})
    data = {"names": await names_in_order(site, request), "facets": answer["facets"], "chosen": {}}
    _add_addresses(data, replace(request, path="/search", query={}))
    return View("browse.html", "Browse", data, feed="/feed.atom")


async def _page_named(site: Site, query: str) -> str | None:
    """Return the address of the page that a query names by URI, CID, sha256, account or DID."""
    if found := await find_by_hash(site.reader, query):
        return address_of(CapabilityURI.parse(found.cap_uri))
    if is_uri(query):
        try:
            uri = CapabilityURI.loose(query)
            exact = str(uri.selector) if isinstance(uri.selector, Version) else None
            await site.reader.read(find_release, site.reader, uri.name, exact)
        except InvalidInput:
            return None
        return address_of(uri)
    return f"/p/{quote(query, safe=':')}" if is_publisher(query) else None


async def _add_lineage(site: Site, hits: list[Json]) -> None:
    """Add to each hit of a search what its name is like, and what is new in it."""
    lines = await site.reader.read(lineages, site.reader, [(name_of(x), x["semver"]) for x in hits])
    for hit, line in zip(hits, lines, strict=True):
        hit |= line
    await add_growth(site, hits)


async def _find(site: Site, wanted: Json) -> Json:
    return (await search(site.reader, SearchRequest.parse(wanted))).to_json()


def _add_addresses(data: Json, request: PageRequest) -> None:
    """Add to each value of a facet the address of the search with it, or without it."""
    for name, values in data["facets"].items():
        chosen = data["chosen"].get(name, [])
        for choice in values:
            choice["chosen"] = choice["value"] in chosen
            choice["address"] = _toggled(request, name, chosen, choice["value"])


def _toggled(request: PageRequest, key: str, chosen: list[str], value: str) -> str:
    """Return the address of a search with a filter, or without it where it is chosen."""
    after = [x for x in chosen if x != value] if value in chosen else [*chosen, value]
    return request.address(cursor=None, **{key: after})


async def of_value(key: str, site: Site, request: PageRequest) -> View:
    """Show the capabilities of one domain, or with one tag: `key` is the facet."""
    value = request.parts["value"]
    names = await names_in_order(site, request, (key, value))
    data = {"names": names, "key": key, "value": value}
    title = f"{key.capitalize()} {value}"
    return View("value.html", title, data, status=200 if names["total"] else 404)
