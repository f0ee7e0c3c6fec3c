"""The door of a room: its public names, each imported when it is first asked for (PEP 562).

A room's `__init__` runs before each of its modules, so it imports none of them. It states where its
names are as imports for type checkers; the door reads them there when the first one is asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any


def door(room: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a room, for the names of its `__all__`; `dir` has them, too."""
    module = sys.modules[room]
    module.__dict__["__dir__"] = lambda: [*vars(module), *module.__all__]

    def get(name: str) -> Any:
        home = _homes(room).get(name)
        if home is None:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        return getattr(import_module(home), name)

    return get


@cache
def _homes(room: str) -> dict[str, str]:
    """Return the module of each name of a room, by the imports in its `__init__`."""
    import ast  # only now: most commands ask no door
    from pkgutil import get_data

    public = sys.modules[room].__all__
    return {
        name.name: statement.module
        for statement in ast.walk(ast.parse(get_data(room, "__init__.py") or b""))
        if isinstance(statement, ast.ImportFrom) and statement.module
        for name in statement.names
        if name.name in public
    }
