"""Whether one JSON Schema takes everything that another one takes (P2, P8).

It is proved keyword by keyword and never guessed: what cannot be decided counts as a gap unless
both schemas say the very same. Two things go beyond what is valid. A property that one schema names
and the other does not is a gap, since nobody reads it any more. And where a schema names its
properties and says nothing of others, others are taken never to have been written, so that an
optional property may be added.
"""

from __future__ import annotations

from dataclasses import dataclass

from capdex.diff.facts import Conjunction, Document, Node
from capdex.diff.gap import Gap, Place
from capdex.diff.inclusion import Effort, Inclusion, Reading

MAX_GAPS = 100  # of one comparison: nobody mends more in one go


@dataclass(frozen=True, slots=True)
class Comparison:
    """Where the new schema takes less than the old one, and where it takes more."""

    narrowed: tuple[Gap, ...] = ()
    widened: tuple[Gap, ...] = ()


def compare_schemas(
    old: Document, new: Document, reading: Reading, effort: Effort | None = None
) -> Comparison:
    """Compare two schemas both ways: what was valid and is not, and what is valid now.

    Nothing is narrowed only if `new` takes every value that `old` takes, read as said above.
    Comparisons that share an `effort` are bounded together.
    """
    effort = effort or Effort()
    narrowed = gaps(old, new, reading, effort)
    said = {(gap.path, _topic(gap)) for gap in narrowed}
    widened = gaps(new, old, reading, effort)
    return Comparison(narrowed, tuple(x for x in widened if (x.path, _topic(x)) not in said))


def gaps(source: Document, target: Document, reading: Reading, effort: Effort) -> tuple[Gap, ...]:
    """Where `target` does not take all that `source` does; none: it takes everything."""
    whole = Conjunction((Node(source.root, source),))
    found = Inclusion(reading, effort).value(whole, Node(target.root, target), Place())
    once: dict[tuple[str, str], Gap] = {}
    for gap in found:
        once.setdefault((gap.path, gap.keyword), gap)
    return tuple(once.values())[:MAX_GAPS]


def _topic(gap: Gap) -> str:
    """What is said of a place only once: a property that is gone is not optional now as well."""
    return "required" if gap.keyword == "dropped" else gap.keyword
