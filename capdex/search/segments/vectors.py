"""Vectors of a segment's documents: eight bits a dimension, and the signs for a fast scan."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.int8]
Mask = NDArray[np.bool_]

SCALE: Final = 508.0  # of a unit vector: a component of 0.25, which few reach, becomes 127


@dataclass(frozen=True)
class Vectors:
    """A row of `dimension` numbers for each document; a row of zeros where there is none yet.

    `dimension` is a multiple of 64. `signs[i]` has the signs of 64 dimensions of every document.
    """

    rows: Vector
    signs: NDArray[np.uint64] = field(init=False, repr=False)
    known: Mask = field(init=False, repr=False)

    def __post_init__(self) -> None:
        packed = np.packbits(self.rows > 0, axis=1).view(np.uint64)
        object.__setattr__(self, "signs", np.ascontiguousarray(packed.T))
        object.__setattr__(self, "known", self.rows.any(axis=1))

    def distances(self, query: Vector) -> NDArray[np.uint16]:
        """Return in how many dimensions the sign of each document differs from that of a query."""
        wanted = np.packbits(query > 0).view(np.uint64)
        total = np.zeros(len(self.rows), np.uint16)
        for signs, bits in zip(self.signs, wanted, strict=True):
            total += np.bitwise_count(signs ^ bits)
        return total

    def similarities(self, query: Vector, places: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the cosine of the query and of the documents at some places, 0 where none is."""
        rows = self.rows[places].astype(np.float32)
        mine = query.astype(np.float32)
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows)) * np.sqrt(mine @ mine)
        cosines = np.zeros(len(rows), np.float32)
        np.divide(rows @ mine, lengths, out=cosines, where=lengths > 0)
        return cosines


def quantise(vectors: NDArray[Any]) -> Vector:
    """Return vectors of any length in eight bits a dimension; zeros where one is not finite."""
    exact = np.asarray(vectors, np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", exact, exact))[:, None]
    usable = np.isfinite(lengths) & (lengths > 0)
    unit = np.zeros_like(exact)
    np.divide(exact, lengths, out=unit, where=usable)
    rounded: Vector = np.clip(np.rint(unit * SCALE), -127, 127).astype(np.int8)
    return rounded
