"""A command-line program learned: its help parsed, its templates checked and probed, with evidence.

Source: CMP, Adapting Existing CLIs. The parsers are pure; `learn` runs programs through its caller.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol

import orjson

from capdex.errors import InvalidInput
from router.cmp.manifest import Intent, Kind, Manifest, Tool

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
_VERSION: Final = re.compile(r"\d+\.\d+(?:\.\d+)?")


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


class Ran(Protocol):
    """The end of a process."""

    @property
    def exit_code(self) -> int: ...  # noqa: D102
    @property
    def stdout(self) -> bytes: ...  # noqa: D102
    @property
    def stderr(self) -> bytes: ...  # noqa: D102


Run = Callable[[Sequence[str]], Awaitable[Ran]]


@dataclass(frozen=True, slots=True)
class Sample:
    """Values to probe an intent with, in a directory of known content."""

    intent: int
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Learned:
    """A learned tool. `commands` has, for each intent, the exit codes that are no error."""

    tool: Tool
    program: Path
    digest: str
    help: Help
    successes: tuple[frozenset[int], ...]
    evidence: Mapping[str, Any] = field(default_factory=dict)


def parse_help(data: bytes) -> Help:
    """Parse a help text; anything that is no list of options or commands is passed over."""
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


def kind_of(output: bytes) -> Kind:
    """Return the shape of an output: JSON, JSON on each line, a table, or lines."""
    if output.strip() and _is_json(output):
        return "json"
    lines = [line for line in output.splitlines() if line.strip()]
    if lines and all(line.startswith((b"{", b"[")) and _is_json(line) for line in lines):
        return "jsonLines"
    cells = {len(re.split(rb"\s{2,}|\t", line.strip())) for line in lines}
    return "table" if len(lines) > 1 and len(cells) == 1 and cells.pop() > 1 else "lines"


def _is_json(data: bytes) -> bool:
    try:
        return isinstance(orjson.loads(data), dict | list)
    except orjson.JSONDecodeError:
        return False


async def learn(
    manifest: Manifest,
    program: Path,
    intents: Sequence[Intent],
    samples: Sequence[Sample],
    run: Run,
) -> Learned:
    """Learn a program: read its help, shelter its templates, probe them.

    `program` is a resolved path; `run` runs an argument list in a sandbox without a network, in a
    directory of known content. Raises InvalidInput if a template uses an option that the help does
    not list, and what `run` raises.
    """
    digest = hashlib.sha256(await asyncio.to_thread(program.read_bytes)).hexdigest()
    version = await run((str(program), "--version"))
    said = await run((str(program), "--help"))
    text = said.stdout if len(said.stdout) >= len(said.stderr) else said.stderr
    known = parse_help(text)
    found = [_sheltered(one, known) for one in intents]
    successes = [frozenset((0,)) for _ in found]
    probes = []
    for sample in samples:
        intent = found[sample.intent]
        argv = (str(program), *intent.template.argv(sample.values)[1:])
        ran = await run(argv)
        successes[sample.intent] |= {ran.exit_code}
        if intent.kind is None and ran.stdout.strip():
            found[sample.intent] = replace(intent, kind=kind_of(ran.stdout))
        probes.append({"argv": list(argv), "exit_code": ran.exit_code})
    number = _VERSION.search((version.stdout or version.stderr)[:1000].decode(errors="replace"))
    return Learned(
        Tool(replace(manifest, version=number[0] if number else "0.0.0"), tuple(found)),
        program,
        digest,
        known,
        tuple(successes),
        {
            "version": number[0] if number else None,
            "help_sha256": hashlib.sha256(text).hexdigest(),
            "probes": probes,
        },
    )


def _sheltered(intent: Intent, known: Help) -> Intent:
    template = intent.template
    glued = [one.literal.rstrip("=") for one in template.elements if one.name and one.literal]
    unknown = [one for one in (*template.options(), *glued) if one not in known.options]
    if unknown:
        raise InvalidInput(
            f"the help does not list {', '.join(unknown)}", why=f"the template is {template.text!r}"
        )
    return replace(intent, template=template.sheltered(known.valued))
