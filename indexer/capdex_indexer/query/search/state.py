"""What a reader's search answers from: an engine, triggers, and the state of the index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from capdex.manifest.triggers import Trigger
from capdex.routing import stored as stored_triggers
from capdex.routing.segment import Segment
from capdex.routing.segment import merge as merge_triggers
from capdex.routing.triggers import TriggerSet
from capdex.search.document import Document
from capdex.search.engine import Engine
from capdex.search.segments import stored as stored_words
from capdex.search.segments.merging import merge as merge_words
from capdex.search.segments.segment import WordSegment


@dataclass(frozen=True, slots=True)
class State:
    """An engine with the triggers of the same packages, and the revision of the index they hold.

    `key` signs cursors. `encoder` is the identity of the encoder that the vectors are of; None:
    there are none.
    """

    engine: Engine
    triggers: TriggerSet
    revision: int
    key: bytes
    encoder: str | None = None


class Segments(NamedTuple):
    """The words and the triggers of some packages."""

    words: WordSegment
    triggers: Segment

    @classmethod
    def build(cls, documents: Sequence[Document]) -> Self:
        """Return the segments of documents; of several with one name the last one counts."""
        return cls(WordSegment.build(documents), Segment.build(map(triggers_of, documents)))

    @classmethod
    def merge(cls, some: Iterable[Segments]) -> Self:
        """Return the segments of the packages of several, no two of which have the same name."""
        words, triggers = zip(*some, strict=True)
        of_triggers = merge_triggers((x, None) for x in triggers)
        return cls(merge_words((x, None) for x in words), of_triggers)

    def to_bytes(self) -> tuple[bytes, bytes]:
        """Return both as bytes."""
        return stored_words.to_bytes(self.words), stored_triggers.to_bytes(self.triggers)

    @classmethod
    def from_bytes(cls, words: bytes, triggers: bytes) -> Self:
        """Read what `to_bytes` returned; raises InvalidInput for other bytes."""
        return cls(stored_words.from_bytes(words), stored_triggers.from_bytes(triggers))


def triggers_of(document: Document) -> tuple[str, tuple[Trigger, ...]]:
    """Return the name of a document with its triggers."""
    return document.name, document.triggers
