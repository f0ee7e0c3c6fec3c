"""A hit of a search without what depends on the question: rendered once, and kept; its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from capdex_indexer.query.release import IndexedRelease
from capdex_service.answers import brief, text
from capdex_service.answers.release import split
from capdex_service.answers.rendered import Rendered, told


@dataclass(frozen=True, slots=True)
class Card:
    """One release in a page of hits: JSON before and after the hit's own fields, and its line.

    The finality of `block` follows `after`; `brief` is the JSON for a model. `room` are the tokens
    left of the line for what the release does and for the fields that matched; `details` are
    further lines.
    """

    before: bytes
    after: bytes
    brief: bytes
    cap_uri: str
    block: int
    name: str
    does: str
    tools: str
    room: float
    details: tuple[str, ...] = ()

    @classmethod
    def of(cls, release: IndexedRelease, tools: Sequence[str], *, full: bool = False) -> Card:
        """Render a release; `full` has all of its summary, and its details."""
        name, listed = text.name_of(release), text.tools_of(tools)
        return cls(
            *split(release, {}),
            orjson.dumps(brief.hit(release, tools)),
            release.cap_uri,
            release.block_number,
            name,
            text.does_of(release, text.SUMMARY_TOKENS * 4 if full else text.DOES_TOKENS),
            listed,
            float("inf") if full else text.HIT_TOKENS - text.estimate(name) - text.estimate(listed),
            tuple(text.details_of(release)) if full else (),
        )

    def json(self, more: dict[str, Any]) -> bytes:
        """Return the JSON object up to its finality, with the hit's own fields, one at least."""
        return self.before + b"," + orjson.dumps(more)[1:-1] + self.after

    def brief_json(self, matched: Sequence[str], like: str | None) -> bytes:
        """Return the JSON object for a model, as `lines`."""
        more = {"matched": matched[:1]} | ({"like": like} if like else {})
        return self.brief[:-1] + b"," + orjson.dumps(more)[1:]

    def lines(self, matched: Sequence[str], like: str | None) -> list[str]:
        """Return the lines for a model; `matched` are the fields with words of the question.

        `like` is the older name of another owner that its name may be taken for.
        """
        after = f" · matched {', '.join(matched[:3])}" if matched else ""
        after += f" · like the older name {like} of another owner" if like else ""
        room = self.room - text.estimate(after)
        does = self.does if room >= text.DOES_TOKENS else text.cut(self.does, max(0, room))
        return [f"{self.name} {does}".rstrip() + after + self.tools, *self.details]


Hit = tuple[Card, dict[str, Any], Sequence[str]]
"""A card, the hit's own fields, and the fields with words of the question."""


def render_hits(
    head: Mapping[str, Any],
    hits: Sequence[Hit],
    total: int,
    cursor: str | None = None,
    *,
    fits: bool,
) -> Rendered:
    """Render a page of hits; `fits`: one fits well. Models get the facets of `head`, too."""
    related = bool(hits) and not fits
    parts, lines = [orjson.dumps(head)[:-1] + b',"list_of_results":['], list[str]()
    for card, more, matched in hits:
        parts[-1] += card.json(more)
        parts.append(b"}},")
        lines += card.lines(matched, more.get("like"))
    parts[-1] = parts[-1].removesuffix(b",") + b"]"
    after = brief.get(hits[0][0].cap_uri) if hits else brief.EVERYTHING
    items = [orjson.Fragment(x.brief_json(matched, more.get("like"))) for x, more, matched in hits]
    short = brief.page("list_of_results", items, cursor, after, total=total)
    short |= {"note": text.RELATED} if related else {}
    short |= {"facets": head["facets"]} if "facets" in head else {}
    lines += text.facets(head.get("facets", {}))
    words = text.hits(lines, len(hits), total, cursor, related=related)
    return Rendered(tuple(parts), tuple(card.block for card, *_ in hits), *told(words, short))
