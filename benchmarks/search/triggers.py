"""Route messages over the triggers of very many packages: latency, building, memory, changes.

`python benchmarks/search/triggers.py [PACKAGES]`. Three triggers a package are made from a seed:
things and verbs that many packages share, names that one has, choices, anchors, other scripts, and
some that match everything. Each message is of a kind; all kinds are in one order at random.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from capdex.manifest.triggers import Trigger
from capdex.routing.patterns import compiled
from capdex.routing.segment import Segment, merge
from capdex.routing.stored import from_bytes, to_bytes
from capdex.routing.triggers import TriggerSet

PACKAGES = 100_000
CHUNK = 10_000
MESSAGES = 400  # of each kind
SYLLABLES = [a + b for a in "bcdfgklmnprstvz" for b in "aeiou"]
VERBS = [
    "show", "find", "book", "cancel", "translate", "summarise", "send", "convert", "plan",
    "compare", "track", "create",
]  # fmt: skip
THINGS = [
    "weather", "flights?", "train tickets?", "meeting", "invoice", "exchange rate", "recipe",
    "calendar", "news", "stock price", "hotel", "photo", "playlist", "workout", "mortgage",
    "parcel", "podcast", "repository", "pull request", "spreadsheet", "unit", "holiday",
    "museum", "allergy", "password", "backup", "tax return", "lease", "vaccine", "timetable",
]  # fmt: skip
FOREIGN = [
    "Wechselkurs", "Zugverbindung", "tipo de cambio", "jours fériés", "bulletin météo",
    "курс валют", "天气预报", "汇率", "会议安排", "翻译文档", "会議の予定", "為替レート",
    "환율", "날씨", "회의 일정", "อากาศ",
]  # fmt: skip
COMMON = [
    "please", "can", "you", "me", "the", "a", "for", "about", "tomorrow", "and", "then", "what",
    "is", "my", "next", "week", "in", "of", "to",
]  # fmt: skip


def word(random_: random.Random) -> str:
    """Return a word that looks like one."""
    return "".join(random_.choices(SYLLABLES, k=random_.randint(2, 4)))


def made(random_: random.Random, words: Sequence[str]) -> Trigger:
    """Return a trigger of one of the kinds that packages have."""
    own, place = random_.choice(words), random_.choice(words)
    thing, other = random_.choice(THINGS), random_.choice(THINGS)
    verbs = f"{random_.choice(VERBS)}|{random_.choice(VERBS)}"
    kinds: list[Callable[[], Trigger]] = [
        lambda: Trigger("keyword", f"{own} {thing.rstrip('s?')}"),
        lambda: Trigger("keyword", f"{thing.rstrip('s?')} {own}"),
        lambda: Trigger("keyword", own),
        lambda: Trigger("keyword", thing.rstrip("s?")),
        lambda: Trigger("keyword", f"{random_.choice(FOREIGN)} {own}"),
        lambda: Trigger("keyword", random_.choice(FOREIGN)),
        lambda: Trigger("regex", rf"(?i)\b({verbs}) (the |my |a )?{thing}\b.*{own}"),
        lambda: Trigger("regex", rf"(?i)\b{own} ({thing}|{other})\b"),
        lambda: Trigger("regex", rf"(?i)\b{thing}\b.*\b(in|for|to) {place}\b"),
        lambda: Trigger("regex", rf"{random_.choice(FOREIGN)}(.*){random_.choice(FOREIGN)}"),
        lambda: Trigger("regex", rf"\b\d+([.,]\d+)?\s?({own}|{place})\b.*\b(in|to|into)\b"),
        lambda: Trigger("regex", f"{own}|{thing} {place}"),
    ]  # fmt: skip
    if random_.random() < 0.002:
        return Trigger("regex", rf".*\w{{{random_.randint(0, 40)}}}\s?.*")
    return random_.choice(kinds)()


def packages(count: int, words: Sequence[str]) -> Iterator[tuple[str, list[Trigger]]]:
    """Return packages with three triggers each."""
    random_ = random.Random(1)  # noqa: S311 - data of a benchmark
    for number in range(count):
        yield f"did:nuwa:cap:c{number:06}", [made(random_, words) for _ in range(3)]


def message(random_: random.Random, words: Sequence[str], chars: int) -> str:
    """Return a message of common words, things, verbs and words that triggers have."""
    said = random_.choice(VERBS)
    while len(said) < chars:
        kind = random_.random()
        if kind < 0.2:
            said += " " + random_.choice(THINGS).rstrip("s?")
        elif kind < 0.35:
            said += " " + random_.choice(words)
        elif kind < 0.37:
            said += " " + random_.choice(FOREIGN)
        else:
            said += " " + random_.choice(COMMON)
    return said[:chars]


def memory() -> float:
    """Return the resident memory of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def show(what: str, calls: Iterable[Callable[[], object]]) -> None:
    """Print a line of the table: milliseconds of calls, on the clock and of the processor."""
    clock, busy = [], []
    for call in calls:
        began, at = time.perf_counter(), time.thread_time()
        call()
        busy.append((time.thread_time() - at) * 1000)
        clock.append((time.perf_counter() - began) * 1000)
    figures = []
    for took in (sorted(clock), sorted(busy)):
        figures += [statistics.median(took), took[int(len(took) * 0.99)]]
    print(f"{what:44}" + "".join(f"{figure:10.2f}" for figure in figures))


