"""The door of a room: its public names, each imported when it is first asked for (PEP 562).

A room's `__init__` runs before each of its modules, so it imports none of them by itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def door(room: str, homes: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a room; `homes` has the names of each module."""
    home_of = {name: home for home, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        module = import_module(home_of[name])
        for one in homes[home_of[name]]:  # the module itself may have the name of one of them
            setattr(sys.modules[room], one, getattr(module, one))
        return getattr(module, name)

    return get
