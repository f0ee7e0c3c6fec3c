"""What an import did with the words of its source that do not stand in the package unchanged.

Beside the report: names and texts of strangers in the form that a package may hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal
from unicodedata import combining, normalize

import jsonschema_rs

from capdex.errors import InvalidInput
from capdex.manifest.tools import NAME
from capdex.uri import MAX_NAME_CHARS, check_name
from capdex.yaml.characters import forbidden

DOCUMENT: Final = "document"  # the `source` of a note that is about no tool
MAX_NOTES: Final = 5_000
MAX_CHARS: Final = 300  # of one field
_LITERAL: Final = re.compile(r"\A/\^|(?<!\\)\$/[a-z]*\Z")  # `/^a$/i`: nothing stands before ^
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")

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
    words: Any = {word: " ".join(clean(text).split()) for word, text in asdict(note).items()}
    cut_off = {word: f"{x[: MAX_CHARS - 1]}…" for word, x in words.items() if len(x) > MAX_CHARS}
    return Note(**words | cut_off)


def name_of(text: str) -> str:
    """Return a capability name made of a title; empty if it has no usable letter."""
    words = re.findall(r"[a-z0-9]+", without_marks(text.casefold()))
    name = "-".join(words)[:MAX_NAME_CHARS].strip("-")
    name = name.lstrip("0123456789-")
    try:
        return check_name(name)
    except InvalidInput:
        return ""


def without_marks(text: str) -> str:
    """Return a text with plain letters in place of those with accents."""
    return "".join(x for x in normalize("NFKD", text) if not combining(x))


def tool_name_of(text: str, taken: Sequence[str], others: Sequence[str] = ()) -> str:
    """Return a tool name made of a text, and none of `taken`: 1 to 64 of A-Z, a-z, 0-9, _ and -.

    A text that is a name stays as it is; one that is not takes none of `others`, either.
    """
    if NAME.fullmatch(text) and text not in taken:
        return text
    base = re.sub(r"[^A-Za-z0-9_-]+", "_", without_marks(text)).strip("_")[:60] or "tool"
    name, number = base, 2
    while name in taken or name in others:
        name, number = f"{base}_{number}", number + 1
    return name


def written(value: object) -> str:
    """Return a value of the source as a row shows it: text as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


UNSEEN: Final = "no package holds characters that are not seen"


def clean(value: object) -> str:
    """Return text of a stranger without the characters that a package may not hold."""
    text = _LONE_SURROGATES.sub("", str(value or ""))
    while hidden := set(forbidden(text)):  # without one, another may stand where it may not
        text = "".join(char for i, char in enumerate(text) if i not in hidden)
    return text.strip()


def unseen(value: object) -> str:
    """Return how many characters `clean` takes out of a text, or an empty text for none."""
    lost = len(str(value or "").strip()) - len(clean(value))
    return f"{lost} character{'s' * (lost > 1)}" if lost else ""


def cut(text: str, most_bytes: int) -> str:
    """Return text cut to a number of bytes, at the end of a character."""
    data = text.encode()
    return (
        text if len(data) <= most_bytes else data[: most_bytes - 4].decode("utf-8", "ignore") + "…"
    )


def pattern_fault(value: object) -> str:
    """Return why a router cannot run a pattern of a schema; empty if it can, or is no text."""
    if isinstance(value, str) and _LITERAL.search(value):
        return "it is written as in JavaScript, between slashes, and so no text fits it"
    options = jsonschema_rs.RegexOptions()
    try:
        jsonschema_rs.Draft202012Validator({"pattern": value}, pattern_options=options)
    except ValueError:
        if jsonschema_rs.is_valid({"format": "regex"}, value, validate_formats=True):
            return "a router cannot run this pattern in linear time"
        return "it is no regular expression of JSON Schema"
    return ""
