"""Releases as entries of an MCP registry: server.json and the registry's own metadata.

The shapes are those of the official MCP registry's API v0.1 (docs/reference/api/openapi.yaml and
server.schema.json 2025-12-11). Only packages with a binding to an MCP service have an entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

from capdex.errors import Code, InvalidInput
from capdex.json import Json
from capdex.uri import CapabilityURI, check_name
from capdex.yaml.characters import beginning, is_blank
from capdex_indexer.query.release import IndexedRelease
from capdex_service.answers.release import file_of

NAMESPACE: Final = "did.nuwa.cap"  # `/` and the name of the capability follow
BINDING: Final = "mcp_service"
OFFICIAL: Final = "io.modelcontextprotocol.registry/official"
RELEASE: Final = f"{NAMESPACE}/release"
SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
MAX_WORDS: Final = 100  # characters of a title and of a description
MAX_MESSAGE: Final = 500

_FORGES: Final = {"github.com": "github", "gitlab.com": "gitlab"}


def server_name(name: str) -> str:
    """Return the name that a capability has as a server, in the form of reverse DNS."""
    return f"{NAMESPACE}/{name}"


def capability_uri(server: str, version: str) -> CapabilityURI:
    """Return the URI of a server's version or `latest`; raises InvalidInput NOT_FOUND."""
    namespace, _, name = server.partition("/")
    try:
        if namespace != NAMESPACE:
            raise InvalidInput(f"the servers here are named {NAMESPACE}/<name>", fix="name one so")
        uri = f"did:nuwa:cap:{check_name(name)}"
        exact = version != "latest"
        return CapabilityURI.exact(f"{uri}@{version}") if exact else CapabilityURI.parse(uri)
    except InvalidInput as error:
        raise not_found(server, error.message) from None


def not_found(server: str, why: str = "") -> InvalidInput:
    """Return the error for a server or version that has no entry."""
    what = f"there is no server {server[:200]!r} of that version"
    return InvalidInput(what, Code.NOT_FOUND, why, "list /v0.1/servers")


def server(release: IndexedRelease, document: Mapping[str, Any]) -> Json | None:
    """Return the server.json of a release; None if its package has no binding to an MCP service.

    `remotes` are the services at web addresses; those named by a DID, or by an argument of a call,
    are left out.
    """
    bindings = [
        binding
        for binding in (document.get("tool_bindings") or {}).values()
        if isinstance(binding, dict) and binding.get("type") == BINDING
    ]
    if not bindings:
        return None
    metadata = release.metadata or {}
    title = str(metadata.get("name") or "")
    says = metadata.get("summary") or metadata.get("description") or release.name
    entry: Json = {
        "$schema": SCHEMA,
        "name": server_name(release.name or ""),
        "title": _short(release.name if is_blank(title) else title),
        "description": _short(says),
        "version": release.semver,
    }
    urls = dict.fromkeys(str(binding.get("service_uri")) for binding in bindings)
    if remotes := [{"type": "streamable-http", "url": url} for url in urls if _is_remote(url)]:
        entry["remotes"] = remotes
    if repository := _repository(metadata.get("repository")):
        entry["repository"] = repository
    if isinstance(homepage := metadata.get("homepage"), str):
        entry["websiteUrl"] = homepage
    return entry


def response(entry: Json, release: IndexedRelease, changed_at: int) -> Json:
    """Return an entry with what the registry knows of it; `changed_at` is in epoch seconds.

    A yanked release is `deleted`. Beside the registry's own metadata is what a client needs to
    check the package: its URI, CID, sha256 and verdict.
    """
    status, message = _status(release)
    changed = {"status": status, "statusChangedAt": _time(changed_at)}
    if message:
        changed["statusMessage"] = message[:MAX_MESSAGE]
    times = {"publishedAt": _time(release.timestamp), "updatedAt": _time(changed_at)}
    official = changed | times | {"isLatest": release.latest}
    return {"server": entry, "_meta": {OFFICIAL: official, RELEASE: file_of(release)}}


def _status(release: IndexedRelease) -> tuple[str, str]:
    if release.yanked:
        return "deleted", release.yank_reason
    if release.deprecated:
        return "deprecated", release.deprecation_message
    if release.name_deprecated:
        instead = f"use {server_name(release.replaced_by)}" if release.replaced_by else ""
        return "deprecated", "; ".join(x for x in (release.name_message, instead) if x)
    return "active", ""


def _is_remote(url: str) -> bool:
    return url.startswith(("https://", "http://")) and "{" not in url and " " not in url


def _repository(url: object) -> Json | None:
    source = _FORGES.get(urlsplit(url).hostname or "") if isinstance(url, str) else None
    return {"url": url, "source": source} if source else None


def _short(text: object) -> str:
    words = " ".join(str(text).split())
    return words if len(words) <= MAX_WORDS else beginning(words, MAX_WORDS - 1).rstrip() + "…"


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
