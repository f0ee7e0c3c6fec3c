"""Search over what is installed, mounted and learned: words in names, descriptions and terms.

The engine ranks packages, with their tools, as a node's search does; of each the capability with
most words of the wish is shown. It is built by the first search, and changed by what changes in
the catalogue.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from capdex.uri import PREFIX
from capdex_router.catalog.catalog import Catalog, Listed, split

if TYPE_CHECKING:
    from capdex.search.document import Document
    from capdex.search.plain import PlainEngine

MAX_WANT_CHARS: Final = 1_000
MAX_SHOWN: Final = 4  # words that matched
NONE: Final[Mapping[str, str]] = MappingProxyType({})
_PUNCTUATION: Final = re.compile(r"[_\-:#.]+")


@dataclass(frozen=True, slots=True)
class CatalogHit:
    """A capability that was found, and why: `exact name`, or the words that match."""

    listed: Listed
    why: str


class Search:
    """The capabilities of a catalogue, found by name, by words and by domain."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._revision: object = None
        self._rows: dict[str, Listed] = {}
        self._engine: PlainEngine | None = None
        self._packages: dict[str, list[Listed]] = {}
        self._indexed: dict[str, list[Listed]] = {}

    def domains(self) -> dict[str, int]:
        """Return how many capabilities each domain has, the largest first (CMP, level 0)."""
        self._refresh()
        counts: dict[str, int] = {}
        # A package has one id with its tools, and so has a server or a learned program.
        for domain, _ in {(row.domain, id_.partition("#")[0]) for id_, row in self._rows.items()}:
            counts[domain or "general"] = counts.get(domain or "general", 0) + 1
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def find(self, want: str, limit: int, first: Mapping[str, str] = NONE) -> list[CatalogHit]:
        """Return at most `limit` capabilities for a wish; one that it names exactly comes first.

        `first` are packages that a node has found, best first, each with its reason: those that are
        here come before others.
        """
        self._refresh()
        want = want[:MAX_WANT_CHARS]
        capability_id, _ = split(want)
        named = self._rows.get(capability_id)
        exact = [named] if named else [row for row in self._rows.values() if _named(row, want)]
        chosen = {row.ref: CatalogHit(row, "exact name") for row in exact[:limit]}
        if want.strip() and len(chosen) < limit:
            page = self._current().search(want, limit)
            packages = dict.fromkeys([*filter(self._packages.__contains__, first), *page.names])
            ranked = [
                _ranked(self._packages[package], want, page.corrected, first.get(package, "words"))
                for package in packages
            ]
            rest = [hit for hits in ranked for hit in hits[1:]]
            for hit in [*(hits[0] for hits in ranked), *rest]:
                if len(chosen) < limit:
                    chosen.setdefault(hit.listed.ref, hit)
        return list(chosen.values())

    def _refresh(self) -> None:
        if self._catalog.revision == self._revision:
            return
        self._revision = self._catalog.revision
        self._rows = {row.ref.capability_id: row for row in self._catalog.latest()}
        self._packages = {}
        for id_, row in self._rows.items():
            self._packages.setdefault(id_.partition("#")[0], []).append(row)

    def _current(self) -> PlainEngine:
        """Return the engine of the packages."""
        from capdex.search.plain import PlainEngine  # a start without a search needs none of it

        if self._engine is None:
            self._engine = PlainEngine()
        if self._indexed is not self._packages:
            before, self._indexed = self._indexed, self._packages
            for package in before.keys() - self._packages.keys():
                self._engine.remove(package)
            for package, rows in self._packages.items():
                if before.get(package) != rows:
                    self._engine.put(_document(package, rows))
        return self._engine


def _document(package: str, rows: Sequence[Listed]) -> Document:
    from capdex.search.document import Document, ToolText

    whole = next((x for x in rows if x.ref.capability_id == package), None)
    fields = {
        "name": _spaced(f"{package.removeprefix(PREFIX)} {whole.name if whole else ''}"),
        "description": whole.description if whole else "",
        "tags": f"{rows[0].domain} {whole.terms if whole else ''}",
    }
    tools = (x for x in rows if x is not whole)
    return Document(
        package, fields, tuple(ToolText(_spaced(x.name), x.description, x.terms) for x in tools)
    )


def _ranked(
    rows: Iterable[Listed], want: str, corrected: Mapping[str, tuple[str, ...]], why: str
) -> list[CatalogHit]:
    """Return the capabilities of a package that have words of a wish, the most words first.

    `why` is the reason where none has any.
    """
    from capdex.search.explain import spans, wanted_tokens

    wanted, scored = wanted_tokens(want, corrected), []
    for listed in rows:
        name = _spaced(f"{listed.ref.capability_id.removeprefix(PREFIX)} {listed.name}")
        text = f"{name} {listed.description} {listed.domain} {listed.terms}"
        hits = list(spans(text, wanted))
        words = dict.fromkeys(text[a:b].casefold() for (a, b), _ in hits)  # as authors wrote them
        tokens = {token for _, some in hits for token in some}
        scored.append((len(tokens), CatalogHit(listed, " ".join([*words][:MAX_SHOWN]) or why)))
    scored.sort(key=lambda pair: -pair[0])
    return [hit for count, hit in scored if count] or [hit for _, hit in scored[:1]]


def _spaced(text: str) -> str:
    return _PUNCTUATION.sub(" ", text)


def _named(listed: Listed, want: str) -> bool:
    name = want.strip().casefold()
    capability_id = listed.ref.capability_id.casefold()
    return name != "" and (
        name == listed.name.casefold() or capability_id.endswith((f":{name}", f"#{name}"))
    )
