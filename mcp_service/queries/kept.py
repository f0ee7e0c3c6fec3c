"""Rendered answers that are kept until the name they are about changes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Final

from mcp_service.answers.rendered import Rendered

MAX_BYTES: Final = 256 << 20  # a hundred thousand resolutions of common packages
MAX_ANSWER_BYTES: Final = 256 << 10  # larger answers are made again each time
MAX_OF_NAME: Final = 64  # answers about one name: clients choose the ranges that they ask for


class KeptAnswers:
    """The answers used last, by name and question; bounded in bytes."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes, self.size_bytes = max_bytes, 0
        self._by_name: OrderedDict[str, dict[Hashable, Rendered]] = OrderedDict()
        self._names: dict[Hashable, str] = {}

    def __len__(self) -> int:
        return len(self._names)

    def get(self, question: Hashable) -> Rendered | None:
        """Return the kept answer to a question."""
        name = self._names.get(question)
        if name is None:
            return None
        self._by_name.move_to_end(name)
        return self._by_name[name][question]

    def put(self, question: Hashable, name: str, answer: Rendered) -> None:
        """Keep an answer about a name; make room by dropping the names used least recently."""
        if answer.size_bytes > MAX_ANSWER_BYTES or question in self._names:
            return
        if len(self._by_name.get(name, ())) >= MAX_OF_NAME:
            self.drop([name])
        self._by_name.setdefault(name, {})[question] = answer
        self._by_name.move_to_end(name)
        self._names[question] = name
        self.size_bytes += answer.size_bytes
        while self.size_bytes > self._max_bytes:
            self.drop([next(iter(self._by_name))])

    def drop(self, names: Iterable[str]) -> None:
        """Drop what is kept of these names."""
        for name in names:
            for question, answer in self._by_name.pop(name, {}).items():
                del self._names[question]
                self.size_bytes -= answer.size_bytes

    def clear(self) -> None:
        """Drop everything."""
        self._by_name.clear()
        self._names.clear()
        self.size_bytes = 0
