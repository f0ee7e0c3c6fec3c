"""Arrays as bytes, which are read back only if nothing about them is wrong.

The bytes are the arrays one after the other, each with its length before it and filled up to a
multiple of 8, between a line that names what they are and a SHA-256 of all of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from itertools import pairwise
from mmap import mmap
from operator import lt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from capdex.errors import InvalidInput
from capdex.text.strings import Strings

Chunk = bytes | memoryview
Data = bytes | mmap  # a mapped file is shared by the processes that read it
_HEAD_BYTES: Final = 32
_DIGEST_BYTES: Final = 32


def write(head: str, arrays: Iterable[NDArray[Any]]) -> list[Chunk]:
    """Return arrays as the pieces of a file, not copied; equal ones have equal bytes.

    `head` has fewer than 32 characters.
    """
    chunks: list[Chunk] = [_line(head)]
    for values in arrays:
        raw = np.ascontiguousarray(values)
        raw = raw.astype(raw.dtype.newbyteorder("<"), copy=False)
        data = raw.reshape(-1).view(np.uint8)
        chunks += [np.array(raw.nbytes, "<u8").tobytes(), data.data, bytes(-raw.nbytes % 8)]
    digest = sha256()
    for chunk in chunks:
        digest.update(chunk)
    return [*chunks, digest.digest()]


def write_texts(texts: Strings) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return texts as arrays."""
    return np.frombuffer(texts.data, np.uint8), texts.ends


class ArrayReader:
    """Reads arrays one after the other. Each method raises InvalidInput for other bytes."""

    def __init__(self, head: str, data: Data) -> None:
        require(data[:_HEAD_BYTES] == _line(head), "another version made it, or it is not one")
        digest = sha256(memoryview(data)[:-_DIGEST_BYTES]).digest()
        require(digest == data[-_DIGEST_BYTES:], "the digest differs")
        self._data, self._at, self._end = data, _HEAD_BYTES, len(data) - _DIGEST_BYTES

    def array(self, name: str) -> NDArray[Any]:
        """Return the next array, of numbers of this type."""
        kind = np.dtype(name)
        begin = self._at + 8
        require(begin <= self._end, "it ends too early")
        size = int.from_bytes(self._data[self._at : begin], "little")
        self._at = begin + size + -size % 8
        require(self._at <= self._end and size % kind.itemsize == 0, "an array is cut")
        return np.frombuffer(self._data, kind, size // kind.itemsize, begin)

    def texts(self, *, ascending: bool = True) -> Strings:
        """Return the next texts, each of them above the one before it if they are `ascending`."""
        data = self.array("<u1").tobytes()
        ends = self.array("<i8")
        bounds = np.concatenate([[0], ends])
        begins = bounds[:-1]
        require(int(bounds[-1]) == len(data) and bool((ends >= begins).all()), "a text is cut")
        try:
            data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise invalid("a text is not UTF-8") from None
        letters = np.frombuffer(data, np.uint8)[begins[begins < len(data)]]
        require(bool((letters & 0xC0 != 0x80).all()), "a text begins within a letter")
        if ascending:
            texts = [data[begin:end] for begin, end in pairwise(bounds.tolist())]
            require(all(map(lt, texts, texts[1:])), "texts are in no order")
        return Strings(data, ends)

    def end(self) -> None:
        """Check that nothing is left."""
        require(self._at == self._end, "it is longer than its arrays")


def in_range(numbers: NDArray[Any], end: int) -> bool:
    """Return True if all numbers are from 0 to below `end`."""
    return bool(((numbers >= 0) & (numbers < end)).all())


def lists(starts: NDArray[Any], slots: NDArray[Any], keys: int, end: int) -> None:
    """Raise InvalidInput unless each key has slots below `end`, ascending."""
    require(len(starts) == keys + 1 and starts[0] == 0, "the lists are not one for each key")
    require(int(starts[-1]) == len(slots) and bool((np.diff(starts) > 0).all()), "a list is empty")
    require(in_range(slots, end), "a slot is of no document")
    rising = np.diff(slots) > 0
    rising[starts[1:-1] - 1] = True  # from one list to the next
    require(bool(rising.all()), "a list is in no order")


def require(holds: bool, why: str) -> None:
    """Raise InvalidInput with a reason unless something holds."""
    if not holds:
        raise invalid(why)


def invalid(why: str) -> InvalidInput:
    """Return the error of a segment that cannot be read."""
    return InvalidInput("a stored segment is invalid", why=why, fix="build it from its documents")


def _line(head: str) -> bytes:
    return f"{head}\n".encode().ljust(_HEAD_BYTES)
