"""How Python spends its time in a process that stays, and has threads at work beside its loop."""

from __future__ import annotations

import gc
import sys
from typing import Final

# A range of logs is some tens of thousands of objects, in no circle: by default each range is
# looked through hundreds of times, which takes a quarter of a backfill.
OBJECTS: Final = 100_000
# Whoever comes back from the database, or to the loop, waits so long for a thread that decodes.
TURN_S: Final = 0.001


def settle() -> None:
    """Look for circles of garbage rarely, never at what is there now; let threads take turns."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(OBJECTS, 20, 100)
    sys.setswitchinterval(TURN_S)
