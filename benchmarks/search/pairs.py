"""Quality across languages: Chinese questions for English packages, and the other way round.

    python benchmarks/search/pairs.py [DIRECTORY]

`pairs_zh.tsv` has for each of 100 subjects an English and a Chinese package, and a question in each
language. The packages of a DIRECTORY as fit.py takes are put around the English ones.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

from adapter import build, document
from fit import lines

from capdex.search.document import Document
from capdex.search.encoder import SentenceEncoder
from capdex.search.engine import Engine
from capdex.search.semantic import Encoder, encode_query

SUBJECTS = Path(__file__).with_name("pairs_zh.tsv").read_text("utf-8").splitlines()


def measure(engine: Engine, encoder: Encoder | None, asked: dict[str, str]) -> tuple[float, float]:
    """nDCG@10, and the share of questions whose package is first."""
    gains = first = 0.0
    for name, question in asked.items():
        scores = engine.scores(question)
        if encoder is not None:
            scores = engine.fuse(scores, encode_query(encoder, question))
        found = [hit.name for hit in engine.page(scores, limit=10).hits]
        if name in found:
            gains += 1 / math.log2(found.index(name) + 2)
            first += found[0] == name
    return gains / len(asked), first / len(asked)


def main() -> None:
    encoder = SentenceEncoder()
    rows = [line.split("\t") for line in SUBJECTS]
    english = [Document(f"zh-asks:{x[0]}", {"description": x[1]}) for x in rows]
    chinese = [Document(f"en-asks:{x[0]}", {"description": x[2]}) for x in rows]
    for folder in sorted(Path(sys.argv[1]).iterdir()) if len(sys.argv) > 1 else ():
        english += map(document, lines(folder / "corpus.jsonl.gz"))
    for what, packages, asked in (
        ("Chinese questions", english, {f"zh-asks:{x[0]}": x[4] for x in rows}),
        ("English questions", chinese, {f"en-asks:{x[0]}": x[3] for x in rows}),
    ):
        engine = build(packages, encoder)
        for mode, chosen in (("lexical", None), ("semantic", encoder)):
            ndcg, first = measure(engine, chosen, asked)
            print(
                f"{what}, {len(packages)} packages, {mode}: nDCG@10 {ndcg:.3f}, first {first:.2f}"
            )


if __name__ == "__main__":
    main()
