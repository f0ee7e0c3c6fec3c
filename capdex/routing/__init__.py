"""Which packages' triggers a message hits, and how precisely, among very many packages.

Pure: a `TriggerSet` is a value, each change makes another one. What it answers depends on the
packages that it holds alone, never on how they came into it.
"""

from typing import TYPE_CHECKING

from capdex.door import door

if TYPE_CHECKING:
    from capdex.routing.combine import Combined as Combined
    from capdex.routing.combine import combine as combine
    from capdex.routing.matches import Match as Match
    from capdex.routing.matches import MatchedTrigger as MatchedTrigger
    from capdex.routing.matches import TriggerHit as TriggerHit
    from capdex.routing.matches import TriggerPage as TriggerPage
    from capdex.routing.segment import Segment as Segment
    from capdex.routing.segment import merge as merge
    from capdex.routing.stored import from_bytes as from_bytes
    from capdex.routing.stored import to_bytes as to_bytes
    from capdex.routing.stored import to_chunks as to_chunks
    from capdex.routing.triggers import TriggerSet as TriggerSet
else:  # its names and `__all__`: the imports above
    __getattr__ = door(__name__)
