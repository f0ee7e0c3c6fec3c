"""CAP discovery (`capability.list`, `capability.describe`) and the levels of CMP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlalchemy import Connection

from capdex.errors import CapdexError, Code, InvalidInput, Unavailable
from capdex.json import Json
from capdex.json_schema.arguments import one_of
from capdex.manifest.manifest import Manifest, read
from capdex.manifest.metadata import DOMAINS
from capdex.profiles import cap
from capdex.uri import CapabilityURI
from capdex_indexer.query.catalog import read_counts, read_names
from capdex_service.answers import capability_text, cmp
from capdex_service.answers.paging import (
    MAX_PAGE_BYTES,
    read_cursor,
    read_limit,
    size_of,
    write_cursor,
)
from capdex_service.answers.release import file_of
from capdex_service.answers.rendered import Answer, Rendered
from capdex_service.queries.reader import Reader
from capdex_service.queries.releases import read_manifest

MAX_PAGE: Final = 50
DEFAULT_PAGE: Final = 10
MAX_READ_BYTES: Final = 512 * 1024  # of the packages behind a page: a large one parses for long

# What `describe` answers with NOT_FOUND (P16): there is no such pair that could be described.
_NOT_DESCRIBED: Final = frozenset(
    {Code.NOT_FOUND, Code.YANKED, Code.INVALID_INPUT, Code.UNVERIFIED, Code.PENDING}
)
_Level = Callable[[Manifest, str, int], tuple[Json, int | None]]
_Tell = Callable[[Json, str | None], capability_text.Told]
_LEVELS: Final[dict[str, tuple[_Level, _Tell]]] = {
    "capabilities": (lambda x, _, start: cmp.capabilities(x, start), capability_text.intents),
    "schema": (cmp.schema, capability_text.schema),
    "examples": (cmp.examples, capability_text.examples),
}


async def list_capabilities(
    reader: Reader, *, kind: str | None = None, limit: int = DEFAULT_PAGE, cursor: str | None = None
) -> Answer:
    """Return a page of the CAP manifests of all listed packages, in order of their names.

    A page is also bounded in bytes. Packages that this node does not hold are left out. Raises
    InvalidInput for another kind or limit, or a foreign cursor.
    """
    if kind is not None:
        one_of("kind", kind, cap.KINDS)
    read_limit(limit, MAX_PAGE)
    start = ("", "", 0) if cursor is None else read_cursor(cursor, str, str, int)
    manifests, after = await reader.run(_list, reader, kind, limit, *start, long=True)
    body = {"capabilities": manifests, "next_cursor": after}
    return await _answer(reader, body, *capability_text.manifests(manifests, after))


async def describe(reader: Reader, capability_id: str, version: str | None = None) -> Answer:
    """Return the CAP manifest of a skill or tool; without a version, that of the latest release.

    `package` says which file it was made of. Raises InvalidInput NOT_FOUND for all that is not
    served, and for what is not an id or version at all (CAP, Discovery).
    """

    def make(connection: Connection) -> tuple[str, Rendered]:
        uri, _, tool = capability_id.partition("#")
        selected = (
            CapabilityURI.exact(f"{uri.removesuffix(f'@{version}')}@{version}")
            if version
            else CapabilityURI.parse(uri)
        )
        release = reader.resolve(connection, selected)
        manifest = read_manifest(reader.file_of(release))
        made = cap.skill(manifest)
        if tool:
            made = cap.tool_manifest(manifest, cap.find_tool(manifest, tool))
        told = capability_text.manifest(made, release.cap_uri)
        return selected.name, Rendered.of(made | {"package": file_of(release)}, *told)

    try:
        return await reader.answer(repr(("describe", capability_id, version)), make)
    except CapdexError as error:
        if error.code not in _NOT_DESCRIBED:
            raise
        details = {**(error.details or {}), "reason": str(error.code)}
        raise InvalidInput(error.message, Code.NOT_FOUND, error.why, error.fix, details) from error


async def read_level(
    reader: Reader, level: str, of: str | None = None, *, cursor: str | None = None
) -> Answer:
    """Return one level of CMP, a page at a time.

    `of` is the domain for the level `manifests`, and a package for the levels after it: its name
    or URI, with `#` and the name of a tool for that tool alone. Raises InvalidInput, and the errors
    of `Index.resolve`.
    """
    level = one_of("level", level, cmp.LEVELS)
    if level == "domains":
        counts = await reader.read(read_counts, "domain", long=True)
        domains = cmp.domains(counts)
        return await _answer(reader, domains, *capability_text.domains(domains))
    if not of:
        of_domain = level == "manifests"
        subject, before = ("domain", "domains") if of_domain else ("package", "manifests")
        raise InvalidInput(
            f"the level {level} is of a {subject}",
            fix=f"name one in the argument of; the level {before} lists them",
        )
    if level == "manifests":
        return await _tools_of(reader, of, cursor)
    return await _level_of(reader, level, of, cursor)


def _list(
    reader: Reader, kind: str | None, limit: int, after: str, semver: str, start: int
) -> tuple[list[Json], str | None]:
    """Return the manifests from number `start` on of the name after `after`, and the cursor."""
    page: list[Json] = []
    size = read_bytes = 0
    with reader.index.read() as connection:
        releases = read_names(connection, None, after, limit)
    for release in releases:
        try:
            data = reader.file_of(release)
        except Unavailable:  # this node does not hold it
            data = b""
        read_bytes += len(data)
        made = list(cap.manifests(read(data, lint=False).require())) if data else []
        for number, manifest in enumerate(made):
            was_before = release.semver == semver and number < start
            if was_before or kind not in (None, manifest["kind"]):
                continue
            size += size_of(manifest)
            full = len(page) == limit or size > MAX_PAGE_BYTES or read_bytes > MAX_READ_BYTES
            if page and full:
                return page, write_cursor(after, release.semver, number)
            page.append(manifest)
        after, semver = str(release.name), ""
    return page, write_cursor(after, "", 0) if len(releases) == limit else None


async def _tools_of(reader: Reader, domain: str, cursor: str | None) -> Answer:
    if domain not in DOMAINS:
        raise InvalidInput(
            f"there is no domain {domain[:64]!r}",
            Code.NOT_FOUND,
            fix=f"there are {', '.join(DOMAINS)}",
        )
    (after,) = ("",) if cursor is None else read_cursor(cursor, str)
    of = ("domain", domain)
    releases = await reader.read(read_names, of, after, DEFAULT_PAGE + 1, long=True)
    page = releases[:DEFAULT_PAGE]
    tools = [cmp.manifest(x.metadata or {}, str(x.name), x.semver) for x in page]
    next_cursor = write_cursor(str(page[-1].name)) if len(releases) > len(page) else None
    body: Json = {"domain": domain, "tools": tools, "next_cursor": next_cursor}
    return await _answer(reader, body, *capability_text.tools(body, next_cursor))


async def _level_of(reader: Reader, level: str, of: str, cursor: str | None) -> Answer:
    package, _, tool = of.partition("#")
    uri = CapabilityURI.loose(package)
    (start,) = (0,) if cursor is None else read_cursor(cursor, int)

    def make(connection: Connection) -> tuple[str, Rendered]:
        release = reader.resolve(connection, uri)
        read_it, tell = _LEVELS[level]
        answer, after = read_it(read_manifest(reader.file_of(release)), tool, start)
        next_cursor = None if after is None else write_cursor(after)
        body = answer | {"version": release.semver, "next_cursor": next_cursor}
        said, short = tell(answer, next_cursor)
        return uri.name, Rendered.of(body, said, short | {"version": release.semver})

    return await reader.answer(repr((level, of, start)), make)


async def _answer(reader: Reader, body: Json, text: str, short: Json) -> Answer:
    return Rendered.of(body, text, short).answer(await reader.moment(), reader.warning())
