"""How often Python looks for circles of garbage."""

from __future__ import annotations

import gc
from typing import Final

# A range of logs is some tens of thousands of objects, in no circle: by default each range is
# looked through hundreds of times, which takes a quarter of a backfill.
OBJECTS: Final = 100_000


def collect_seldom() -> None:
    """Look rarely from now on, and never again at what is there now: for processes that stay."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(OBJECTS, 20, 100)
