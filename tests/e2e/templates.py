"""The templates of pages, compiled once for a process of tests and its forks.

A node compiles all of them when it starts, which is the longest part of its start.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, FileSystemLoader

from capdex_explorer.views.environment import TEMPLATES, build_environment


@cache
def keep_code() -> None:
    """Let each `build_environment` in this process take the code that the first one compiled."""
    compiled, kept = Environment.compile, dict[tuple[str, str], Any]()

    def compile_(self: Environment, source: Any, name: Any = None, *more: Any, **named: Any) -> Any:
        ours = isinstance(self.loader, FileSystemLoader) and name is not None
        if not ours or self.loader.searchpath != [str(TEMPLATES)]:
            return compiled(self, source, name, *more, **named)
        if (name, source) not in kept:
            kept[name, source] = compiled(self, source, name, *more, **named)
        return kept[name, source]

    Environment.compile = compile_  # type: ignore[method-assign]


def compile_now() -> None:
    """Compile them for the forks of this process."""
    keep_code()
    build_environment({}, {})
