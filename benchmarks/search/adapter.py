"""An adapter of the engine for a scorer of labelled questions: JSON lines on stdin and stdout.

    -> {"op": "index", "docs": [{id, name, description, category, triggers, tools}, ...]}
    <- {"ok": true}
    -> {"op": "search", "qid": "q1", "text": "...", "k": 10}
    <- {"ids": ["...", ...]}
    -> {"op": "end"}

`--around N` puts N other packages around the documents: with `--from FILE` of real ones (a name and
a summary in each line, with a tab between), else made up of the words of filled.py.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from capdex.json_schema.keywords import words_of
from capdex.search.document import Document, ToolText
from capdex.search.encoder import SentenceEncoder
from capdex.search.engine import Engine
from capdex.search.segments.merging import merge
from capdex.search.segments.segment import WordSegment
from capdex.search.semantic import Encoder, encode_documents, encode_query

sys.path.append(str(Path(__file__).resolve().parents[1] / "service"))
AT_ONCE = 20_000


def document(given: dict[str, Any]) -> Document:
    """A document of the scorer as one of ours; its id is the name that it is found by."""
    tools = given.get("tools") or []
    return Document(
        given["id"],
        {
            "name": given.get("name") or "",
            "description": given.get("description") or "",
            "tags": given.get("category") or "",
            "triggers": "\n".join(map(str, given.get("triggers") or [])),
        },
        tuple(
            ToolText(x.get("name") or "", x.get("description") or "", words_of(x.get("parameters")))
            for x in tools
        ),
    )


def others(count: int, source: Path | None) -> Iterator[Document]:
    """Yield other packages, the same in every run; real ones of `source` if it is given."""
    if source is None:
        from filled import describe, words_of

        for number in range(count):
            name, verb, noun, _ = words_of(number)
            fields = {"name": name, "title": f"{verb} {noun}", "description": describe(number)}
            yield Document(f"around:{name}", fields)
        return
    rows = [line.split("\t", 1) for line in source.read_text("utf-8").splitlines()]
    for name, summary in random.Random(19).sample(rows, count):  # noqa: S311 - a sample
        yield Document(f"around:{name}", {"name": name, "description": summary})


def build(documents: Iterable[Document], encoder: Encoder | None) -> Engine:
    """Return an engine of documents."""
    return _engine(_segments(documents, encoder))


def _engine(pieces: Iterable[WordSegment]) -> Engine:
    return Engine([(merge((x, None) for x in pieces), None)])


def _segments(documents: Iterable[Document], encoder: Encoder | None) -> list[WordSegment]:
    """Return the segments of documents, AT_ONCE in each."""
    documents = iter(documents)
    pieces: list[WordSegment] = []
    while some := list(islice(documents, AT_ONCE)):
        engine = Engine([(WordSegment.build(some), None)])
        if encoder is not None:
            engine = engine.with_vectors(encode_documents(encoder, some))
        pieces.append(engine.parts[0].segment)
    return pieces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=["lexical", "best"], default="lexical")
    parser.add_argument("--around", type=int, default=0)
    parser.add_argument("--from", dest="source", type=Path)
    options = parser.parse_args()
    engine, around = Engine(), list[WordSegment]()
    encoder = SentenceEncoder() if options.mode == "best" else None
    for line in sys.stdin:
        message = json.loads(line)
        if message["op"] == "index":
            if options.around and not around:
                around = _segments(others(options.around, options.source), encoder)
            engine = _engine([*around, *_segments(map(document, message["docs"]), encoder)])
            print(json.dumps({"ok": True}), flush=True)
        elif message["op"] == "search":
            text = message["text"][:4096]
            scores = engine.scores(text)
            if encoder is not None and text.strip():
                scores = engine.fuse(scores, encode_query(encoder, text))
            hits = engine.page(scores, limit=message["k"]).hits
            print(json.dumps({"ids": [hit.name for hit in hits]}), flush=True)
        else:
            break


if __name__ == "__main__":
    main()
