"""The catalogue: every capability that is installed, mounted or learned, by id and version.

Sources list their capabilities in short and load them when they are called, so a start with many
packages reads none of them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import structlog

from capdex.errors import CapdexError, Code, InvalidInput
from capdex.json import Json
from capdex.json_schema.keywords import words_of
from capdex.manifest.triggers import Trigger
from capdex.uri import PREFIX
from capdex.version import Version
from capdex_router.model.capability import Capability, Kind
from capdex_router.model.refs import CapabilityRef
from capdex_router.policy.consent import clean

log = structlog.get_logger(part="router")

MAX_LOADED: Final = 512
MAX_TERMS: Final = 64  # words of a capability's parameters or tags by which it is found
MAX_SEARCHED_CHARS: Final = 1_000  # of a description: a mounted server may have 1 000 tools
MAX_CANDIDATES: Final = 5
TOOLS_SHOWN: Final = 20
MAX_ID_CHARS: Final = 256  # as the audit log keeps; a name has at most 128 characters (MCP)
NOT_HERE: Final = "look for it with find"


@dataclass(frozen=True, slots=True)
class Listed:
    """A capability in short. `terms` are further words to find it by; `domain` is CMP's.

    `triggers` and `llm_requirements` are those of a skill (NIP-7), `arguments` the placeholders of
    its prompt, None without one.
    """

    ref: CapabilityRef
    kind: Kind
    name: str
    description: str
    domain: str = ""
    terms: str = ""
    triggers: tuple[Trigger, ...] = ()
    llm_requirements: Json = field(default_factory=dict, hash=False)
    arguments: tuple[str, ...] | None = None


class CapabilitySource(Protocol):
    """Capabilities of one origin; `revision` changes whenever the list does."""

    @property
    def revision(self) -> object:
        """A value that is equal as long as the list is the same."""
        ...

    def listed(self) -> Iterable[Listed]:
        """Return all capabilities in short."""
        ...

    def load(self, ref: CapabilityRef) -> Capability:
        """Return one of the listed capabilities with its schemas and executor."""
        ...


def terms_of(schema: Json) -> str:
    """Return the words of a tool's parameters by which it is found."""
    return " ".join(words_of(schema).split()[:MAX_TERMS])


class Fixed:
    """A source of capabilities that are in memory: a mounted server, a folder of skills."""

    def __init__(self, capabilities: Iterable[Capability] = (), domain: str = "") -> None:
        self._domain = domain
        self.revision = 0
        self.put(capabilities)

    def put(self, capabilities: Iterable[Capability]) -> None:
        """Replace all capabilities; of two with the same id and version the first one counts.

        One whose id is long, fills more than a line or means another to `Catalog.find` is left out.
        """
        by_ref: dict[CapabilityRef, Capability] = {}
        for capability in capabilities:
            id_ = capability.ref.capability_id
            shown = clean(id_, MAX_ID_CHARS)
            if shown != id_ or split(id_) != (id_, None) or id_.endswith("#"):
                log.warning("capability left out", id=shown, why="its name cannot be used here")
                continue
            if by_ref.setdefault(capability.ref, capability) is not capability:
                log.warning("capability left out", id=shown, why="it is there twice")
        self._by_ref = by_ref
        self.revision += 1

    def listed(self) -> list[Listed]:
        """Return all capabilities in short."""
        return [
            Listed(
                c.ref, c.kind, c.name, c.description[:MAX_SEARCHED_CHARS], self._domain,
                terms_of(c.input_schema) if c.kind == "tool" else "",
                arguments=None if c.prompt is None else (),
            )
            for c in self._by_ref.values()
        ]  # fmt: skip

    def load(self, ref: CapabilityRef) -> Capability:
        """Return a capability."""
        return self._by_ref[ref]


