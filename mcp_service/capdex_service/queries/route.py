"""Route a message: the packages that it is for, by their triggers and by a search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import orjson

from capdex.errors import InvalidInput
from capdex.json import Json
from capdex.routing import MatchedTrigger
from capdex_indexer.query import MAX_PAGE, Route
from capdex_service.answers import brief, text
from capdex_service.answers.card import Card
from capdex_service.answers.rendered import Answer, Moment, Rendered, told
from capdex_service.queries.reader import Reader

DEFAULT_ROUTES: Final = 5
TRIGGER_TOKENS: Final = 8  # of a trigger in the text for a model


def read_limit(given: object) -> int:
    """Return a limit that a client sent; raises InvalidInput."""
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= MAX_PAGE:
        raise InvalidInput(f"limit is not a whole number from 1 to {MAX_PAGE}")
    return given


async def route(reader: Reader, message: str, limit: int = DEFAULT_ROUTES) -> Answer:
    """Return the packages that a message is for, best first, each with the triggers that it hits.

    Raises the errors of `Index.route`.
    """
    moment = await reader.moment()  # first: the answer is never older than this block
    found = await reader.run(_route, reader, message, limit, moment.revision, long=True)
    cards = await reader.cards([x.combined.name for x in found.packages])
    return _render(found, cards, moment, reader.warning())


def _route(reader: Reader, message: str, limit: int, revision: int) -> Route:
    return reader.index.route(message, limit=limit, revision=revision)


def _render(found: Route, cards: Mapping[str, Card], moment: Moment, warning: str | None) -> Answer:
    head = {"total": found.total, "cut": found.cut, "mode": found.mode}
    parts, blocks, lines = [orjson.dumps(head)[:-1] + b',"list_of_results":['], [], []
    shown: list[orjson.Fragment] = []
    after = brief.EVERYTHING
    for one in found.packages:
        if (card := cards.get(one.combined.name)) is None:
            continue  # no longer listed
        match, hit = one.combined.match, one.hit
        triggers = match.triggers if match else ()
        fields = hit.fields if hit else ()
        more = {
            "score": round(one.combined.score, 6),
            "matched": fields,
            "triggers": [_trigger(trigger) for trigger in triggers],
        }
        parts[-1] += card.json(more)
        parts.append(b"}},")
        blocks.append(card.block)
        hits = [f"trigger {text.cut(trigger.text, TRIGGER_TOKENS)}" for trigger in triggers[:1]]
        lines += card.lines([*hits, *fields])
        after = after if shown else brief.get(card.cap_uri)
        shown.append(orjson.Fragment(card.brief_json([*hits, *fields])))
    parts[-1] = parts[-1].removesuffix(b",") + b"]"
    total = max(found.total, len(shown))
    short = brief.page("list_of_results", shown, None, after, total=total)
    made = Rendered(
        tuple(parts), tuple(blocks), *told(text.hits(lines, len(shown), total, None), short)
    )
    return made.answer(moment, warning)


def _trigger(found: MatchedTrigger) -> Json:
    return {"type": found.kind, "value": found.text, "broad": found.broad, "span": found.span}
