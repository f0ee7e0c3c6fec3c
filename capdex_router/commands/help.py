"""The help text of a program: the options and subcommands that it lists. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

MAX_HELP_BYTES: Final = 256 * 1024  # `rg --help` has 62 KB
_MAX_LINE: Final = 2_000  # `pdm --help` has usages of 900
_STYLE: Final = re.compile(r"\x1b(?:\[[0-9;]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\))|.\x08")
_OPTION: Final = re.compile(  # -e, --regexp, --[no-]color, and the form of a value
    r"(--?(?:\[[\w-]{1,8}\])?[A-Za-z0-9?#@](?:[\w-]|\.(?!\.))*)"
    r"( ?\[=?[^\]\s]{1,400}\](?:\w[\w:]*)?"
    r"|=(?:[^\s,]{1,400}|(?! \S))| ?<[^>]{1,400}>(?:\.{3})?| \{[^}\s]{1,400}\}"
    r"| (?:\w+::)?(?:String|Int|Number|Object|Array|\[(?:String|Int)\])(?=$|,)"
    r"| [A-Z][A-Z0-9_:|-]{0,40}(?![a-z])(?:\.{3}|\[\S+\])?"
    r"| \+?[a-z][\w.:@-]{0,60}(?=$|,| [:|]))?"
)
# The gap before the second column of options, as `unzip` has them.
_COLUMNS: Final = re.compile(r"(?<=[^ ,|]) {2,}(?=-\w {1,3}[\w(])(?<!-\w  )")
# --color[=WHEN], -j [N]; not --color [red|green], -D [HOST:]PORT, nor a type of optionator
_OPTIONAL: Final = re.compile(r"(?:\[| \[(?!String|Int\b)[A-Z<])[^\]]*\]")
_MENTION: Final = re.compile(
    r"(?<![\w-])--[a-z0-9][\w.-]*|(?:(?<=\[)|(?<=\| ))-[a-z0-9][\w.-]*", re.IGNORECASE
)
_CLUSTER: Final = re.compile(r"-(?=\w*[a-z])(?:\d|\w+[A-Z])\w*")
_HEADING: Final = re.compile(r"\b(?:sub)?commands?\b(?!.*option)", re.IGNORECASE)
_WORD: Final = re.compile(r"[a-z][\w-]{0,40}")
_SUBCOMMAND: Final = re.compile(
    r"\s{2,}(?:\$ )?([a-z][\w-]{0,40})[:*]?(?:(?:,? |\|)[\w-]+)?(?: [\[<]\S{0,60})*"
    r"(?:\s{2,}\S| - \S|\s*$)"
)
_CHOICE: Final = re.compile(r"\{([\w,-]{1,2000})\}\s+\.\.\.")  # of argparse


@dataclass(frozen=True, slots=True)
class Help:
    """The options and subcommands that a help text lists.

    `options` maps each to True if it needs a value; an optional value does not count.
    """

    options: Mapping[str, bool]
    subcommands: tuple[str, ...]


def lines(data: bytes) -> list[str]:
    """Return the lines of a help text, each cut, without what does not show."""
    text = _STYLE.sub("", data[:MAX_HELP_BYTES].decode(errors="replace"))
    cut = (_plain(line[:_MAX_LINE].expandtabs()) for line in text.splitlines())
    shown = ("".join(filter(str.isprintable, line)) for line in cut)
    return [part for line in shown for part in _COLUMNS.sub("\n  ", line).split("\n")]


def _plain(line: str) -> str:
    """Return a line of a frame (typer), or with a type at its right (yargs), as others write it."""
    if line[:1] == "│":
        line = re.sub(r"(?<=\S) {2,}(?=-)", ", ", f"  {line.strip('│* ')}")
        return re.sub(r"(?<=\S) {2,}(?=[A-Z]{3,}(?: |$)|\[[\w|]+\]|<(?!bool>))", " ", line, count=1)
    line = re.sub(r" \.{4,} ", "  ", re.sub(r"^╭─ (.*?) ─.*", r"\1:", line))  # --config .... where
    line = re.sub(r"^( +-.*)=false:$", r"\1", line)  # of kubectl
    line = re.sub(r"^( +-.*)=true:$", r"\1=[true|false]", line)
    return re.sub(r"^( *-.*?)(?=  .*\[(string|number|array|choices)\b)", r"\1 \2", line)


def parse_help(data: bytes, program: str = "") -> Help:
    """Parse a help text; anything that is not a list of options or commands is passed over.

    The name of the `program` may stand before each command.
    """
    prefix = re.compile(rf"^ +{re.escape(program)} (?=[a-z])") if program else None
    text = lines(data)
    options: dict[str, bool] = {}
    choice = _CHOICE.search("\n".join(text))
    subcommands = dict.fromkeys(choice[1].split(",") if choice else ())
    listing = columns = False
    for line in text:
        if line[:1].strip() and (line.rstrip().endswith(":") or not listing):
            listing = _HEADING.search(line) is not None
        line = prefix.sub("  ", line) if prefix and listing else line
        for names in listed(line):
            for name in names:
                options[name] = options.get(name, False) or bool(needed(names))
        cells = re.split(r" {2,}|, ?", line.strip(" ,"))
        columns = (columns or len(cells) > 2) and all(map(_WORD.fullmatch, cells))
        if listing and columns:
            subcommands.update(dict.fromkeys(cells))
        elif listing and (match := _SUBCOMMAND.match(line)):
            subcommands[match[1]] = None
        for name in _MENTION.findall(line):
            options.update({flag: options.get(flag, False) for flag in flags(name.rstrip(".-"))})
    return Help(options, tuple(filter(_WORD.fullmatch, subcommands)))


def flags(text: str) -> list[str]:
    """Return the options of a usage's cluster, such as -46AaCf; else the text as the only one."""
    return [f"-{flag}" for flag in text[1:]] if _CLUSTER.fullmatch(text) else [text]


def listed(line: str) -> list[dict[str, str]]:
    """Return the options that a line lists: the names of each, and the value behind each name."""
    column = re.sub("^(-.) +(?=--)", r"\1 ", line.strip()).partition("  ")[0]
    options: list[dict[str, str]] = []
    same = False
    while column.startswith("-") and (match := _OPTION.match(column)):
        name, value = match[1], match[2] or ""
        if not same:
            options.append({})
        options[-1].setdefault(re.sub(r"\[.*?\]", "", name), value)
        options[-1].setdefault(re.sub(r"[\[\]]", "", name), value)
        rest = column[match.end() :]
        if rest[:2] == ",<" or re.search("-[A-Z]{4,}$", name):  # a pattern: -Wl,<x>, --no-OPTION
            options.pop()
            break
        column = rest.lstrip(" ,|/")
        gap = rest[: len(rest) - len(column)]
        # "-h --help" is one option, "-empty -false" are two.
        same = "," in gap or gap == "|" or (len(name) == 2 and column[:2] == "--")
        if not gap:
            break
    return options


def needed(names: Mapping[str, str]) -> str:
    """Return the value that an option needs, as the help writes it; nothing if it needs none."""
    return next((form for form in names.values() if form and not _OPTIONAL.fullmatch(form)), "")
