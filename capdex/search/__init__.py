"""The search engine: documents to postings in immutable segments, queries to ranked names.

Pure: an `Engine` is a value, `add` and `remove` return another one. What it answers depends on the
documents that it holds alone, never on how they came into it.
"""

from typing import TYPE_CHECKING

from capdex.door import door

if TYPE_CHECKING:
    from capdex.search.document import Document, ToolText
    from capdex.search.engine import Engine
    from capdex.search.filters import Filters
    from capdex.search.ranked import After, RankedHit, RankedPage
    from capdex.search.segments.merging import merge
    from capdex.search.segments.segment import WordSegment
    from capdex.search.segments.stored import from_bytes, to_bytes, to_chunks

__all__ = [
    "After",
    "Document",
    "Engine",
    "Filters",
    "RankedHit",
    "RankedPage",
    "ToolText",
    "WordSegment",
    "from_bytes",
    "merge",
    "to_bytes",
    "to_chunks",
]

if not TYPE_CHECKING:  # for a type checker a room has these names alone
    __getattr__ = door(__name__)
