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
    routed = await reader.run(work, long=True)
    cards = await reader.cards([x.name for x, _ in routed.packages])
    return _render(routed, cards, moment, reader.warning())


def _render(
    routed: Route, cards: Mapping[str, Card], moment: Moment, warning: str | None
) -> Answer:
    head = {"total": routed.total, "cut": routed.cut, "mode": routed.mode}
    hits: list[Hit] = []
    for package, hit in routed.packages:
        if (card := cards.get(package.name)) is None:
            continue  # no longer listed
        triggers = package.match.triggers if package.match else ()
        fields = hit.fields if hit else ()
        more = {
            "score": round(package.score, 6),
            "matched": fields,
            "triggers": [_trigger(trigger) for trigger in triggers],
        }
        first = [f"trigger {text.cut(trigger.text, TRIGGER_TOKENS)}" for trigger in triggers[:1]]
        hits.append((card, more, [*first, *fields]))
    made = render_hits(head, hits, max(routed.total, len(hits)), fits=routed.fits)
    return made.answer(moment, warning)


def _trigger(match: MatchedTrigger) -> Json:
    return {"type": match.kind, "value": match.text, "broad": match.broad, "span": match.span}