def matched(triggers: TriggerSet, messages: Iterable[str]) -> Iterator[Callable[[], object]]:
    """Return a call for each message, that asks for the best ten packages."""
    return (partial(triggers.match, text, 10) for text in messages)


def main(count: str = str(PACKAGES)) -> None:
    """Print the table."""
    random_ = random.Random(2)  # noqa: S311 - data of a benchmark
    words = sorted({word(random_) for _ in range(int(count) // 4)})
    given = list(packages(int(count), words))
    before, began = memory(), time.perf_counter()
    pieces = [Segment.build(given[at : at + CHUNK]) for at in range(0, len(given), CHUNK)]
    built = time.perf_counter()
    segment = merge([(piece, None) for piece in pieces])
    merged = time.perf_counter()
    del pieces
    triggers = TriggerSet([(segment, None)])
    print(
        f"{triggers.packages} packages, {len(segment.flags)} patterns ({len(segment.open)} open), "
        f"{len(segment.keys)} postings: read {built - began:.1f} s, merged {merged - built:.1f} s, "
        f"{memory() - before:.0f} MiB more, of which {size(segment):.0f} MiB arrays and texts"
    )
    stored, began = to_bytes(segment), time.perf_counter()
    from_bytes(stored)
    print(f"{len(stored) / 2**20:.0f} MiB stored, read back in {time.perf_counter() - began:.1f} s")
    kinds = {
        "one word": [random_.choice(words) for _ in range(MESSAGES)],
        "a sentence of 60 characters": [message(random_, words, 60) for _ in range(MESSAGES)],
        "200 characters": [message(random_, words, 200) for _ in range(MESSAGES)],
        "2 000 characters": [message(random_, words, 2_000) for _ in range(MESSAGES // 4)],
        "8 192 characters": [message(random_, words, 8_192) for _ in range(MESSAGES // 8)],
    }
    head = ("p50", "p99", "p50 cpu", "p99 cpu")
    print(f"{'ms, the best ten packages':44}" + "".join(f"{x:>10}" for x in head))
    for kind, texts in kinds.items():
        compiled.cache_clear()
        show(f"{kind}, nothing compiled yet", matched(triggers, texts))
    show("200 characters, the same again", matched(triggers, kinds["200 characters"]))
    changed = triggers

    def change(name: str, own: list[Trigger]) -> None:
        nonlocal changed
        changed = changed.with_packages([(name, own[:2])])
        while some := changed.mergeable():
            changed = changed.merged(some, merge(some))

    show("one package changed, and merges", (partial(change, *x) for x in packages(1_000, words)))
    show("200 characters, after 1 000 changes", matched(changed, kinds["200 characters"]))
    began = time.perf_counter()
    sources = [(part.segment, part.live) for part in changed.parts]
    changed.merged(sources, merge(sources))
    print(f"all {len(sources)} segments merged in {time.perf_counter() - began:.1f} s")
    kept = compiled.cache_info().currsize
    print(f"{memory() - before:.0f} MiB more than before, with {kept} compiled regexes")


def size(segment: Segment) -> float:
    """Return the MiB of a segment without its texts."""
    values = [getattr(segment, field) for field in segment.__slots__]
    return sum(getattr(x, "nbytes", len(x)) for x in values) / 2**20


if __name__ == "__main__":
    main(*sys.argv[1:])
