"""Fit the weight of meaning beside words on labelled questions, leaving one set out each time.

    python benchmarks/search/fit.py DIRECTORY

The directory has a folder for each set: `corpus.jsonl.gz`, `queries.jsonl.gz` and `qrels.tsv`.
"""

from __future__ import annotations

import gzip
import json
import math
import sys
from pathlib import Path
from typing import Any

from adapter import build, document

from capdex.search import semantic
from capdex.search.encoder import SentenceEncoder
from capdex.search.semantic import encode_query

WEIGHTS = (0.0, 26.0, 46.0, 56.0, 66.0, 76.0, 86.0, 106.0)
AT = 10  # hits that count


def lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def ndcg(found: list[str], relevant: set[str]) -> float:
    gains = [1 / math.log2(place + 2) for place in range(AT)]
    got = sum(gain for name, gain in zip(found, gains, strict=False) if name in relevant)
    return got / sum(gains[: len(relevant)])


def scores(folder: Path, encoder: SentenceEncoder) -> list[float]:
    """The mean nDCG@10 of a set at each weight."""
    engine = build(map(document, lines(folder / "corpus.jsonl.gz")), encoder)
    relevant: dict[str, set[str]] = {}
    for line in (folder / "qrels.tsv").read_text("utf-8").splitlines():
        number, name, grade = line.split("\t")
        if int(grade) > 0:
            relevant.setdefault(number, set()).add(name)
    totals = [0.0] * len(WEIGHTS)
    for query in lines(folder / "queries.jsonl.gz"):
        if query["id"] not in relevant:
            continue
        text = query["text"][:4096]
        lexical, vector = engine.scores(text), encode_query(encoder, text)
        for at, weight in enumerate(WEIGHTS):
            semantic.SIMILARITY_WEIGHT = weight  # type: ignore[misc]
            hits = engine.page(engine.fuse(lexical, vector), limit=AT).hits
            totals[at] += ndcg([hit.name for hit in hits], relevant[query["id"]])
    return [total / len(relevant) for total in totals]


def main() -> None:
    encoder = SentenceEncoder()
    folders = sorted(path for path in Path(sys.argv[1]).iterdir() if path.is_dir())
    found = {folder.name: scores(folder, encoder) for folder in folders}
    print(f"{'weight':12}" + "".join(f"{weight:8.0f}" for weight in WEIGHTS))
    for name, values in found.items():
        print(f"{name:12}" + "".join(f"{value:8.4f}" for value in values))
    means = [sum(values) / len(found) for values in zip(*found.values(), strict=True)]
    print(f"{'mean':12}" + "".join(f"{value:8.4f}" for value in means))
    left_out = 0.0
    for name, values in found.items() if len(found) > 1 else ():
        others = [
            sum(column) for column in zip(*(found[x] for x in found if x != name), strict=True)
        ]
        best = others.index(max(others))
        print(f"without {name}: weight {WEIGHTS[best]:.0f}, and then {values[best]:.4f} on {name}")
        left_out += values[best] / len(found)
    if len(found) > 1:
        print(f"one set left out: {left_out:.4f}")


if __name__ == "__main__":
    main()