class Catalog:
    """All capabilities; of two sources with the same id and version, the first one counts."""

    def __init__(self, sources: Sequence[CapabilitySource]) -> None:
        self._sources = sources
        self._fault: CapdexError | None = None
        self._revisions: list[object] | None = None
        self._versions: dict[str, dict[str, tuple[Listed, CapabilitySource]]] = {}
        self._short: dict[str, list[str]] = {}
        self._loaded: dict[CapabilityRef, Capability] = {}

    @property
    def revision(self) -> object:
        """A value that is equal as long as no source changes."""
        return tuple(source.revision for source in self._sources)

    def listed(self) -> Iterator[Listed]:
        """Yield all capabilities in short, each (id, version) once."""
        self._refresh()
        for versions in self._versions.values():
            for listed, _ in versions.values():
                yield listed

    def latest(self) -> Iterator[Listed]:
        """Yield the capabilities in short, each id once, with its highest version."""
        self._refresh()
        for versions in self._versions.values():
            yield versions[_highest(versions)][0]

    def tools(self, ref: CapabilityRef) -> list[Listed]:
        """Return the tools in short of what owns a capability, in the version of that."""
        prefix = ref.capability_id.partition("#")[0] + "#"
        return [
            listed
            for listed in self.listed()
            if listed.ref.capability_id.startswith(prefix) and listed.ref.version == ref.version
        ]

    @property
    def fault(self) -> CapdexError | None:
        """A new error of why a source has no list, while the others go on; None: all have one."""
        return self._fault and replace(self._fault)

    def get(self, capability_id: str, version: str | None = None) -> Capability:
        """Return a capability, without a version the highest; raises NOT_FOUND, or `fault`."""
        self._refresh()
        versions = self._versions.get(capability_id)
        if versions is None:
            raise self.fault or _not_found(capability_id)
        entry = versions.get(_highest(versions) if version is None else version)
        if entry is None:
            raise InvalidInput(
                f"{capability_id} has no version {str(version)[:64]} here",
                Code.NOT_FOUND,
                fix=f"installed: {', '.join(sorted(versions))}",
                details={"versions": sorted(versions)},
            )
        listed, source = entry
        if listed.ref not in self._loaded:
            if len(self._loaded) >= MAX_LOADED:
                self._loaded.pop(next(iter(self._loaded)))
            self._loaded[listed.ref] = source.load(listed.ref)
        return self._loaded[listed.ref]

    def find(self, name: str) -> Capability:
        """Return the capability that a person or a model names.

        `name` is an id with or without `@version` (before or after the tool), or a short form of
        one: `weather#now`, `weather`, `now`. Raises InvalidInput NOT_FOUND, or AMBIGUOUS with
        candidates.
        """
        self._refresh()
        capability_id, version = split(name)
        if capability_id in self._versions:
            return self.get(capability_id, version)
        ids = self._short.get(_fold(capability_id), [])
        if len(ids) > 1:
            shown = sorted(ids)[:MAX_CANDIDATES]
            raise InvalidInput(
                f"{name[:128]!r} may mean {len(ids)} capabilities",
                Code.AMBIGUOUS,
                fix="give one of: " + ", ".join(shown),
                details={"candidates": shown},
            )
        if not ids:
            package, _, tool = capability_id.removeprefix(PREFIX).partition("#")
            owners = (f"{PREFIX}{package}#", f"{package}#")
            tools = [id_ for id_ in self._versions if id_.startswith(owners)]
            if not tools:
                raise self.fault or _not_found(name)
            raise InvalidInput(
                f"{package[:128]} has no tool {tool[:128]!r}",
                Code.NOT_FOUND,
                fix=f"it has {', '.join(map(self.short_name, tools[:TOOLS_SHOWN]))}",
            )
        return self.get(ids[0], version)

    def short_name(self, capability_id: str) -> str:
        """Return an id without the prefix of packages if that names it alone, else the id."""
        self._refresh()
        form = capability_id.removeprefix(PREFIX)
        return form if self._short.get(_fold(form)) == [capability_id] else capability_id

    def _refresh(self) -> None:
        revisions = [source.revision for source in self._sources]
        if revisions == self._revisions:
            return
        versions: dict[str, dict[str, tuple[Listed, CapabilitySource]]] = {}
        self._fault = None
        for source in self._sources:
            try:
                for x in source.listed():
                    known = versions.setdefault(x.ref.capability_id, {})
                    known.setdefault(x.ref.version, (x, source))
            except CapdexError as error:
                self._fault = error
                log.error("capabilities are missing", why=error.line)
        short: dict[str, list[str]] = {}
        for capability_id in versions:
            for form in dict.fromkeys(_short_forms(capability_id)):
                short.setdefault(form, []).append(capability_id)
        self._versions, self._short, self._revisions = versions, short, revisions
        self._loaded.clear()


def split(name: str) -> tuple[str, str | None]:
    """Return id and version of `id`, `id@version`, `id#tool@version` or `id@version#tool`."""
    package, hash_, tool = name.strip().partition("#")
    package, _, before = package.partition("@")
    tool, _, after = tool.partition("@")
    return f"{package}{hash_}{tool}", after or before or None


def _short_forms(capability_id: str) -> Iterator[str]:
    package, hash_, tool = _fold(capability_id).partition("#")
    name = package.removeprefix(PREFIX).rpartition(":")[2]
    yield f"{package}{hash_}{tool}"
    yield f"{name}{hash_}{tool}"
    if tool:
        yield f"{name}.{tool}"
        yield f"{name}_{tool}"
        yield tool


def _fold(name: str) -> str:
    return name.strip().casefold()


@functools.lru_cache(maxsize=16_384)
def _order(version: str) -> tuple[bool, Version | str]:
    try:
        return True, Version.parse(version)
    except InvalidInput:
        return False, version


def _highest(versions: Iterable[str]) -> str:
    return max(versions, key=_order)


def _not_found(name: str) -> InvalidInput:
    return InvalidInput(f"there is no capability {name[:128]!r} here", Code.NOT_FOUND, fix=NOT_HERE)
