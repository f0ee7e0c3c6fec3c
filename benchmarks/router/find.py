"""find.py [FOLDER] [meaning]: how often the right capability is among the five that `find` answers.

10, 100 and 10 000 packages are listed as their installation lists them. Each is asked for by its
exact name, and by a sentence made from a seed with its verb and its noun. That is easy: the name
has both words. Packages of the same two words count as right, too.

FOLDER holds question sets with labels, as `corpus.jsonl.gz`, `queries.jsonl.gz` and `qrels.tsv` in
folders of their own. All their documents and made-up packages are listed together, 10 000 of them,
and drawn questions of each set are asked; at 10 and 100, documents that are right for the question
and others. A question with several right documents counts as answered if one of them is found.
With `meaning` a node of this machine that has the same packages is asked first, as `find` does; it
encodes them in two minutes.
"""

from __future__ import annotations

import asyncio
import csv
import gzip
import json
import random
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from install import ROOT, announced

from capdex.json_schema.keywords import words_of
from capdex.package import verify
from capdex.uri import PREFIX
from capdex_router.catalog.catalog import Catalog, Listed
from capdex_router.catalog.search import Search, _document
from capdex_router.catalog.short_forms import short
from capdex_router.install.resolve import MAX_HITS
from capdex_router.model.capability import Capability
from capdex_router.model.refs import CapabilityRef

sys.path += [str(ROOT / "benchmarks" / x) for x in ("service", "search")]
import filled

SIZES = (10, 100, 10_000)
ASKED = 200  # questions of each size or set
ASKED_FEW = 50  # of each set, where each question has an index of its own
LIMIT = 5
SAID = (
    "I would like to {verb} some {noun} for tomorrow",
    "can you help me with {noun}? I need to {verb} them",
    "please {verb} the {noun} of my team",
)


@dataclass(frozen=True, slots=True)
class Question:
    """A wish, and the packages that are right for it."""

    text: str
    right: frozenset[str]


