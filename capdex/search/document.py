"""A document: what search knows of one listed package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from capdex.manifest.triggers import Trigger

FIELDS: Final = (
    "name",
    "title",
    "description",
    "summary",
    "tags",
    "domain",
    "triggers",
    "memory_scope",
)
TOOLS: Final = "tools"  # the texts of all tools are one more field
PUBLISHED: Final = "published"  # epoch seconds
CONTEXT_WINDOW: Final = "context_window"  # tokens
VOTES: Final = "votes"
SUNK: Final = "sunk"  # how many times SUNK_SHARE is taken of its score; 0 for most
LIKE: Final = "\0like"  # a facet: the older name of another owner that it may be taken for


@dataclass(frozen=True, slots=True)
class ToolText:
    """A tool of a package: its texts; `parameters` has their names and descriptions."""

    name: str
    description: str = ""
    parameters: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """One listed package by its name, which is unique in an engine.

    `fields` has texts by FIELDS (others are not searched; the name is a text of its own unless it
    is given here), `facets` the values that filters compare, `numbers` those with an order.
    `triggers` are matched by capdex.routing; the engine does not read them.
    """

    name: str
    fields: Mapping[str, str] = field(default_factory=dict)
    tools: tuple[ToolText, ...] = ()
    facets: tuple[tuple[str, str], ...] = ()
    numbers: Mapping[str, float] = field(default_factory=dict)
    triggers: tuple[Trigger, ...] = ()
