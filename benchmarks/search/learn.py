"""Learn the map of questions: leaving one family of sets out each time, to measure, or from all.

    python benchmarks/search/learn.py GIVEN CLONES
    python benchmarks/search/learn.py GIVEN CLONES --write     (all of them, into capdex/data)

GIVEN has a folder for each set as fit.py takes it, CLONES the repositories of labelled.py. The map
starts as the identity. A step moves the vectors of questions towards the packages that answer them
and away from others (softmax of cosines), all families of sets alike; a penalty holds the map near
the identity. A step is Newton's with a rough curvature, so that few are enough. The map is the mean
of those of several samples of questions and packages. Only questions are mapped, so packages keep
their vectors. The same input gives the same map but for the last bits of sums.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from adapter import build
from fit import ndcg
from labelled import Labelled, given, teaching, testing
from numpy.typing import NDArray

from capdex.search import semantic
from capdex.search.encoder import QUESTION_MAP, QUESTION_STEP, SentenceEncoder
from capdex.search.engine import Engine
from capdex.search.semantic import encode_documents, encode_query

STEPS: Final = 5
TEMPERATURE: Final = 0.08
PENALTY: Final = 3.0  # of the mean square difference from the identity in a row
CURVATURE: Final = 4.0  # of the loss, by the spread of the questions; less makes steps swing
QUESTIONS: Final = 800  # of a family
PACKAGES: Final = 1_200  # of a set, beside those that answer
WEIGHTS: Final = (53.0, 66.0, 79.0)
SEEDS: Final = range(3)

Floats = NDArray[np.float32]


class Taught:
    """The vectors of a set: questions, packages, and which answer which."""

    def __init__(self, of: Labelled, encoder: SentenceEncoder) -> None:
        vectors = encode_documents(encoder, of.documents)
        places = {x.name: place for place, x in enumerate(of.documents)}
        self.packages = _unit(np.array([vectors[x] for x in places], np.float32))
        self.questions = encoder.encode([text[: semantic.MAX_QUERY_CHARS] for text, _ in of.asked])
        self.answers = np.zeros((len(of.asked), len(places)), bool)
        for row, (_, names) in enumerate(of.asked):
            self.answers[row, [places[x] for x in names if x in places]] = True


@dataclass(frozen=True)
class Sample:
    """Questions of a set, packages, and which answer which: each question has one that does."""

    questions: Floats
    packages: Floats
    answers: NDArray[np.bool_]


def sample(family: Sequence[Taught], seed: int) -> list[Sample]:
    """Return some questions and packages of each set of a family."""
    draw = np.random.default_rng(seed)
    found = []
    for taught in family:
        rows = draw.permutation(len(taught.questions))[: QUESTIONS // len(family)]
        rows = rows[taught.answers[rows].any(axis=1)]
        answers = taught.answers[rows]
        others = draw.permutation(answers.shape[1])[:PACKAGES]
        columns = np.union1d(np.flatnonzero(answers.any(axis=0)), others)
        found.append(Sample(taught.questions[rows], taught.packages[columns], answers[:, columns]))
    return found


def learn(families: Sequence[Sequence[Sample]]) -> Floats:
    """Return the map that samples of families teach, each family as much as the others."""
    dimension = families[0][0].packages.shape[1]
    identity = np.eye(dimension, dtype=np.float32)
    pull = 2 * PENALTY / dimension
    counts = [sum(len(x.questions) for x in family) for family in families]
    each = [1 / (len(families) * count) for count in counts]
    spread = sum(
        share * x.questions.T @ x.questions
        for family, share in zip(families, each, strict=True)
        for x in family
    )
    step = np.linalg.inv(CURVATURE * spread + pull * identity)
    learnt = identity
    for _ in range(STEPS):
        gradient = pull * (learnt - identity)
        for family, share in zip(families, each, strict=True):
            gradient += share * sum(_gradient(x, learnt) for x in family)
        learnt = np.asarray(learnt - step @ gradient, np.float32)
    return learnt


def _gradient(of: Sample, learnt: Floats) -> Floats:
    """The gradient of the sum of the losses of questions.

    The loss of an answer with the cosine c is softplus(log Σ exp(other / τ) - c / τ).
    """
    mapped = of.questions @ learnt
    lengths = np.linalg.norm(mapped, axis=1, keepdims=True)
    unit = mapped / lengths
    scores = unit @ of.packages.T / TEMPERATURE
    wrong = np.where(of.answers, -np.inf, scores)
    most = wrong.max(axis=1, keepdims=True)
    shares = np.exp(wrong - most)
    total = shares.sum(axis=1, keepdims=True)
    pulled = of.answers / (1 + np.exp(scores - most - np.log(total)))
    pulled /= of.answers.sum(axis=1, keepdims=True)
    by_score = shares / total * pulled.sum(axis=1, keepdims=True) - pulled
    by_unit = by_score @ of.packages / TEMPERATURE
    by_mapped = (by_unit - unit * np.sum(by_unit * unit, axis=1, keepdims=True)) / lengths
    return np.asarray(of.questions.T @ by_mapped, np.float32)


def quality(engine: Engine, of: Labelled, encoder: SentenceEncoder) -> list[float]:
    """The mean nDCG@10 of a set at each weight."""
    totals = [0.0] * len(WEIGHTS)
    for text, names in of.asked:
        lexical, vector = engine.scores(text[:4096]), encode_query(encoder, text)
        for number, weight in enumerate(WEIGHTS):
            semantic.SIMILARITY_WEIGHT = weight  # type: ignore[misc]
            hits = engine.page(engine.fuse(lexical, vector), limit=10).hits
            totals[number] += ndcg([hit.name for hit in hits], names)
    return [total / len(of.asked) for total in totals]


def rounded(learnt: Floats) -> NDArray[np.int8]:
    """Return a map as its file has it."""
    steps = np.rint((learnt - np.eye(len(learnt), dtype=np.float32)) / QUESTION_STEP)
    return np.clip(steps, -127, 127).astype(np.int8)


def _unit(vectors: Floats) -> Floats:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class _Learner(SentenceEncoder):
    """The encoder with another map, which remembers what it has encoded."""

    def __init__(self) -> None:
        super().__init__()
        self.learnt: Floats = np.eye(self.dimension, dtype=np.float32)
        self._known: dict[str, Any] = {}

    def encode(self, texts: Sequence[str]) -> NDArray[Any]:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        self._known.update(zip(new, super().encode(new), strict=True) if new else ())
        return np.array([self._known[text] for text in texts])

    def encode_question(self, text: str) -> NDArray[Any]:
        found: NDArray[Any] = self.encode([text])[0] @ self.learnt
        return found

    def take(self, learnt: Floats) -> None:
        self.learnt = np.eye(self.dimension, dtype=np.float32) + rounded(learnt) * np.float32(
            QUESTION_STEP
        )


def main() -> None:
    encoder = _Learner()
    folders = sorted(path for path in Path(sys.argv[1]).iterdir() if path.is_dir())
    measured = {folder.name: given(folder, folder.name) for folder in folders}
    sets = measured | teaching(Path(sys.argv[2]), measured)
    measured |= testing(Path(sys.argv[2])) | {x: sets[x] for x in ("apibench", "toolalpaca")}
    taught = {name: Taught(x, encoder) for name, x in sets.items()}
    families = sorted({x.family for x in sets.values()})

    samples = [
        {f: sample([taught[n] for n, x in sets.items() if x.family == f], seed) for f in families}
        for seed in SEEDS
    ]

    @cache
    def learnt_without(family: str) -> Floats:
        kept = [[x for f, x in of.items() if f != family] for of in samples]
        return np.mean([learn(x) for x in kept], axis=0, dtype=np.float32)

    if "--write" in sys.argv:
        data = Path(semantic.__file__).parents[1] / "data"
        np.save(data / QUESTION_MAP, rounded(learnt_without("")))
        return
    print(f"{'':20}" + "".join(f"{x:>18.0f}" for x in WEIGHTS))
    rows = []
    for name, of in measured.items():
        engine = build(of.documents, encoder)
        encoder.learnt = np.eye(encoder.dimension, dtype=np.float32)
        before = quality(engine, of, encoder)
        encoder.take(learnt_without(of.family if of.family in families else ""))
        rows.append([*zip(before, quality(engine, of, encoder), strict=True)])
        print(f"{name:20}" + "".join(f"{x:9.4f} → {y:.4f}" for x, y in rows[-1]), flush=True)
    for what, chosen in (("given", rows[: len(folders)]), ("others", rows[len(folders) :])):
        means = np.array(chosen).mean(axis=0)
        print(f"{what:20}" + "".join(f"{x:9.4f} → {y:.4f}" for x, y in means))


if __name__ == "__main__":
    main()
