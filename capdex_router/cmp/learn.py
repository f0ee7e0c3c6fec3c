"""A command-line program learned: its help parsed, its templates checked and probed, with evidence.

Source: CMP, Adapting Existing CLIs. The parsers are pure; `learn` runs programs through its caller.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol, Self

import orjson

from capdex.errors import Code, InvalidInput, Unavailable
from capdex_router.cmp.help import Help, lines, parse_help
from capdex_router.cmp.manifest import (
    CommandManifest,
    CommandTool,
    Intent,
    Kind,
    parse_intent,
    parse_manifest,
)
from capdex_router.cmp.template import CommandTemplate
from capdex_router.cmp.usage import made

MAX_LEARNED_BYTES: Final = 4 * 1024 * 1024  # 128 commands of `openssl` take 0.8 MB
MAX_SAMPLES: Final = 64
MAX_COMMAND_WORDS: Final = 2  # `git remote add` has two
MAX_COMMANDS: Final = 128  # of those that a help lists: `docker` has 55
_VERSION: Final = re.compile(r"\d+\.\d+(?:\.\d+)?")


class EndedProcess(Protocol):
    """The end of a process."""

    @property
    def exit_code(self) -> int: ...  # noqa: D102
    @property
    def stdout(self) -> bytes: ...  # noqa: D102
    @property
    def stderr(self) -> bytes: ...  # noqa: D102


Run = Callable[[Sequence[str]], Awaitable[EndedProcess]]


@dataclass(frozen=True, slots=True)
class ProbeValues:
    """Values to probe an intent with, in a directory of known content."""

    intent: int
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Learned:
    """A learned tool. `successes` has, for each intent, the exit codes that are no error.

    `digest` is the sha256 of the program in hex; `commands` has the help of each subcommand that
    an intent uses. A run sees its work directory, which it changes only if `writable`, and what is
    in `readable`.
    """

    tool: CommandTool
    program: Path
    digest: str
    help: Help
    commands: Mapping[str, Help]
    successes: tuple[frozenset[int], ...]
    samples: tuple[ProbeValues, ...] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)
    writable: bool = False
    readable: tuple[Path, ...] = ()

    @property
    def content(self) -> str:
        """The sha256, in hex, of all that says what a run does: grants are bound to it."""
        value = self.to_json()
        del value["learned"]["evidence"]
        return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return an adapter (CMP v0.1.0, 8.1) that has in `learned` what was found out."""
        intents = [
            {**one.to_json(), "idempotent": one.idempotent, "outputParser": one.kind}
            for one in self.tool.intents
        ]
        return {
            "adapter": True,
            **self.tool.manifest.to_json(),
            "wraps": self.tool.manifest.binary,
            "intents": intents,
            "samples": [[one.intent, dict(one.values)] for one in self.samples],
            "learned": {
                "program": str(self.program),
                "sha256": self.digest,
                "help": asdict(self.help),
                "commands": {name: asdict(one) for name, one in self.commands.items()},
                "successes": [sorted(codes) for codes in self.successes],
                "writable": self.writable,
                "readable": [str(path) for path in self.readable],
                "evidence": dict(self.evidence),
            },
        }

    def to_bytes(self) -> bytes:
        """Return `to_json` as bytes, for people, too; raises InvalidInput for too many."""
        data = orjson.dumps(self.to_json(), option=orjson.OPT_INDENT_2)
        if len(data) > MAX_LEARNED_BYTES:
            raise InvalidInput("the program has too many commands and options", Code.TOO_LARGE)
        return data

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """Read a learned tool again; raises InvalidInput."""
        if len(data) > MAX_LEARNED_BYTES:
            raise InvalidInput("a learned tool is too long to read")
        try:
            value = orjson.loads(data)
            found = value["learned"]
            known = Help.from_json(found["help"])
            commands = {name: Help.from_json(one) for name, one in found["commands"].items()}
            read = [parse_intent(one) for one in value["intents"]]
            intents = tuple(_sheltered(one, known, commands) for one in read)
            successes = tuple(frozenset(map(int, codes)) for codes in found["successes"])
            if len(successes) != len(intents):
                raise ValueError("an intent has no exit codes")
            return cls(
                CommandTool(parse_manifest(_head(value)), intents),
                Path(found["program"]),
                str(found["sha256"]),
                known,
                commands,
                successes,
                parse_samples(value, len(intents)),
                dict(found["evidence"]),
                found["writable"] is True,
                tuple(Path(path) for path in found["readable"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidInput(
                "a learned tool cannot be read", why=repr(error)[:200], fix="learn it again"
            ) from None


def _head(value: dict[str, Any]) -> bytes:
    names = ("domain", "name", "summary", "version", "wraps")
    return orjson.dumps({name: value[name] for name in names})


def parse_samples(value: Mapping[str, Any], intents: int) -> tuple[ProbeValues, ...]:
    """Return the `samples` of an adapter with so many intents; raises InvalidInput."""
    try:
        found = tuple(
            ProbeValues(intent, dict(values)) for intent, values in value.get("samples", ())
        )
    except (ValueError, TypeError):
        found = (ProbeValues(-1, {}),)
    if len(found) > MAX_SAMPLES or not all(one.intent in range(intents) for one in found):
        raise InvalidInput(
            "the samples of an adapter are wrong",
            why=f"expected at most {MAX_SAMPLES} pairs of the number of an intent and its values",
        )
    return found


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
    manifest: CommandManifest,
    program: Path,
    intents: Sequence[Intent],
    samples: Sequence[ProbeValues],
    run: Run,
) -> Learned:
    """Learn a program: read its help and that of its subcommands, shelter its templates, probe.

    `program` is a resolved path; `run` runs an argument list in a sandbox without a network, in a
    directory of known content. Raises InvalidInput if a template uses an option that the help does
    not list, and what `run` raises.
    """
    digest = hashlib.sha256(await asyncio.to_thread(program.read_bytes)).hexdigest()
    version = await run((str(program), "--version"))
    text = await _help((str(program),), run)
    known = parse_help(text)
    commands: dict[str, Help] = {}
    for words in filter(None, (command_of(one.template) for one in intents)):
        if " ".join(words) not in commands:
            commands[" ".join(words)] = parse_help(await _help((str(program), *words), run))
    found = [_sheltered(one, known, commands) for one in intents]
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
        CommandTool(replace(manifest, version=number[0] if number else "0.0.0"), tuple(found)),
        program,
        digest,
        known,
        commands,
        tuple(successes),
        tuple(samples),
        {
            "version": number[0] if number else None,
            "help_sha256": hashlib.sha256(text).hexdigest(),
            "probes": probes,
        },
    )


async def by_help(name: str, program: Path, run: Run, *, writable: bool) -> tuple[Intent, ...]:
    """Return an intent for each subcommand of a program, or for itself, by help texts alone.

    Raises InvalidInput NOT_FOUND if they say nothing, and what `run` raises for the first of them.
    """
    text = await _help((str(program),), run)
    rows = [line.strip().partition("  ") for line in lines(text)]
    about = {head.rstrip(":*"): said.strip() for head, _, said in reversed(rows)}
    found: list[Intent] = []
    for command in (*parse_help(text).subcommands[:MAX_COMMANDS], ""):
        with contextlib.suppress(Unavailable):  # it waits for something: no tool of an agent
            page = await _help((str(program), command), run) if command else text
            one = made(name, command, page, about.get(command, ""), writable=writable)
            # The help of the program again is that of no subcommand.
            found += [one] if one and (page != text or not (command or found)) else []
    if not found:
        why = f"the help of {name} lists no options and no usage"
        raise InvalidInput(why, Code.NOT_FOUND, fix="write intents, and add --intents FILE")
    return tuple(found)


async def _help(argv: tuple[str, ...], run: Run) -> bytes:
    # `git status --help` is a page of a manual, which a sandbox does not have; `-h` is a text.
    first = b""
    for option in ("--help", "-h"):
        said = await run((*argv, option))
        text = max(said.stdout, said.stderr, key=len)
        if made("x", "", text, "", writable=True):
            return text
        first = first or text
    return first


def command_of(template: CommandTemplate) -> tuple[str, ...]:
    """Return the words between the program and the first option or value."""
    words: list[str] = []
    for one in template.elements[1:]:
        if one.name is not None or one.literal.startswith("-") or len(words) == MAX_COMMAND_WORDS:
            break
        words.append(one.literal)
    return tuple(words)


def _sheltered(intent: Intent, main: Help, commands: Mapping[str, Help]) -> Intent:
    # The text as it was written: what is sheltered depends on this help alone.
    template = CommandTemplate.parse(intent.template.text, intent.template.parameters)
    command = commands.get(" ".join(command_of(template)), main)
    known = Help({**main.options, **command.options}, ())
    glued = [one.literal.rstrip("= ") for one in template.elements if one.name and one.literal]
    unknown = [one for one in (*template.options(), *glued) if one not in known.options]
    if unknown:
        raise InvalidInput(
            f"the help does not list {', '.join(unknown)}", why=f"the template is {template.text!r}"
        )
    valued = [name for name, needs in known.options.items() if needs and name.startswith("--")]
    return replace(intent, template=template.sheltered(valued))
