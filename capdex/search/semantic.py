"""Search by meaning: vectors of texts, and their similarity added to lexical scores.

The sum is not normalised: a lexical score is higher the more and the rarer the words that match, so
it says by itself how much the similarity may change. Where the best one is high, the similarity
weighs a little less. The weights were fitted on labelled questions (`benchmarks/search/fit.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from capdex.search.document import Document
from capdex.search.ranked import Scores
from capdex.search.segments.segment import Floats, Longs, Mask, WordSegment
from capdex.search.segments.vectors import Vector, quantise
from capdex.search.weights import rarity
from capdex.text.segment_set import Part

SIMILARITY_WEIGHT: Final = 66.0  # of a cosine, over BEST_POWER of the best lexical score
BEST_POWER: Final = 0.4  # so the weight is 20 where that score is 20, about 5 for each rare word
BEST_BOUNDS: Final = (6.0, 60.0)  # a best score below or above counts as one of these
WIDE: Final = 8.0  # rarity of a word that one of 4 000 documents has: amid more, scores are higher
FULL_WORDS: Final = 5  # the meaning of fewer words weighs less: they are names, or have several
LEAST_SIMILARITY: Final = 0.15  # of a document without a word of the query
NEAREST: Final = 300  # documents by signs whose similarity is computed
BEST: Final = 300  # documents by words whose similarity is computed
MAX_TIED: Final = 4 * BEST  # of equal scores or distances at the end of those
MAX_TEXT_CHARS: Final = 2_000  # of a document that are encoded; bounds the time
MAX_SAID_CHARS: Final = 300  # of its triggers, and of what users say in its examples
MAX_BEGINNING_CHARS: Final = 300  # of its name with what it does, and of its names
MAX_NAMES_CHARS: Final = 200  # of the names of its tools
TEXT_WEIGHTS: Final = np.array([1, 0.5, 0.5], np.float32)  # of what `texts_of` returns
ENCODED_VERSION: Final = 3  # raised whenever the same document is encoded as another text
MAX_QUERY_CHARS: Final = 500


class Encoder(Protocol):
    """Texts to vectors. Vectors of two encoders are comparable if their `identity` is equal."""

    @property
    def identity(self) -> str:
        """Its name and version, and the dimension of its vectors, a multiple of 64."""
        ...

    def encode(self, texts: Sequence[str]) -> NDArray[Any]:
        """Return a row of numbers for each text; any thread may call it."""
        ...

    def encode_question(self, text: str) -> NDArray[Any]:
        """Return numbers to be compared with those of the texts that answer it."""
        ...


def encode_documents(encoder: Encoder, documents: Sequence[Document]) -> dict[str, Vector]:
    """Return the vector of each document by name; none is all zeros.

    It is the sum of what the whole text, its beginning and its names mean. An encoder adds up the
    words of a text, so in a long text alone what a package is for counts for little.
    """
    if not documents:
        return {}
    texts = [texts_of(document) for document in documents]
    places = {text: place for place, text in enumerate(dict.fromkeys(chain.from_iterable(texts)))}
    encoded = encoder.encode(list(places))
    chosen = np.array([[places[text] for text in three] for three in texts])
    vectors = quantise(np.einsum("t,dtn->dn", TEXT_WEIGHTS, encoded[chosen]))
    vectors[~vectors.any(axis=1), 0] = 1
    return {x.name: vector for x, vector in zip(documents, vectors, strict=True)}


def texts_of(document: Document) -> tuple[str, str, str]:
    """Return the texts of a document that are encoded, in the order of TEXT_WEIGHTS.

    The whole: its name, what it does, its triggers, its tools with parameters; its name with what
    it does; its name, those of its tools, and its tags.
    """
    fields = document.fields
    name = f"{_spoken(fields.get('title') or fields.get('name') or document.name)}."
    does = fields.get("description") or fields.get("summary") or ""
    said = fields.get("triggers", "").replace("\n", ". ")[:MAX_SAID_CHARS]
    tools = " ".join(
        f"{_spoken(tool.name)}: {tool.description} {tool.parameters}" for tool in document.tools
    )
    called = ", ".join(_spoken(tool.name) for tool in document.tools)[:MAX_NAMES_CHARS]
    return (
        " ".join(filter(None, (name, does, said, tools)))[:MAX_TEXT_CHARS],
        f"{name} {does}"[:MAX_BEGINNING_CHARS],
        f"{name} {called} {fields.get('tags', '')}"[:MAX_BEGINNING_CHARS],
    )


def encode_query(encoder: Encoder, query: str) -> Vector:
    """Return the vector of a query, of which the first MAX_QUERY_CHARS count."""
    vector: Vector = quantise(encoder.encode_question(query[:MAX_QUERY_CHARS])[None])[0]
    return vector


def fuse(
    parts: Sequence[Part[WordSegment]],
    documents: int,
    scores: Scores,
    query: Vector,
    keeps: Sequence[Mask | None],
) -> Scores:
    """Return scores with the similarity of the nearest and of the best of all documents added.

    `keeps` are the documents of each part that fulfil the filters; None: all do. Which documents
    are taken depends on the live ones alone: equal ones are all taken, or none of them.
    """
    near = _near(parts, query, keeps)
    values = scores.values.copy()
    slots: list[Longs] = []
    similarities: list[Floats] = []
    lowest = _lowest(scores.values, BEST)
    scale = max(1.0, rarity(documents, 1) / WIDE)
    best = np.clip(scores.values.max(initial=0) / scale, *BEST_BOUNDS)
    full = SIMILARITY_WEIGHT * scale / best**BEST_POWER
    weight = np.float32(full * min(1.0, (1 + scores.words) / FULL_WORDS))
    for part, keep, nearest in zip(parts, keeps, near, strict=True):
        if (vectors := part.segment.vectors) is None:
            continue
        lexical = scores.values[part.slots]
        chosen = (lexical >= lowest) & vectors.known
        if keep is not None:
            chosen &= keep
        chosen[nearest] = True
        places = np.flatnonzero(chosen)
        similar = vectors.similarities(query, places)
        counts = (similar >= LEAST_SIMILARITY) | ((lexical[places] > 0) & (similar > 0))
        places, similar = places[counts], similar[counts]
        values[part.begin + places] += weight * similar
        slots.append(part.begin + places)
        similarities.append(similar)
    return replace(
        scores,
        values=values,
        near=np.concatenate([np.zeros(0, np.int64), *slots]),
        similarities=np.concatenate([np.zeros(0, np.float32), *similarities]),
    )


def _near(
    parts: Sequence[Part[WordSegment]], query: Vector, keeps: Sequence[Mask | None]
) -> list[Longs]:
    """Return the places in each part of the documents with the fewest other signs."""
    distances: list[NDArray[np.uint16] | None] = []
    counts = np.zeros(len(query) + 1, np.int64)
    for part, keep in zip(parts, keeps, strict=True):
        vectors = part.segment.vectors
        if vectors is None:
            distances.append(None)
            continue
        differing = vectors.distances(query)
        allowed = vectors.known if part.live is None else vectors.known & part.live
        allowed = allowed if keep is None else allowed & keep
        differing[~allowed] = len(query)
        counts += np.bincount(differing, minlength=len(query) + 1)
        distances.append(differing)
    counts[len(query)] = 0  # none, and the exact opposites
    total = np.cumsum(counts)
    most = int(np.searchsorted(total, NEAREST))
    if most < len(query) and total[most] > NEAREST + MAX_TIED:
        most -= 1
    most = min(most, len(query) - 1)
    return [
        np.zeros(0, np.int64) if differing is None else np.flatnonzero(differing <= most)
        for differing in distances
    ]


def _lowest(values: Floats, count: int) -> np.float32:
    """Return the score from which on documents are among the `count` best, above 0."""
    lowest = np.float32(np.finfo(np.float32).tiny)
    matching = values[values > 0]  # a partition of very many zeros is slow
    if len(matching) > count:
        place = len(matching) - count
        lowest = max(lowest, np.partition(matching, place)[place])
    if np.count_nonzero(values >= lowest) > count + MAX_TIED:
        return np.float32(np.nextafter(lowest, np.float32(np.inf)))
    return lowest


def _spoken(name: str) -> str:
    return name.replace("_", " ").replace("-", " ")
