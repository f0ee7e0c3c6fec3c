"""What an import did with the words of its source that do not stand in the package unchanged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from capdex_publisher.authoring.imports.text import clean

DOCUMENT: Final = "document"  # the `source` of a note that is about no tool
MAX_NOTES: Final = 5_000
MAX_CHARS: Final = 300  # of one field

Fate = Literal["changed", "left out", "refused"]


@dataclass(frozen=True, slots=True)
class Note:
    """One row of the report.

    `source` is the tool or operation, by its name in what is imported, or DOCUMENT; `subject` the
    word of it that the row is about, such as `parameter ids`. `before` is what the source says;
    `after` what the package says in its place, or the reason why it says nothing.
    """

    source: str
    subject: str
    fate: Fate
    before: str = ""
    after: str = ""

    def __str__(self) -> str:
        """Return the row as one line of an error."""
        before = f" ({self.before})" if self.before else ""
        return f"{self.source}: {self.subject}{before} {self.fate}: {self.after}"

    def to_json(self) -> dict[str, str]:
        """Return the row as an object."""
        return asdict(self)


def tidied(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Return the rows without repetitions, each on one line of text that is safe to show.

    Over MAX_NOTES rows, the last one counts the rest.
    """
    rows = list(dict.fromkeys(map(_tidied, notes)))
    if (more := len(rows) - MAX_NOTES) > 0:
        rest = Note(DOCUMENT, "report", "left out", f"{more} more rows", "import fewer at a time")
        return (*rows[:MAX_NOTES], rest)
    return tuple(rows)


def _tidied(note: Note) -> Note:
    words: Any = {word: _line(text) for word, text in asdict(note).items()}
    return Note(**words)


def _line(text: str) -> str:
    line = " ".join(clean(text).split())
    return line if len(line) <= MAX_CHARS else f"{line[: MAX_CHARS - 1]}…"
