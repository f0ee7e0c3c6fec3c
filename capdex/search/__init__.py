"""The search engine: documents to postings in immutable segments, queries to ranked names.

Pure: an `Engine` is a value, `add` and `remove` return another one. What it answers depends on the
documents that it holds alone, never on how they came into it.
"""

from typing import TYPE_CHECKING

from capdex.door import door

if TYPE_CHECKING:
    from capdex.search.document import Document as Document
    from capdex.search.document import ToolText as ToolText
    from capdex.search.engine import Engine as Engine
    from capdex.search.filters import Filters as Filters
    from capdex.search.ranked import After as After
    from capdex.search.ranked import RankedHit as RankedHit
    from capdex.search.ranked import RankedPage as RankedPage
    from capdex.search.ranked import Scores as Scores
    from capdex.search.segments.merging import merge as merge
    from capdex.search.segments.segment import WordSegment as WordSegment
    from capdex.search.segments.stored import from_bytes as from_bytes
    from capdex.search.segments.stored import to_bytes as to_bytes
    from capdex.search.segments.stored import to_chunks as to_chunks
else:  # its names and `__all__`: the imports above
    __getattr__ = door(__name__)
