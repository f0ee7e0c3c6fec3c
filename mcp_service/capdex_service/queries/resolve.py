"""Resolve a capability URI to one release, with what is asked for beside its metadata."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from sqlalchemy import Connection

from capdex.errors import Code, InvalidInput
from capdex.json import Json
from capdex.json_schema.arguments import some_of
from capdex.json_schema.schema import parse_json
from capdex.uri import CapabilityURI, check_name
from capdex_indexer.query.name_state import read_name_state
from capdex_indexer.query.release import IndexedRelease, read_name, read_tools
from capdex_service.answers import brief, text
from capdex_service.answers.release import name_head, of_page
from capdex_service.answers.rendered import Answer, Rendered, render_name, render_release
from capdex_service.queries.reader import Package, Reader

INCLUDES: Final = ("package", "tools", "prompt", "schema", "proof", "history")
WHOLE: Final = frozenset({"package", "tools", "prompt", "schema", "files"})
MAX_HISTORY: Final = 50  # releases in `history`, the highest versions


def read_include(given: object) -> frozenset[str]:
    """Read the argument `include`: a list of INCLUDES; raises InvalidInput."""
    return frozenset(some_of("include", given, INCLUDES))


async def resolve(
    reader: Reader, cap_uri: str, include: Collection[str] = (), *, whole: bool = False
) -> Answer:
    """Return the release that a URI means (P2): latest, exact or the highest in a range.

    `include`: parts of the package, or `history`; a proof is not made here (see `proofs`). With
    `whole` the text tells of the whole package in short. Raises the errors of `Index.resolve`, and
    Unavailable PENDING for parts of a package that this node does not hold.
    """
    wanted = frozenset(include)

    def make(connection: Connection) -> tuple[str, Rendered]:
        uri = CapabilityURI.parse(cap_uri)
        release = reader.resolve(connection, uri)
        return uri.name, render_resolution(reader, connection, release, wanted, whole=whole)

    return await reader.answer(question(cap_uri, wanted, whole=whole), make)


def cached(reader: Reader, cap_uri: str, *, whole: bool = False) -> Answer | None:
    """Return the answer of `resolve` if the reader keeps it: with `whole` the whole package."""
    return reader.answer_now(question(cap_uri, WHOLE if whole else (), whole=whole))


async def name_page(reader: Reader, name: str) -> Answer:
    """Return the state of a name and all its releases; raises InvalidInput NOT_FOUND."""

    def make(connection: Connection) -> tuple[str, Rendered]:
        denials = reader.index.denial_cache.read(connection)
        releases = [x.redacted(denials) for x in read_name(connection, name)]
        if not releases:
            what = f"no capability is named {name}"
            raise InvalidInput(what, code=Code.NOT_FOUND, fix="search for it by what it does")
        head = name_head(name, read_name_state(connection, name))
        return name, render_name(head, ((x, of_page(x)) for x in releases))

    return await reader.answer(repr(("page", check_name(name))), make)


def render_resolution(
    reader: Reader,
    connection: Connection,
    release: IndexedRelease,
    wanted: frozenset[str],
    *,
    whole: bool = False,
) -> Rendered:
    """Render a release with the wanted parts of its package, or its history."""
    more: Json = {}
    if "history" in wanted:
        history = read_name(connection, release.name or "")[:MAX_HISTORY]
        more["history"] = list(map(_step, history))
    if not wanted & WHOLE:
        tools = read_tools(connection, [release.sequence]).get(release.sequence, ())
        short = brief.resolution(release, tools)
        return render_release(release, more, text.resolution(release, tools, more), short)
    package = reader.package_of(release)
    more |= parts(package, wanted)
    short = brief.package(release, package.document)
    if whole:
        return render_release(release, more, text.package(release, package.document, short), short)
    said = text.resolution(release, (), more)
    return render_release(release, more, said, None if "package" in wanted else short)


def parts(package: Package, wanted: Collection[str]) -> Json:
    """Return the wanted parts of a package: itself, tools with bindings, prompt, schema, files."""
    document = package.document
    chosen: Json = {}
    if "package" in wanted:
        chosen["package"] = package.data.decode("utf-8")
    if "tools" in wanted:
        chosen["tools"] = document.get("tools") or []
        chosen["tool_bindings"] = document.get("tool_bindings") or {}
    if "prompt" in wanted:
        chosen["prompt"] = document.get("prompt")
    if "files" in wanted:
        chosen["files"] = document.get("resources") or []
    if "schema" in wanted:
        schema = document.get("schema")
        chosen["schema"] = parse_json(schema) if isinstance(schema, str) else schema
    return chosen


def question(cap_uri: str, wanted: Iterable[str] = (), *, whole: bool = False) -> str:
    """Name a resolution in a reader's cached answers; different questions have different names."""
    return repr((cap_uri, *sorted(wanted), whole))


def _step(release: IndexedRelease) -> Json:
    return {
        "semver": release.semver,
        "verdict": None if release.verdict is None else str(release.verdict),
        "yanked": release.yanked,
        "deprecated": release.deprecated,
        "latest": release.latest,
        "ipfs_cid": release.cid,
        "sha256": release.sha256,
        "block_number": release.block_number,
        "timestamp": release.timestamp,
    }