def memory_mb() -> float:
    """The resident memory of this process."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * 4096 / 1e6


class Source:
    """Packages in short."""

    revision = 0

    def __init__(self, packages: Iterable[Sequence[Listed]]) -> None:
        self._packages = [listed for package in packages for listed in package]

    def listed(self) -> list[Listed]:
        return self._packages

    def load(self, ref: CapabilityRef) -> Capability:
        raise LookupError(f"{ref.capability_id} is here in short alone")


def recall(
    search: Search, questions: Sequence[Question], node: Callable[[str], list[str]] | None = None
) -> float:
    """The share of questions for which one of the right packages, or its tool, is found."""

    def found(question: Question) -> bool:
        first = dict.fromkeys(node(question.text), "meaning") if node else {}
        hits = search.find(question.text, LIMIT, first)
        return any(x.listed.ref.capability_id.partition("#")[0] in question.right for x in hits)

    return fmean(map(found, questions))


def show(what: str, search: Search, questions: Sequence[Question]) -> None:
    share = recall(search, questions)
    print(f"{what}: right one in five {share:.1%}, n = {len(questions)}")


def document(one: dict[str, Any], name: str) -> list[Listed]:
    """A document of a question set as a package: its skill, then its tools."""
    terms = " ".join(str(x.get("value", "")) for x in one["triggers"])
    skill = Listed(
        CapabilityRef(name, "1.0.0"), "skill", one["name"], one["description"], one["category"],
        terms,
    )  # fmt: skip
    tools = [
        Listed(
            CapabilityRef(f"{name}#{tool['name']}", "1.0.0"), "tool", tool["name"],
            tool["description"], one["category"], words_of(tool.get("parameters")),
        )
        for tool in one["tools"]
    ]  # fmt: skip
    return [skill, *tools]


def lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def read(folder: Path) -> tuple[dict[str, list[Listed]], list[Question]]:
    """The documents of a question set by their package names, and its questions."""
    names = {}
    packages = {}
    for number, one in enumerate(lines(folder / "corpus.jsonl.gz")):
        names[one["id"]] = name = f"{PREFIX}{folder.name}-{number}"
        packages[name] = document(one, name)
    right: dict[str, set[str]] = {}
    with (folder / "qrels.tsv").open(encoding="utf-8") as file:
        for row in csv.reader(file, delimiter="\t"):
            if len(row) > 2 and row[-1].isdecimal() and int(row[-1]):
                right.setdefault(row[0], set()).add(names[row[-2]])
    texts = {one["id"]: one["text"] for one in lines(folder / "queries.jsonl.gz")}
    return packages, [Question(texts[key], frozenset(found)) for key, found in right.items()]


def node_of(packages: Iterable[Sequence[Listed]]) -> Callable[[str], list[str]]:
    """What a node that searches by meaning answers with: the names of at most MAX_HITS packages."""
    from adapter import build

    from capdex.search.encoder import SentenceEncoder
    from capdex.search.semantic import encode_query

    encoder = SentenceEncoder()
    documents = (_document(x[0].ref.capability_id.partition("#")[0], x) for x in packages)
    engine = build(documents, encoder)

    def find(text: str) -> list[str]:
        scores = engine.fuse(engine.scores(text), encode_query(encoder, text))
        return [hit.name for hit in engine.page(scores, limit=MAX_HITS).hits]

    return find


def made_up(listed: dict[str, list[Listed]]) -> None:
    """Ask for packages of made-up names."""
    random_ = random.Random(1)  # noqa: S311 - data of a benchmark
    for size in SIZES:
        search = Search(Catalog([Source(list(listed.values())[:size])]))
        drawn = random_.sample(range(size), min(size, ASKED))
        exact, wishes = [], []
        for number in drawn:
            name, verb, noun, _ = filled.words_of(number)
            exact += [Question(text, frozenset({PREFIX + name})) for text in (name, PREFIX + name)]
            alike = [
                PREFIX + filled.words_of(other)[0]
                for other in range(size)
                if filled.words_of(other)[1:3] == (verb, noun)
            ]
            wishes.append(
                Question(random_.choice(SAID).format(verb=verb, noun=noun), frozenset(alike))
            )
        show(f"{size} installed, exact names", search, exact)
        show(f"{size} installed, sentences", search, wishes)


def labelled(folder: Path, others: dict[str, list[Listed]], meaning: str) -> None:
    """Ask the questions of all sets in a folder."""
    random_ = random.Random(1)  # noqa: S311 - data of a benchmark
    sets = {path.parent.name: read(path.parent) for path in sorted(folder.rglob("qrels.tsv"))}
    documents = {k: v for packages, _ in sets.values() for k, v in packages.items()}
    everything = list((documents | others).values())[: max(SIZES)]
    before = memory_mb()
    search = Search(Catalog([Source(everything)]))
    search.find("the first one builds the engine", LIMIT)
    print(f"the engine of {len(everything)} packages takes {memory_mb() - before:.0f} MB")
    node = node_of(everything) if meaning else None
    shares = []
    for name, (_, questions) in sets.items():
        drawn = random_.sample(questions, min(len(questions), ASKED))
        shares.append(recall(search, drawn, node))
        print(
            f"{len(everything)} installed, {name}: right one in five {shares[-1]:.1%}, "
            f"n = {len(drawn)}"
        )
    print(f"{len(everything)} installed, mean of the sets: {fmean(shares):.1%}")
    for size in SIZES[:-1]:
        recalls = []
        for _, questions in sets.values():
            for question in random_.sample(questions, min(len(questions), ASKED_FEW)):
                rest = random_.sample(sorted(documents.keys() - question.right), size)
                here = [*sorted(question.right)[:size], *rest][:size]
                few = Search(Catalog([Source(documents[name] for name in here)]))
                recalls.append(recall(few, [question]))
        print(
            f"{size} installed, questions of all sets: right one in five {fmean(recalls):.1%}, "
            f"n = {len(recalls)}"
        )


async def main(folder: str = "", meaning: str = "") -> None:
    """Print a line for each size and kind of question."""
    made = await filled.make(max(SIZES))
    listed = {PREFIX + one[0]: list(short(verify(announced(*one), one[2]))) for one in made}
    made_up(listed)
    if folder:
        labelled(Path(folder), listed, meaning)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
