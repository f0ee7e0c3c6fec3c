"""Releases as resources: templates, a list that does not grow, and the content of one.

`capdex://<name>` is the answer about the latest release (P15), and
`capdex://<name>/<version>/<part>` a part of its package; a version is exact or `latest`.
`capdex://registry/changes` has the names that changed last. Content
comes from the cached answers of `resolve_capability`, so it is verified and honours denials.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import mcp_types as types
import orjson

from capdex.errors import Code, InvalidInput
from capdex.profiles.cap import PACKAGE_TYPE, SCHEMA_TYPE
from capdex.uri import PREFIX, check_name
from capdex.version import Version
from capdex_service.queries.names import LATEST, newest_changes
from capdex_service.queries.reader import Reader
from capdex_service.queries.resolve import resolve

SCHEME: Final = "capdex://"
MAX_URI_CHARS: Final = 200  # of the longest name, version and part, and no more
JSON_TYPE: Final = "application/json"
PARTS: Final = {
    "package": (PACKAGE_TYPE, "the package file, byte for byte"),
    "prompt": ("text/markdown", "the prompt of the package"),
    "tools": (JSON_TYPE, "the tools of the package and their bindings"),
    "schema": (SCHEMA_TYPE, "the JSON Schema of the package's state"),
    "files": (JSON_TYPE, "the files that the package names, with CID, size and sha256"),
}
CHANGES: Final = SCHEME + "registry/changes"  # no name: "registry" is reserved
OF_NAME: Final = SCHEME + "{name}"
OF_RELEASE: Final = SCHEME + "{name}/{version}/"
FRESH_MS: Final = 10_000  # how long clients may keep what a publication can change
FOREVER_MS: Final = 86_400_000


_CHANGES: Final = types.Resource(
    uri=CHANGES,
    name="changes",
    title="What is new",
    description="the names that changed last; subscribe to follow everything new",
    mime_type=JSON_TYPE,
)
# The list does not grow with the registry.
RESOURCES: Final = types.ListResourcesResult(
    resources=[_CHANGES], ttl_ms=FOREVER_MS, cache_scope="public"
)
_CAPABILITY: Final = types.ResourceTemplate(
    name="capability",
    uri_template=OF_NAME,
    description="the latest release, as resolve_capability answers; subscribe to follow it",
    mime_type=JSON_TYPE,
)
_OF_PARTS: Final = [
    types.ResourceTemplate(
        name=part,
        uri_template=OF_RELEASE + part,
        description=f"{description}; version: 1.2.3 or {LATEST}",
        mime_type=mime_type,
    )
    for part, (mime_type, description) in PARTS.items()
]
TEMPLATES: Final = types.ListResourceTemplatesResult(
    resource_templates=[_CAPABILITY, *_OF_PARTS], ttl_ms=FOREVER_MS, cache_scope="public"
)


@dataclass(frozen=True, slots=True)
class ResourceUri:
    """A URI of ours: a name, or a part of a release, whose `version` is exact or `latest`."""

    name: str
    version: str = LATEST
    part: str | None = None

    @classmethod
    def parse(cls, text: str) -> ResourceUri:
        """Parse the URI of a resource; raises InvalidInput."""
        path = text.removeprefix(SCHEME)
        if len(text) > MAX_URI_CHARS or path == text:
            raise _unknown(text)
        match path.split("/"):
            case [name]:
                return cls(check_name(name))
            case [name, version, part] if part in PARTS:
                if version != LATEST:
                    version = str(Version.parse(version))
                return cls(check_name(name), version, part)
        raise _unknown(text)

    @property
    def cap_uri(self) -> str:
        """The capability URI of the release."""
        exact = "" if self.version == LATEST else f"@{self.version}"
        return f"{PREFIX}{self.name}{exact}"


async def read_resource(reader: Reader, text: str) -> types.ReadResourceResult:
    """Return the content of a resource, with the origin of package text in `_meta`.

    Raises the errors of `resolve`, and InvalidInput NOT_FOUND for a prompt that is not there.
    """
    if text == CHANGES:
        changes = await reader.read(newest_changes, reader)
        return _content(text, JSON_TYPE, orjson.dumps(changes).decode("utf-8"))
    uri = ResourceUri.parse(text)
    answer = await resolve(reader, uri.cap_uri, () if uri.part is None else (uri.part,))
    if uri.part is None:
        return _content(text, JSON_TYPE, answer.body.decode("utf-8"))
    release = answer.to_json()
    return _content(
        text,
        PARTS[uri.part][0],
        _part(release, uri.part),
        ttl_ms=FRESH_MS if uri.version == LATEST else FOREVER_MS,
        origin=origin(release),
    )


def origin(release: dict[str, Any]) -> dict[str, Any]:
    """Return where package text comes from, for `_meta`: of a release in an answer."""
    return {
        "capdex/cap_uri": release["cap_uri"],
        "capdex/sha256": release["sha256"],
        "capdex/cid": release["ipfs_cid"],
        "capdex/verdict": release["verification"]["verdict"],
        "capdex/signer": release["verification"]["signer"],
    }


def _part(release: dict[str, Any], part: str) -> str:
    if part == "tools":
        tools = {"tools": release["tools"], "tool_bindings": release["tool_bindings"]}
        return orjson.dumps(tools).decode("utf-8")
    if part in ("schema", "files"):
        return orjson.dumps(release[part]).decode("utf-8")
    if release[part] is None:
        what = f"{release['cap_uri']} has no {part}"
        raise InvalidInput(what, Code.NOT_FOUND, fix="read its package instead")
    return str(release[part])


def _content(
    uri: str,
    mime_type: str,
    text: str,
    *,
    ttl_ms: int = FRESH_MS,
    origin: dict[str, Any] | None = None,
) -> types.ReadResourceResult:
    content = types.TextResourceContents(uri=uri, mime_type=mime_type, text=text, _meta=origin)
    return types.ReadResourceResult(contents=[content], ttl_ms=ttl_ms, cache_scope="public")


def _unknown(text: str) -> InvalidInput:
    return InvalidInput(
        f"there is no resource {text[:80]!r}",
        Code.NOT_FOUND,
        fix=f"write {OF_NAME} or {OF_RELEASE}{'|'.join(PARTS)}",
    )
