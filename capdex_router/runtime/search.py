"""Search over what is installed, mounted and learned: words in names, descriptions and terms.

The engine ranks as a node's search does. It is built by the first search, and changed by what
changes in the catalogue.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from capdex_router.runtime.catalog import PREFIX, Catalog, Listed, split

if TYPE_CHECKING:
    from capdex.search.plain import PlainEngine

MAX_WANT_CHARS: Final = 1_000
OF_ONE: Final = 8  # hits that are looked at for each that is returned: a package may have many
MAX_SHOWN: Final = 4  # words that matched
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
        self._indexed: dict[str, Listed] = {}

    def domains(self) -> dict[str, int]:
        """Return how many capabilities each domain has, the largest first (CMP, level 0)."""
        self._refresh()
        counts: dict[str, int] = {}
        # A package has one id with its tools, and so has a server or a learned program.
        for domain, _ in {(x.domain, id_.partition("#")[0]) for id_, x in self._rows.items()}:
            counts[domain or "general"] = counts.get(domain or "general", 0) + 1
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def find(self, want: str, limit: int) -> list[CatalogHit]:
        """Return at most `limit` capabilities for a wish; one that it names exactly comes first."""
        self._refresh()
        want = want[:MAX_WANT_CHARS]
        capability_id, _ = split(want)
        named = self._rows.get(capability_id)
        exact = [named] if named else [x for x in self._rows.values() if _named(x, want)]
        found = {x.ref: CatalogHit(x, "exact name") for x in exact[:limit]}
        if want.strip() and len(found) < limit:
            page = self._current().search(want, limit * OF_ONE)
            for id_ in _packages_first(page.names):
                listed = self._rows[id_]
                if len(found) < limit and listed.ref not in found:
                    found[listed.ref] = CatalogHit(listed, _why(listed, want, page.corrected))
        return list(found.values())

    def _refresh(self) -> None:
        if self._catalog.revision == self._revision:
            return
        self._revision = self._catalog.revision
        self._rows = {x.ref.capability_id: x for x in self._catalog.latest()}

    def _current(self) -> PlainEngine:
        """Return the engine of the rows."""
        from capdex.search.document import Document  # a start without a search needs none of it
        from capdex.search.plain import PlainEngine

        if self._engine is None:
            self._engine = PlainEngine()
        if self._indexed is not self._rows:
            before, self._indexed = self._indexed, self._rows
            for id_ in before.keys() - self._rows.keys():
                self._engine.remove(id_)
            for id_, x in self._rows.items():
                if before.get(id_) != x:
                    self._engine.put(Document(id_, _fields(x)))
        return self._engine


def _packages_first(ids: Sequence[str]) -> list[str]:
    """Return ids with the best one of each package before the others."""
    best: dict[str, str] = {}
    for id_ in ids:
        best.setdefault(id_.partition("#")[0], id_)
    return list(dict.fromkeys([*best.values(), *ids]))


def _fields(listed: Listed) -> Mapping[str, str]:
    return {
        "name": _spaced(f"{listed.ref.capability_id.removeprefix(PREFIX)} {listed.name}"),
        "description": listed.description,
        "tags": f"{listed.domain} {listed.terms}",
    }


def _spaced(text: str) -> str:
    return _PUNCTUATION.sub(" ", text)


def _named(listed: Listed, want: str) -> bool:
    name = want.strip().casefold()
    capability_id = listed.ref.capability_id.casefold()
    return name != "" and (
        name == listed.name.casefold() or capability_id.endswith((f":{name}", f"#{name}"))
    )


def _why(listed: Listed, want: str, corrected: Mapping[str, tuple[str, ...]]) -> str:
    """Return the words of a capability that a wish has, as its author wrote them."""
    from capdex.search.explain import spans, wanted_tokens

    text = " ".join(_fields(listed).values())
    words = (text[a:b].casefold() for (a, b), _ in spans(text, wanted_tokens(want, corrected)))
    return " ".join(list(dict.fromkeys(words))[:MAX_SHOWN]) or "words"
