"""Sorted texts in one run of bytes: a tenth of the memory of a list, and read as it is stored."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import overload

import numpy as np
from numpy.typing import NDArray


class Strings(Sequence[str]):
    """Texts by number. UTF-8 sorts as code points do; `ends` has the end of each, in bytes."""

    __slots__ = ("_ends", "data", "ends")

    def __init__(self, data: bytes, ends: NDArray[np.int64]) -> None:
        self.data, self.ends = data, ends
        self._ends = memoryview(ends.data)  # its items are read three times as fast

    @classmethod
    def of(cls, texts: Iterable[str]) -> Strings:
        """Return these texts in their order."""
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), dtype=np.int64)
        return cls(b"".join(encoded), ends)

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, slice):
            first, last, _ = at.indices(len(self))
            bounds = [self._ends[first - 1] if first else 0, *self._ends[first:last]]
            return [self.data[i:j].decode("utf-8", "surrogatepass") for i, j in pairwise(bounds)]
        begin = self._ends[at - 1] if at else 0
        return self.data[begin : self._ends[at]].decode("utf-8", "surrogatepass")

    def place(self, text: str) -> int | None:
        """Return the number of a text, None if it is not there."""
        at = bisect_left(self, text)
        return at if at < len(self) and self[at] == text else None
