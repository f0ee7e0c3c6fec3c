"""The help text of a program: the options and subcommands that it lists. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

MAX_HELP_BYTES: Final = 256 * 1024  # `rg --help` has 62 KB
_MAX_LINE: Final = 500
_STYLE: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|.\x08")
_OPTION: Final = re.compile(
    r"(--?(?:\[[\w-]{1,8}\])?[A-Za-z0-9?#@][\w.-]*)"  # -e, --regexp, --[no-]color
    r"(\[=?[^\]\s]{1,60}\]|=[^\s,]{1,60}| <[^>]{1,60}>| [A-Z][A-Z0-9_:|-]{0,40}(?![a-z]))?"
)
_MENTION: Final = re.compile(r"(?<![\w-])--[a-z0-9][\w.-]*", re.IGNORECASE)
_SUBCOMMAND: Final = re.compile(r"\s{2,}([a-z][\w-]{0,40})(?:,? [\w-]+)?(?:\s{2,}\S|\s*$)")
_WORD_LIST: Final = re.compile(r"\s+[a-z][\w-]*(?:, ?[a-z][\w-]*)+,?\s*")


@dataclass(frozen=True, slots=True)
class Help:
    """The options and subcommands that a help text lists.

    `options` maps each to True if it needs a value; an optional value does not count.
    """

    options: Mapping[str, bool]
    subcommands: tuple[str, ...]

    @property
    def valued(self) -> frozenset[str]:
        """The long options that need a value."""
        return frozenset(
            name for name, value in self.options.items() if value and name.startswith("--")
        )

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON."""
        return {"options": dict(self.options), "subcommands": list(self.subcommands)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote; raises KeyError, TypeError or ValueError."""
        return cls(dict(value["options"]), tuple(value["subcommands"]))


def parse_help(data: bytes) -> Help:
    """Parse a help text; anything that is not a list of options or commands is passed over."""
    text = _STYLE.sub("", data[:MAX_HELP_BYTES].decode(errors="replace"))
    options: dict[str, bool] = {}
    subcommands: dict[str, None] = {}
    listing = False
    for line in text.splitlines():
        line = line[:_MAX_LINE].expandtabs()
        if line[:1].strip() and (line.rstrip().endswith(":") or not listing):
            listing = "command" in line.lower() and "option" not in line.lower()
        for name, value in _options(line):
            options[name] = options.get(name, False) or value
        if listing and _WORD_LIST.fullmatch(line):
            subcommands.update(dict.fromkeys(re.findall(r"[a-z][\w-]*", line)))
        elif listing and (found := _SUBCOMMAND.match(line)):
            subcommands[found[1]] = None
        for name in _MENTION.findall(line):
            options.setdefault(name.rstrip(".-"), False)
    return Help(options, tuple(subcommands))


def _options(line: str) -> list[tuple[str, bool]]:
    column = line.strip()
    if not column.startswith("-"):
        return []
    column = re.split(r" {2,}", column, maxsplit=1)[0]
    found: list[tuple[str, str]] = []
    while match := _OPTION.match(column):
        found.append((match[1], match[2] or ""))
        rest = column[match.end() :]
        column = rest.lstrip(" ,|/")
        if rest == column:
            break
    # "-e, --regexp=PATTERN": the value of the last is of all.
    value = any(one and not one.startswith("[") for _, one in found)
    return [
        (name, value)
        for text, _ in found
        for name in ({text.replace("[no-]", ""), text.replace("[no-]", "no-")})
    ]
