"""Filters of a search: values that a package has or has not, and minimums of its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from capdex.search.segments.segment import Mask, WordSegment


@dataclass(frozen=True, slots=True)
class Filters:
    """All of these must hold of a package; values are compared as they stand.

    `any_of`: it has one of the values of each key; `none_of`: it has none of them; `at_least`: it
    has each number, and that is as high; `at_most`: it has the number, and that is as low.
    """

    any_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    none_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    at_least: Mapping[str, float] = field(default_factory=dict)
    at_most: Mapping[str, float] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.any_of or self.none_of or self.at_least or self.at_most)

    def mask(self, segment: WordSegment) -> Mask:
        """Return which documents of a segment fulfil the filters, a bool for each slot."""
        keep = np.ones(len(segment.names), np.bool_)
        for key, values in self.any_of.items():
            keep &= segment.having(key, values)
        for key, values in self.none_of.items():
            keep &= ~segment.having(key, values)
        nothing = np.full(len(segment.names), np.nan)  # no comparison with it is true
        for key, least in self.at_least.items():
            keep &= segment.numbers.get(key, nothing) >= least
        for key, most in self.at_most.items():
            keep &= segment.numbers.get(key, nothing) <= most
        return keep
