"""Rendered answers that are kept until the name they are about changes."""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from capdex_service.answers.rendered import Rendered

MAX_BYTES: Final = 256 << 20  # a quarter of a million answers about common packages
MAX_ANSWER_BYTES: Final = 256 << 10  # larger answers are made again each time
MAX_OF_NAME: Final = 64  # answers about one name: clients choose the ranges that they ask for
OVERHEAD_BYTES: Final = 500  # of the objects that hold one answer
_RAW: Final = -15  # a deflate stream with the largest window, without header and checksum


class AnswerCache:
    """The answers used last, by name and question; bounded in bytes.

    Answers are alike, so the first one is the dictionary by which all are compressed, to a fifth
    or less. They are kept as bytes and strings only: the garbage collector scans no object of a
    hundred thousand answers, which would stop all requests for a quarter of a second.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes, self.size_bytes = max_bytes, 0
        self._by_name: OrderedDict[str, dict[str, bytes]] = OrderedDict()
        self._names: dict[str, str] = {}
        self._dictionary = b""

    def __len__(self) -> int:
        return len(self._names)

    def get(self, question: str) -> Rendered | None:
        """Return the cached answer to a question."""
        name = self._names.get(question)
        if name is None:
            return None
        self._by_name.move_to_end(name)
        kept = zlib.decompressobj(_RAW, zdict=self._dictionary)
        return Rendered.from_bytes(kept.decompress(self._by_name[name][question]))

    def put(self, question: str, name: str, answer: Rendered) -> None:
        """Keep an answer about a name; make room by dropping the names used least recently."""
        data = answer.to_bytes()
        if len(data) > MAX_ANSWER_BYTES or question in self._names:
            return
        if len(self._by_name.get(name, ())) >= MAX_OF_NAME:
            self.drop([name])
        if not self._names:
            self._dictionary = data
        packer = zlib.compressobj(1, wbits=_RAW, zdict=self._dictionary)
        packed = packer.compress(data) + packer.flush()
        self._by_name.setdefault(name, {})[question] = packed
        self._by_name.move_to_end(name)
        self._names[question] = name
        self.size_bytes += _size(question, packed)
        while self.size_bytes > self._max_bytes:
            self.drop([next(iter(self._by_name))])

    def drop(self, names: Iterable[str]) -> None:
        """Drop what is kept of these names."""
        for name in names:
            for question, packed in self._by_name.pop(name, {}).items():
                del self._names[question]
                self.size_bytes -= _size(question, packed)

    def clear(self) -> None:
        """Drop everything."""
        self._by_name.clear()
        self._names.clear()
        self.size_bytes = 0


def _size(question: str, packed: bytes) -> int:
    return len(question) + len(packed) + OVERHEAD_BYTES
