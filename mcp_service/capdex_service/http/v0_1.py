"""The pages of `/v0.1/servers`: the API of MCP registries, read-only, over the same index.

Clients of the official MCP registry (API v0.1) read a node unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Final

from starlette.routing import BaseRoute, Route

from capdex.errors import InvalidInput
from capdex_indexer.query.catalog import BoundReleases
from capdex_service.answers.rendered import Answer
from capdex_service.answers.server_json import BINDING, server_name
from capdex_service.http.pages import Page
from capdex_service.http.parameters import Parameters, choice, number, read_parameters
from capdex_service.queries.reader import Reader
from capdex_service.queries.servers import DEFAULT_PAGE, Servers

LIST: Final = ("search", "version", "updated_since", "include_deleted", "limit", "cursor")
MAX_SEARCH_CHARS: Final = 200  # as long as a name can be


def read_list(query: bytes) -> tuple[BoundReleases, int, str | None]:
    """Read the query string of the list: what `Servers.list_page` takes; raises InvalidInput."""
    given = read_parameters(query, LIST)
    search = given.get("search", "")
    if len(search) > MAX_SEARCH_CHARS:
        what = f"search has more than {MAX_SEARCH_CHARS} characters"
        raise InvalidInput(what, fix="give fewer words")
    since = _time(given["updated_since"]) if "updated_since" in given else None
    deleted = _deleted(given)
    if since is not None and given.get("include_deleted") == "false":
        what = "with updated_since, deleted servers are included"
        raise InvalidInput(what, fix="leave include_deleted out")
    version = given.get("version") or None
    wanted = BoundReleases(
        BINDING,
        prefix=server_name(""),
        search=search,
        semver=None if version == "latest" else version,
        latest=version == "latest",
        yanked=since is not None or deleted,
        since=since,
    )
    return wanted, number(given, "limit", DEFAULT_PAGE), given.get("cursor") or None


def build_routes(reader: Reader) -> list[BaseRoute]:
    """Return the routes of the list, of a server's versions, and of one version."""
    servers = Servers(reader)

    async def find(_: Reader, query: bytes) -> Answer:
        return await reader.run(servers.list_page, *read_list(query), long=True)

    path = "/v0.1/servers/{server:path}/versions"
    return [
        Route("/v0.1/servers", Page(reader, find), methods=["GET"]),
        Route(f"{path}/{{version}}", _page_of(reader, servers.version), methods=["GET"]),
        Route(path, _page_of(reader, servers.versions), methods=["GET"]),
    ]


def _page_of(reader: Reader, ask: Callable[..., Answer]) -> Page:
    """Return the page of a question that also depends on the parameters of its path."""

    async def question(_: Reader, query: bytes, **path: str) -> Answer:
        deleted = _deleted(read_parameters(query, ("include_deleted",)))
        return await reader.run(partial(ask, **path, deleted=deleted), long=True)

    return Page(reader, question)


def _deleted(given: Parameters) -> bool:
    return choice(given, "include_deleted", ("true", "false"), "false") == "true"


def _time(text: str) -> int:
    """Return the epoch second of an RFC 3339 time; raises InvalidInput."""
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is None or "T" not in text.upper():
            raise ValueError("no time zone")
        return int(time.astimezone(UTC).timestamp())
    except (ValueError, OverflowError):
        raise InvalidInput(
            "updated_since is not a time of RFC 3339", fix="write 2026-11-23T12:00:00Z"
        ) from None
