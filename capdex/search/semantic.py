"""Search by meaning: vectors of texts, and their similarity added to lexical scores.

The sum is not normalised: a lexical score is higher the more and the rarer the words that match, so
it says by itself how much the similarity may change. The weight was fitted on labelled questions
(`benchmarks/search/fit.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from capdex.search.document import Document
from capdex.search.ranked import Scores
from capdex.search.segments.segment import Floats, Longs, Mask, WordSegment
from capdex.search.segments.vectors import Vector, quantise
from capdex.text.segment_set import Part

SIMILARITY_WEIGHT: Final = 20.0  # a lexical score is about 5 for each rare word
FULL_WORDS: Final = 5  # the meaning of fewer words weighs less: they are names, or have several
LEAST_SIMILARITY: Final = 0.15  # of a document without a word of the query
NEAREST: Final = 300  # documents by signs whose similarity is computed
BEST: Final = 300  # documents by words whose similarity is computed
MAX_TIED: Final = 4 * BEST  # of equal scores or distances at the end of those
MAX_TEXT_CHARS: Final = 2_000  # of a document that are encoded; bounds the time
MAX_SAID_CHARS: Final = 300  # of its triggers, and of what users say in its examples
ENCODED_VERSION: Final = 2  # raised whenever the same document is encoded as another text
MAX_QUERY_CHARS: Final = 500


class Encoder(Protocol):
    """Texts to vectors. Vectors of two encoders are comparable if their `identity` is equal."""

    @property
    def identity(self) -> str:
        """Its name and version, and the dimension of its vectors."""
        ...

    @property
    def dimension(self) -> int:
        """A multiple of 64."""
        ...

    def encode(self, texts: Sequence[str]) -> NDArray[Any]:
        """Return a row of `dimension` numbers for each text; any thread may call it."""
        ...


def text_of(document: Document) -> str:
    """Return what of a document is encoded: its name, what it does, its tools with parameters."""
    fields = document.fields
    name = fields.get("title") or fields.get("name") or document.name
    does = fields.get("description") or fields.get("summary") or ""
    tools = " ".join(
        f"{_spoken(tool.name)}: {tool.description} {tool.parameters}" for tool in document.tools
    )
    said = fields.get("triggers", "").replace("\n", ". ")
    texts = (does, said[:MAX_SAID_CHARS], tools)
    return f"{_spoken(name)}. {' '.join(filter(None, texts))}"[:MAX_TEXT_CHARS]


def encode_documents(encoder: Encoder, documents: Sequence[Document]) -> dict[str, Vector]:
    """Return the vector of each document by name; none is all zeros."""
    if not documents:
        return {}
    vectors = quantise(encoder.encode([text_of(document) for document in documents]))
    vectors[~vectors.any(axis=1), 0] = 1
    return {x.name: vector for x, vector in zip(documents, vectors, strict=True)}


def encode_query(encoder: Encoder, query: str) -> Vector:
    """Return the vector of a query, of which the first MAX_QUERY_CHARS count."""
    vector: Vector = quantise(encoder.encode([query[:MAX_QUERY_CHARS]]))[0]
    return vector


def fuse(
    parts: Sequence[Part[WordSegment]], scores: Scores, query: Vector, keeps: Sequence[Mask | None]
) -> Scores:
    """Return scores with the similarity of the nearest and of the best documents added.

    `keeps` are the documents of each part that fulfil the filters; None: all do. Which documents
    are taken depends on the live ones alone: equal ones are all taken, or none of them.
    """
    near = _near(parts, query, keeps)
    values = scores.values.copy()
    slots: list[Longs] = []
    found: list[Floats] = []
    lowest = _lowest(scores.values, BEST)
    weight = np.float32(SIMILARITY_WEIGHT * min(1.0, (1 + scores.words) / FULL_WORDS))
    for part, keep, nearest in zip(parts, keeps, near, strict=True):
        if (vectors := part.segment.vectors) is None:
            continue
        chosen = scores.values[part.slots] >= lowest
        chosen &= vectors.known
        if keep is not None:
            chosen &= keep
        chosen[nearest] = True
        places = np.flatnonzero(chosen)
        similar = vectors.similarities(query, places)
        lexical = scores.values[part.slots][places]
        counts = (similar >= LEAST_SIMILARITY) | ((lexical > 0) & (similar > 0))
        places, similar = places[counts], similar[counts]
        values[part.begin + places] += weight * similar
        slots.append(part.begin + places)
        found.append(similar)
    none = np.zeros(0)
    return replace(
        scores,
        values=values,
        near=np.concatenate([none.astype(np.int64), *slots]),
        similarities=np.concatenate([none.astype(np.float32), *found]),
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
        found = vectors.distances(query)
        allowed = vectors.known if part.live is None else vectors.known & part.live
        allowed = allowed if keep is None else allowed & keep
        found[~allowed] = len(query)
        counts += np.bincount(found, minlength=len(query) + 1)
        distances.append(found)
    counts[len(query)] = 0  # none, and the exact opposites
    total = np.cumsum(counts)
    most = int(np.searchsorted(total, NEAREST))
    if most < len(query) and total[most] > NEAREST + MAX_TIED:
        most -= 1
    most = min(most, len(query) - 1)
    return [
        np.zeros(0, np.int64) if found is None else np.flatnonzero(found <= most)
        for found in distances
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
