"""Route messages over many installed triggers: latency, time to compile, hits beside brute force.

`python benchmarks/router/route.py [TRIGGERS]`. The triggers are made from a seed: phrases, words,
Chinese, patterns with choices, classes and anchors; a message hits some of them.
"""

from __future__ import annotations

import random
import resource
import statistics
import sys
import time
from collections.abc import Sequence

from capdex.manifest.triggers import Trigger, compile_pattern
from capdex.routing.text import fold, has_word, views
from capdex_router.routing.index import TriggerIndex
from capdex_router.routing.route import route
from capdex_router.routing.stack import Stack

TRIGGERS = 10_000
PER_CAPABILITY = 4
MESSAGES = 1_000
SYLLABLES = [a + b for a in "bcdfgklmnprstvz" for b in "aeiou"]
HAN = "记账天气预报翻译文档会议安排提醒购买机票酒店音乐电影新闻股票汇率地图导航邮件"


def word(random_: random.Random) -> str:
    """Return a word that looks like one."""
    return "".join(random_.choices(SYLLABLES, k=random_.randint(2, 4)))


def han(random_: random.Random) -> str:
    """Return a few Chinese characters."""
    return "".join(random_.choices(HAN, k=random_.randint(2, 4)))


def made(random_: random.Random, words: Sequence[str]) -> Trigger:
    """Return a trigger of one of the kinds that packages have."""
    one, two, three = random_.choices(words, k=3)
    kinds = [
        Trigger("keyword", one),
        Trigger("keyword", f"{one} {two}"),
        Trigger("keyword", han(random_)),
        Trigger("regex", f"{one}|{two} {three}"),
        Trigger("regex", rf"(?i)\b({one}|{two}) (the|a|my) {three}\b"),
        Trigger("regex", f"^{one}.*{two}"),
        Trigger("regex", rf"{one}\s+\d+ {two}"),
        Trigger("regex", f"{han(random_)}(.*){han(random_)}"),
    ]
    return random_.choice(kinds)


def message(random_: random.Random, words: Sequence[str], chars: int) -> str:
    """Return a message of common words, some that triggers have, and sometimes Chinese."""
    parts = ["please", "show", "me", "the", "report", "about", "tomorrow", "and", "then"]
    said = ""
    while len(said) < chars:
        said += " " + random_.choice(words if random_.random() < 0.15 else parts)
        if random_.random() < 0.03:
            said += han(random_)
    return said[:chars].strip()


def timed(index: TriggerIndex, messages: Sequence[str]) -> list[float]:
    """Return the milliseconds of each route."""
    took = []
    for text in messages:
        began = time.perf_counter()
        route(text, Stack(), index, 0.0)
        took.append((time.perf_counter() - began) * 1000)
    return sorted(took)


def brute(triggers: dict[str, list[Trigger]], texts: Sequence[str]) -> list[set[tuple[str, str]]]:
    """Return the hits of every pattern searched by itself."""
    found: list[set[tuple[str, str]]] = [set() for _ in texts]
    for name, own in triggers.items():
        for trigger in own:
            pattern = compile_pattern(f"(?i){trigger.value}") if trigger.type == "regex" else None
            for hits, text in zip(found, texts, strict=True):
                folded = fold(text)
                if pattern is None:
                    hit = has_word(folded, fold(trigger.value))
                else:
                    hit = any(pattern.search(view) is not None for view in views(text, folded))
                if hit:
                    hits.add((name, trigger.value))
    return found


def show(what: str, took: Sequence[float]) -> None:
    """Print a line of figures."""
    p99 = took[int(len(took) * 0.99)]
    print(f"{what:44} p50 {statistics.median(took):6.2f} ms   p99 {p99:6.2f}   max {took[-1]:6.2f}")


def main(count: str = str(TRIGGERS)) -> None:
    """Print the figures."""
    random_ = random.Random(1)  # noqa: S311 - data of a benchmark
    words = sorted({word(random_) for _ in range(20_000)})
    triggers: dict[str, list[Trigger]] = {}
    for number in range(int(count) // PER_CAPABILITY):
        different = dict.fromkeys(made(random_, words) for _ in range(PER_CAPABILITY))
        triggers[f"did:nuwa:cap:c{number}"] = list(different)
    index = TriggerIndex()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    for name, own in triggers.items():
        index.add(name, own)
    added = time.perf_counter()
    index.compile()
    done = time.perf_counter()
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    total = sum(map(len, triggers.values()))
    print(
        f"{total} triggers of {len(triggers)} capabilities: "
        f"add {added - began:.2f} s, compile {done - added:.2f} s, {memory:.0f} MiB"
    )
    short = [message(random_, words, 200) for _ in range(MESSAGES)]
    show("first 100 messages of 200 characters", timed(index, short[:100]))
    show("messages of 200 characters", timed(index, short))
    texts = short[:20]
    indexed = [{(h.name, h.text) for h in index.hits(text)} for text in texts]
    same = indexed == brute(triggers, texts)
    print(f"hits equal to brute force in {len(texts)} messages: {same}, {sum(map(len, indexed))}")
    one_more = time.perf_counter()
    index.add("did:nuwa:cap:one-more", [Trigger("keyword", "one more"), Trigger("regex", "more")])
    index.compile()
    print(f"one more capability: {(time.perf_counter() - one_more) * 1000:.1f} ms")
    for number in range(100):
        index.add(f"did:nuwa:cap:broad{number}", [Trigger("regex", rf".*\w{{{number % 9}}}\d?")])
    for number in range(100):
        pattern = rf"[a-m]+\s[n-z]\w*\s?[^x]{{0,{number}}}\d?$"
        index.add(f"did:nuwa:cap:slow{number}", [Trigger("regex", pattern)])
    index.compile()
    long = [message(random_, words, 2_048) for _ in range(200)]
    show("messages of 2 KB, 100 active broad triggers", timed(index, long))


if __name__ == "__main__":
    main(*sys.argv[1:])
