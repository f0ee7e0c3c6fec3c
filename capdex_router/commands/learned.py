"""A learned program: its intents, its help, and the evidence of its probes, as JSON and back.

Source: CMP, Adapting Existing CLIs. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self

import msgspec
import orjson

from capdex.errors import Code, InvalidInput
from capdex_router.commands.help import Help
from capdex_router.commands.intents.manifest import (
    CommandTool,
    Intent,
    ProbeValues,
    manifest_of,
    parse_intent,
)
from capdex_router.commands.intents.template import CommandTemplate

MAX_LEARNED_BYTES: Final = 4 * 1024 * 1024  # 128 commands of `openssl` take 0.8 MB
MAX_SAMPLES: Final = 64
MAX_COMMAND_WORDS: Final = 2  # `git remote add` has two


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
            {**intent.to_json(), "idempotent": intent.idempotent, "outputParser": intent.kind}
            for intent in self.tool.intents
        ]
        return {
            "adapter": True,
            **self.tool.manifest.to_json(),
            "wraps": self.tool.manifest.binary,
            "intents": intents,
            "samples": [[sample.intent, dict(sample.values)] for sample in self.tool.samples],
            "learned": {
                "program": str(self.program),
                "sha256": self.digest,
                "help": asdict(self.help),
                "commands": {name: asdict(help_) for name, help_ in self.commands.items()},
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
            raise InvalidInput(
                "the program has too many commands and options",
                Code.TOO_LARGE,
                fix="give the intents that you need, with --intents",
            )
        return data

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """Read a learned tool again; raises InvalidInput."""
        if len(data) > MAX_LEARNED_BYTES:
            raise InvalidInput("a learned tool is too long to read", fix="learn the program again")
        try:
            value = orjson.loads(data)
            learned = value["learned"]
            known = msgspec.convert(learned["help"], Help)
            commands = msgspec.convert(learned["commands"], dict[str, Help])
            read = [parse_intent(entry) for entry in value["intents"]]
            intents = tuple(sheltered(intent, known, commands) for intent in read)
            successes = tuple(frozenset(map(int, codes)) for codes in learned["successes"])
            if len(successes) != len(intents):
                raise ValueError("an intent has no exit codes")
            return cls(
                CommandTool(manifest_of(value), intents, parse_samples(value, len(intents))),
                Path(learned["program"]),
                str(learned["sha256"]),
                known,
                commands,
                successes,
                dict(learned["evidence"]),
                learned["writable"] is True,
                tuple(Path(path) for path in learned["readable"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidInput(
                "a learned tool cannot be read", why=repr(error)[:200], fix="learn it again"
            ) from None


def parse_samples(value: Mapping[str, Any], intents: int) -> tuple[ProbeValues, ...]:
    """Return the `samples` of an adapter with so many intents; raises InvalidInput."""
    try:
        samples = tuple(
            ProbeValues(intent, dict(values)) for intent, values in value.get("samples", ())
        )
        known = all(sample.intent in range(intents) for sample in samples)
    except (ValueError, TypeError):
        samples, known = (), False
    if len(samples) > MAX_SAMPLES or not known:
        raise InvalidInput(
            "the samples of an adapter are wrong",
            why=f"expected at most {MAX_SAMPLES} pairs of the number of an intent and its values",
            fix="correct samples in the adapter, or leave them out",
        )
    return samples


def command_of(template: CommandTemplate) -> tuple[str, ...]:
    """Return the words between the program and the first option or value."""
    words: list[str] = []
    for element in template.elements[1 : 1 + MAX_COMMAND_WORDS]:
        if element.name is not None or element.literal.startswith("-"):
            break
        words.append(element.literal)
    return tuple(words)


def sheltered(intent: Intent, main: Help, commands: Mapping[str, Help]) -> Intent:
    """Return an intent whose values stay values, by the help of its program and its command.

    Raises InvalidInput if its template uses an option that the help does not list.
    """
    # The text as it was written: what is sheltered depends on this help alone.
    template = CommandTemplate.parse(intent.template.text, intent.template.parameters)
    command = commands.get(" ".join(command_of(template)), main)
    known = Help({**main.options, **command.options}, ())
    glued = [x.literal.rstrip("= ") for x in template.elements if x.name and x.literal]
    unknown = [option for option in (*template.options(), *glued) if option not in known.options]
    if unknown:
        raise InvalidInput(
            f"the help does not list {', '.join(unknown)}",
            why=f"the template is {template.text!r}",
            fix="take it out of the template, or use a version of the program that has it",
        )
    valued = [name for name, needs in known.options.items() if needs]
    return replace(intent, template=template.sheltered(valued))
