"""How much a term says about a document: BM25F over its fields, from the document alone.

The length that a document is compared to is a constant and not the average of a collection, so a
posting never changes, and the order of hits is better: weights and constants were fitted by
`benchmarks/search/` on labelled questions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from capdex.search.analyser import document_terms
from capdex.search.document import FIELDS, TOOLS, Document

WEIGHTS_VERSION: Final = 2  # raised whenever the same document gets other impacts
MAX_FIELD_TOKENS: Final = 2048  # of one field that count
MOST_IN_TEXT: Final = 2  # times that a word counts in one text, so that repeating it gains nothing
MOST_IN_ALL: Final = 10.0  # and in all texts together, each time as its field weighs
SATURATION: Final = 2.0  # BM25's k1
USUAL_LENGTH: Final = 40.0  # tokens, each as often as its field weighs
LENGTH_POWER: Final = 0.6  # long documents are held back less than with BM25's b of 1
FIELD_WEIGHTS: Final = {"name": 2.5, "title": 2.5}  # 1 for the others
TOOL_NAME_WEIGHT: Final = 2.5

# Shares of a score, of which a whole is what the stem of a word brings.
AS_WRITTEN: Final = 0.5  # more for the same form of the word
BEGUN: Final = 0.3  # for the word that the query ends in, if it begins other words
MISTAKEN: Final = 0.5  # for a word that is close to a misspelt one
ONE_TOOL: Final = 0.9  # of the score that the best tool of several would have by itself

Impacts = dict[str, float]
_Text = tuple[str, float]


@dataclass(frozen=True, slots=True)
class WeightedTerms:
    """The impact of each term, above 0 and below 1, on a document and on each of its tools.

    The tools are left out of a document with one: they say the same as the whole. `masks` tell the
    fields that have each term of the whole.
    """

    whole: Impacts
    masks: dict[str, int]
    tools: list[Impacts]


def weigh(document: Document) -> WeightedTerms:
    """Return the impacts of a document's terms."""
    fields = [
        (document.fields.get(x, document.name if x == "name" else ""), FIELD_WEIGHTS.get(x, 1.0))
        for x in FIELDS
    ]
    tools = [
        _count([(tool.name, TOOL_NAME_WEIGHT), (tool.description, 1.0), (tool.parameters, 1.0)])
        for tool in document.tools
    ]
    counted = [(bit, *_count([field])) for bit, field in enumerate(fields)]
    counts: dict[str, float] = {}
    masks: dict[str, int] = {}
    whole = 0.0
    for bit, terms, length in [*counted, *((len(FIELDS), *tool) for tool in tools)]:
        whole += length
        for term, count in terms.items():
            counts[term] = counts.get(term, 0.0) + count
            masks[term] = masks.get(term, 0) | 1 << bit
    of_tools = [_impacts(*tool) for tool in tools if len(tools) > 1]
    return WeightedTerms(_impacts(counts, whole), masks, of_tools)


def fields_of(mask: int) -> tuple[str, ...]:
    """Return the names of the fields in a mask."""
    return tuple(field for bit, field in enumerate((*FIELDS, TOOLS)) if mask >> bit & 1)


def rarity(documents: int, having: int) -> float:
    """Return BM25's idf of a term that `having` of the documents have."""
    return math.log(1 + (documents - having + 0.5) / (having + 0.5))


def _count(texts: Iterable[_Text]) -> tuple[dict[str, float], float]:
    """Return how often each term occurs, and the length; both as the texts weigh."""
    counts: dict[str, float] = {}
    length = 0.0
    for text, weight in texts:
        if text:
            tokens, written = document_terms(text)
            length += weight * len(tokens[:MAX_FIELD_TOKENS])
            here = Counter(tokens[:MAX_FIELD_TOKENS] + written[:MAX_FIELD_TOKENS])
            for term, times in here.items():
                counts[term] = counts.get(term, 0.0) + weight * min(times, MOST_IN_TEXT)
    return counts, length


def _impacts(counts: dict[str, float], length: float) -> Impacts:
    norm = SATURATION * (length / USUAL_LENGTH) ** LENGTH_POWER
    weighed = ((term, min(count, MOST_IN_ALL)) for term, count in counts.items())
    return {term: count / (count + norm) for term, count in weighed}
