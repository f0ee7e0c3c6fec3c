"""Which packages' triggers a message hits, and how precisely, among very many packages.

Pure: a `TriggerSet` is a value, each change makes another one. What it answers depends on the
packages that it holds alone, never on how they came into it.
"""

from typing import TYPE_CHECKING

from capdex.door import door

if TYPE_CHECKING:
    from capdex.routing.combine import Combined, combine
    from capdex.routing.matches import Match, MatchedTrigger
    from capdex.routing.segment import Segment, merge
    from capdex.routing.stored import from_bytes, to_bytes, to_chunks
    from capdex.routing.triggers import TriggerSet

__all__ = [
    "Combined",
    "Match",
    "MatchedTrigger",
    "Segment",
    "TriggerSet",
    "combine",
    "from_bytes",
    "merge",
    "to_bytes",
    "to_chunks",
]

if not TYPE_CHECKING:  # for a type checker a room has these names alone
    __getattr__ = door(__name__)
