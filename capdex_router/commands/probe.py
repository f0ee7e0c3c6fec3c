"""A program probed: its help read, its templates checked, its samples run through the caller."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from capdex.errors import Code, InvalidInput, Unavailable
from capdex_router.commands.help import Help, lines, parse_help
from capdex_router.commands.help_intents import made
from capdex_router.commands.intents.manifest import CommandTool, Intent, Kind
from capdex_router.commands.learned import Learned, command_of, sheltered
from capdex_router.commands.output import is_json
from capdex_router.commands.sandbox.bubblewrap import ProcessResult
from capdex_router.policy.quoting import said

MAX_COMMANDS: Final = 128  # of those that a help lists: `docker` has 55
_VERSION: Final = re.compile(r"\d+\.\d+(?:\.\d+)?")

Run = Callable[[Sequence[str]], Awaitable[ProcessResult]]


def kind_of(output: bytes) -> Kind:
    """Return the shape of an output: JSON, JSON on each line, a table, or lines."""
    if is_json(output):
        return "json"
    lines = [line for line in output.splitlines() if line.strip()]
    if lines and all(line.startswith((b"{", b"[")) and is_json(line) for line in lines):
        return "jsonLines"
    cells = {len(re.split(rb"\s{2,}|\t", line.strip())) for line in lines}
    return "table" if len(lines) > 1 and len(cells) == 1 and cells.pop() > 1 else "lines"


async def learn(tool: CommandTool, program: Path, run: Run) -> Learned:
    """Learn a program: read its help and that of its subcommands, shelter its templates, probe.

    `program` is a resolved path; `run` runs an argument list in a sandbox without a network, in a
    directory of known content. Raises InvalidInput if a template uses an option that the help does
    not list, and what `run` raises.
    """
    digest = hashlib.sha256(await asyncio.to_thread(program.read_bytes)).hexdigest()
    version = await run((str(program), "--version"))
    text = await _help((str(program),), run)
    known = parse_help(text, program.name)
    commands: dict[str, Help] = {}
    for words in filter(None, (command_of(intent.template) for intent in tool.intents)):
        if " ".join(words) not in commands:
            commands[" ".join(words)] = parse_help(await _help((str(program), *words), run))
    intents = [sheltered(intent, known, commands) for intent in tool.intents]
    successes = [frozenset((0,)) for _ in intents]
    probes = []
    for sample in tool.samples:
        intent = intents[sample.intent]
        argv = (str(program), *intent.template.argv(sample.values)[1:])
        ran = await run(argv)
        successes[sample.intent] |= {ran.exit_code}
        if intent.kind is None and ran.stdout.strip():
            intents[sample.intent] = replace(intent, kind=kind_of(ran.stdout))
        probes.append({"argv": list(argv), "exit_code": ran.exit_code})
    said = (version.stdout or version.stderr)[:1000].decode(errors="replace")
    # `flask` tells of Python before it tells of itself.
    own = (line for line in said.splitlines() if program.name in line.lower())
    number = next(filter(None, map(_VERSION.search, own)), None) or _VERSION.search(said)
    return Learned(
        replace(
            tool,
            manifest=replace(tool.manifest, version=number[0] if number else "0.0.0"),
            intents=tuple(intents),
        ),
        program,
        digest,
        known,
        commands,
        tuple(successes),
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
    listed = parse_help(text, name).subcommands
    about = {
        head.removeprefix(f"{name} ").partition(" ")[0].rstrip(":*"): words.strip()
        for head, _, words in reversed(rows)
        if not set(words.split()) <= set(listed)  # names in columns are no description
    }
    intents: list[Intent] = []
    for command in (*listed[:MAX_COMMANDS], ""):
        with contextlib.suppress(Unavailable):  # it waits for something: no tool of an agent
            page = await _help((str(program), command), run) if command else text
            intent = made(name, command, page, about.get(command, ""), writable=writable)
            # The help of the program again is that of no subcommand.
            repeated = page == text and (command or intents)
            if intent is not None and not repeated:
                intents.append(intent)
    if not intents:
        what = f"the help of {name} lists no options and no usage"
        why = said(text.decode(errors="replace")) if text.strip() else ""
        raise InvalidInput(what, Code.NOT_FOUND, why, "write intents, and add --intents FILE")
    return tuple(intents)


async def _help(argv: tuple[str, ...], run: Run) -> bytes:
    # `git status --help` is a page of a manual, which a sandbox does not have; `-h` is a text.
    first = b""
    for option in ("--help", "-h"):
        ran = await run((*argv, option))
        text = max(ran.stdout, ran.stderr, key=len)
        if made("x", "", text, "", writable=True):
            return text
        first = first or text
    return first
