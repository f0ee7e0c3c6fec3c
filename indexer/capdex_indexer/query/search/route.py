"""Which packages a message is for: their triggers that it hits, ranked with a search for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from capdex.errors import InvalidInput
from capdex.routing.matches import Combined, combine
from capdex.search.query import MAX_QUERY_CHARS
from capdex.search.ranked import RankedHit
from capdex.search.semantic import Encoder
from capdex_indexer.query.search.filters import SearchFilters
from capdex_indexer.query.search.page import LEXICAL, MAX_PAGE, find
from capdex_indexer.query.search.state import State

MAX_MESSAGE_CHARS: Final = 16_384  # triggers see all of it, the search its beginning
DEPTH: Final = 5  # times the limit: so many of each are ranked together


@dataclass(frozen=True, slots=True)
class Route:
    """The packages, best first, each with its hit of the search, None if that does not find it.

    `total` counts those whose triggers the message hits.

    `cut` is true if there were more triggers than are matched, so `total` may be larger. `mode` is
    that of the search. It `fits` if a trigger is hit, or the search fits.
    """

    packages: list[tuple[Combined, RankedHit | None]]
    total: int
    cut: bool
    mode: str = LEXICAL
    fits: bool = True


def route(state: State, message: str, limit: int, encoder: Encoder | None = None) -> Route:
    """Return the packages that a message is for.

    Raises InvalidInput for an empty or too long message, or an invalid limit.
    """
    if not message.strip():
        raise InvalidInput("the message is empty", fix="give what the user said")
    if len(message) > MAX_MESSAGE_CHARS:
        raise InvalidInput(
            f"the message has {len(message)} characters, at most {MAX_MESSAGE_CHARS} are read",
            fix="send what the user said last",
        )
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidInput(f"a page has 1 to {MAX_PAGE} hits, not {limit}")
    page = state.triggers.match(message, limit * DEPTH)
    result = find(
        state,
        message[:MAX_QUERY_CHARS],
        SearchFilters(),
        encoder=encoder,
        limit=min(limit * DEPTH, MAX_PAGE),
    )
    hits = {hit.name: hit for hit in result.hits}
    ranked = combine(page.matches, ((x.name, x.score) for x in result.hits), limit)
    packages = [(x, hits.get(x.name)) for x in ranked]
    return Route(packages, page.total, page.cut, result.mode, bool(page.total) or result.fits)
