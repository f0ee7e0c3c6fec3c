"""Points of phrases by logistic regression: none negative, none above a sixth of enough.

The loss is that of windows, plus `PENALTY` times the sum of the weights, so that most are zero.
Coordinate descent finds its minimum: one weight after another, round after round.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from math import exp

from capdex.manifest.jailbreak_words import ENOUGH, LONGEST, windows

PENALTY = 2.0
ORDINARY = 0.5  # weight of a window of ordinary text; a jailbreak prompt weighs at most 1
GROUPS = 8  # of jailbreak prompts that a phrase must occur in
HEAVIEST = 0.17  # of enough: six phrases at least make a finding
MOST_WINDOWS = 12  # of an ordinary text: those with the most known phrases
ROUNDS = 60
SMALLEST = 1e-3  # change of a weight that another round is worth
LONGEST_STEP = 0.5
MARKUP = frozenset(["amp", "gt", "lt", "quot", "nbsp", "http", "https", "www", "com", "x", "b"])
COMMON = frozenset(
    """
    a about above after again all also am an and any are as at be because been before being below
    between both but by can could did do does doing down during each few for from further had has
    have having he her here hers him his how i if in into is it its just like made make many may me
    more most much must my no nor not of off on once one only or other our out over own put same
    shall she should so some such than that the their them then there these they this those
    through to too two under until up us use used very was way we were what when where which while
    who whom why will with would yes you your yours im ill ive its youre youll dont
    """.split()  # noqa: SIM905 - a list of words is read more easily as a text
)
# Words of any prompt: they tell something only beside others.
PLAIN = COMMON | frozenset(
    """
    able act acting acts ability always answer answers answering anything asked ask asking begin
    call called cannot care detailed even ever everything example first follow friend game give
    given gives giving going hello help hi however human humans information internet know knows
    lets like likes list lot love loves making matter message nothing now people person place play
    possible please power powerful prompt prompts provide question questions refer remember remind
    replies reply required respond response responses role said say saying says second sentence
    speak speaking start sure take talk talks tell thing things think time trained understand user
    want wants word words world write writing
    """.split()  # noqa: SIM905 - likewise
)

Phrase = tuple[str, ...]
Text = Sequence[str]


def phrases(window: Text) -> set[Phrase]:
    """Phrases of up to `LONGEST` words that tell something."""
    found: set[Phrase] = set()
    for length in range(1, LONGEST + 1):
        found.update(zip(*(window[i:] for i in range(length)), strict=False))
    return {x for x in found if tells(x)}


def tells(phrase: Phrase) -> bool:
    if any(word in MARKUP for word in phrase):
        return False
    telling = sum(word not in PLAIN for word in phrase)
    if len(phrase) == 1 or telling == 1:
        return telling == len(phrase)  # such a word counts by itself, and so only once
    return len(phrase) == LONGEST or not all(word in COMMON for word in phrase)


def learn(jailbreaks: Sequence[tuple[int, Text]], ordinary: Sequence[Text]) -> dict[str, int]:
    """Learn points from jailbreak prompts, each with its group, and from ordinary texts.

    The heaviest phrase comes first; phrases without points are left out.
    """
    of_group = Counter(group for group, _ in jailbreaks)
    seen: dict[Phrase, set[int]] = defaultdict(set)
    rows: list[tuple[set[Phrase], float, int]] = []  # phrases of a window, its weight, its class
    for group, text in jailbreaks:
        parts = [phrases(window) for window in windows(text)]
        for part in parts:
            rows.append((part, 1 / len(parts) / of_group[group] ** 0.5, 1))
            for phrase in part:
                seen[phrase].add(group)
    known = {phrase for phrase in seen if len(seen[phrase]) >= GROUPS}
    for text in ordinary:
        most = sorted((phrases(x) & known for x in windows(text)), key=len, reverse=True)
        rows += [(part, ORDINARY, 0) for part in most[:MOST_WINDOWS]]
    columns: dict[Phrase, list[int]] = {phrase: [] for phrase in sorted(known)}
    for number, (part, _, _) in enumerate(rows):
        for phrase in part & known:
            columns[phrase].append(number)
    weighed = _descend(columns, [x[1] for x in rows], [x[2] for x in rows])
    rounded = {" ".join(phrase): round(part * ENOUGH) for phrase, part in weighed.items()}
    kept = ((phrase, points) for phrase, points in rounded.items() if points)
    return dict(sorted(kept, key=lambda one: (-one[1], one[0])))


def _descend(
    columns: dict[Phrase, list[int]], weight: list[float], is_one: list[int]
) -> dict[Phrase, float]:
    """Minimise over one weight after another; every fifth round tries those that are zero, too."""
    margin = [0.0] * len(weight)
    slope = [0.0] * len(weight)
    curve = [0.0] * len(weight)

    def move(rows: Iterable[int], step: float) -> None:
        for i in rows:
            margin[i] += step
            chance = 1 / (1 + exp(-margin[i]))
            slope[i] = weight[i] * (chance - is_one[i])
            curve[i] = weight[i] * chance * (1 - chance)

    parts = dict.fromkeys(columns, 0.0)
    start = -3.0
    move(range(len(margin)), start)
    for number in range(ROUNDS):
        largest = 0.0
        step = max(-LONGEST_STEP, min(LONGEST_STEP, -sum(slope) / sum(curve)))
        start += step
        move(range(len(margin)), step)
        for phrase, rows in columns.items():
            old = parts[phrase]
            if not old and number % 5:
                continue
            down = PENALTY + sum(map(slope.__getitem__, rows))
            step = -down / (sum(map(curve.__getitem__, rows)) + 1e-9)
            new = old + max(-LONGEST_STEP, min(LONGEST_STEP, step))
            new = max(0.0, min(new, HEAVIEST * -start))
            if new != old:
                parts[phrase] = new
                move(rows, new - old)
                largest = max(largest, abs(new - old))
        if number % 5 == 0 and largest < SMALLEST:
            break
    return {phrase: part / -start for phrase, part in parts.items()}
