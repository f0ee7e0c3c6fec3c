"""Search over what is installed, mounted and learned: words in names, descriptions and terms."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import dataclass
from typing import Final

from router.runtime.catalog import Catalog, Listed, split

MAX_WORDS: Final = 128
MAX_WANT_CHARS: Final = 1_000
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Hit:
    """A capability that was found, and why: `exact name`, or the words that match."""

    listed: Listed
    why: str


class Search:
    """An index in memory, built again when the catalogue changes."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._revision: object = None
        self._rows: list[Listed] = []
        self._index = sqlite3.connect(":memory:")

    def domains(self) -> dict[str, int]:
        """Return how many capabilities each domain has, the largest first (CMP, level 0)."""
        self._refresh()
        counts: dict[str, int] = {}
        # A package has one id with its tools, and so has a server or a learned program.
        for domain, _ in {(x.domain, x.ref.capability_id.partition("#")[0]) for x in self._rows}:
            counts[domain or "general"] = counts.get(domain or "general", 0) + 1
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def find(self, want: str, limit: int) -> list[Hit]:
        """Return at most `limit` capabilities for a wish; one that it names exactly comes first."""
        self._refresh()
        want = want[:MAX_WANT_CHARS]
        capability_id, _ = split(want)
        exact = [Hit(x, "exact name") for x in self._rows if x.ref.capability_id == capability_id]
        exact = exact or [Hit(x, "exact name") for x in self._rows if _named(x, want)]
        found = {hit.listed.ref: hit for hit in exact}
        words = _words(want)
        if words:
            query = " OR ".join(f'"{word}"' for word in words)
            rows = self._index.execute(
                "SELECT id FROM found WHERE found MATCH ? ORDER BY bm25(found), id LIMIT ?",
                (query, limit),
            )
            for (number,) in rows:
                listed = self._rows[number]
                found.setdefault(listed.ref, Hit(listed, _why(listed, words)))
        return list(found.values())[:limit]

    def _refresh(self) -> None:
        if self._catalog.revision == self._revision:
            return
        self._revision = self._catalog.revision
        self._rows = list(self._catalog.latest())
        self._index.executescript(
            "DROP TABLE IF EXISTS found;"
            "CREATE VIRTUAL TABLE found USING fts5(id UNINDEXED, name, terms, domain, description,"
            " tokenize = 'porter unicode61');"
        )
        self._index.executemany(
            "INSERT INTO found VALUES (?, ?, ?, ?, ?)",
            (
                (number, _spaced(f"{x.ref.capability_id} {x.name}"), x.terms, x.domain,
                 x.description)
                for number, x in enumerate(self._rows)
            ),
        )  # fmt: skip


def _words(text: str) -> list[str]:
    return list(dict.fromkeys(_WORD.findall(_spaced(text).casefold())))[:MAX_WORDS]


def _spaced(text: str) -> str:
    return text.replace("_", " ").replace("-", " ")


def _named(listed: Listed, want: str) -> bool:
    name = want.strip().casefold()
    capability_id = listed.ref.capability_id.casefold()
    return name != "" and (
        name == listed.name.casefold() or capability_id.endswith((f":{name}", f"#{name}"))
    )


def _why(listed: Listed, words: list[str]) -> str:
    text = _spaced(f"{listed.name} {listed.ref.capability_id} {listed.terms} {listed.description}")
    known = text.casefold()
    shown = [word for word in words if word[:4] in known][:4]
    return " ".join(shown) or "words"
