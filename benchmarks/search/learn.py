"""Learn the map of questions: leaving one family of sets out each time, to measure, or from all.

    python benchmarks/search/learn.py GIVEN CLONES
    python benchmarks/search/learn.py GIVEN CLONES --write     (all of them, into capdex/data)

GIVEN has a folder for each set as fit.py takes it, CLONES the repositories of labelled.py. The map
starts as the identity. A step takes questions of one set, and moves their vectors towards the
packages that answer them and away from others (softmax of cosines over NEGATIVES packages); a
penalty holds it near the identity. The map is the mean of those of several draws, which serves
questions that none has seen better than each. Only questions are mapped, so packages keep their
vectors. The same input gives the same map but for the last bits of sums.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
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

STEPS: Final = 1_000
RATE: Final = 3e-4
TEMPERATURE: Final = 0.08
PENALTY: Final = 3.0  # of the mean square difference from the identity in a row
QUESTIONS: Final = 96  # of a step
NEGATIVES: Final = 512
WEIGHTS: Final = (20.0, 26.0, 32.0)
SEEDS: Final = range(5)

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


def learn(families: Sequence[Sequence[Taught]]) -> Floats:
    """Return the map that families of sets teach: the mean of those of several draws."""
    return np.mean([_learn(families, seed) for seed in SEEDS], axis=0, dtype=np.float32)


def _learn(families: Sequence[Sequence[Taught]], seed: int) -> Floats:
    """Return the map of one draw, which has each family as often as the others."""
    draw = np.random.default_rng(seed)
    dimension = families[0][0].packages.shape[1]
    identity = np.eye(dimension, dtype=np.float32)
    learnt = identity.copy()
    mean, square = np.zeros_like(learnt), np.zeros_like(learnt)
    for step in range(1, STEPS + 1):
        family = families[int(draw.integers(len(families)))]
        gradient = _gradient(family[int(draw.integers(len(family)))], learnt, draw)
        gradient += 2 * PENALTY / dimension * (learnt - identity)
        mean += 0.1 * (gradient - mean)  # Adam, by its usual constants
        square += 0.001 * (gradient**2 - square)
        moved = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        learnt -= np.float32(RATE) * moved
    return learnt


def _gradient(taught: Taught, learnt: Floats, draw: np.random.Generator) -> Floats:
    """The gradient of the loss of some questions of a set.

    The loss of an answer with the cosine c is softplus(log Σ exp(other / τ) - c / τ).
    """
    rows = draw.integers(len(taught.questions), size=QUESTIONS)
    asked, answers = taught.questions[rows], taught.answers[rows]
    others = draw.permutation(answers.shape[1])[:NEGATIVES]
    columns = np.union1d(np.flatnonzero(answers.any(axis=0)), others)
    packages, right = taught.packages[columns], answers[:, columns]
    mapped = asked @ learnt
    lengths = np.linalg.norm(mapped, axis=1, keepdims=True)
    unit = mapped / lengths
    scores = unit @ packages.T / TEMPERATURE
    wrong = np.where(right, -np.inf, scores)
    most = wrong.max(axis=1, keepdims=True)
    shares = np.exp(wrong - most)
    total = shares.sum(axis=1, keepdims=True)
    pulled = right / (1 + np.exp(scores - most - np.log(total))) / right.sum(axis=1, keepdims=True)
    by_score = shares / total * pulled.sum(axis=1, keepdims=True) - pulled
    by_unit = by_score @ packages / (TEMPERATURE * QUESTIONS)
    by_mapped = (by_unit - unit * np.sum(by_unit * unit, axis=1, keepdims=True)) / lengths
    return np.asarray(asked.T @ by_mapped, np.float32)


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

    def learnt_without(family: str) -> Floats:
        kept = [x for x in families if x != family]
        return learn([[taught[n] for n, x in sets.items() if x.family == f] for f in kept])

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
        encoder.take(learnt_without(of.family))
        rows.append([*zip(before, quality(engine, of, encoder), strict=True)])
        print(f"{name:20}" + "".join(f"{x:9.4f} → {y:.4f}" for x, y in rows[-1]), flush=True)
    for what, chosen in (("given", rows[: len(folders)]), ("others", rows[len(folders) :])):
        means = np.array(chosen).mean(axis=0)
        print(f"{what:20}" + "".join(f"{x:9.4f} → {y:.4f}" for x, y in means))


if __name__ == "__main__":
    main()
