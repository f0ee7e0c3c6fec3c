"""Route a message: the packages that it is for, by their triggers and by a search."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from capdex.json import Json
from capdex.routing.matches import MatchedTrigger
from capdex_indexer.query.search.route import Route
from capdex_service.answers import text
from capdex_service.answers.card import Card, Hit, render_hits
from capdex_service.answers.rendered import Answer, Moment
from capdex_service.queries.reader import Reader

DEFAULT_ROUTES: Final = 5
TRIGGER_TOKENS: Final = 8  # of a trigger in the text for a model


async def route(reader: Reader, message: str, limit: int = DEFAULT_ROUTES) -> Answer:
    """Return the packages that a message is for, best first, each with the triggers that it hits.

    Raises the errors of `Index.route`.
    """
    moment = await reader.moment()  # first: the answer is never older than this block
    work = partial(reader.index.route, message, limit=limit, revision=moment.revision)
    found = await reader.run(work, long=True)
    cards = await reader.cards([x.name for x, _ in found.packages])
    return _render(found, cards, moment, reader.warning())


def _render(found: Route, cards: Mapping[str, Card], moment: Moment, warning: str | None) -> Answer:
    head = {"total": found.total, "cut": found.cut, "mode": found.mode}
    hits: list[Hit] = []
    for one, hit in found.packages:
        if (card := cards.get(one.name)) is None:
            continue  # no longer listed
        triggers = one.match.triggers if one.match else ()
        fields = hit.fields if hit else ()
        more = {
            "score": round(one.score, 6),
            "matched": fields,
            "triggers": [_trigger(trigger) for trigger in triggers],
        }
        first = [f"trigger {text.cut(trigger.text, TRIGGER_TOKENS)}" for trigger in triggers[:1]]
        hits.append((card, more, [*first, *fields]))
    made = render_hits(head, hits, max(found.total, len(hits)), fits=found.fits)
    return made.answer(moment, warning)


def _trigger(found: MatchedTrigger) -> Json:
    return {"type": found.kind, "value": found.text, "broad": found.broad, "span": found.span}
