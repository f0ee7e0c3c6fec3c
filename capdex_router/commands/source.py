"""Learned tools as capabilities, `learned:<tool>#<intent>`, each run in the sandbox."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from shlex import quote
from typing import Final

from capdex.errors import Code, InvalidInput, UsageError
from capdex.json import Json
from capdex_router.bindings.build import UnusableTool
from capdex_router.catalog.catalog import Listed
from capdex_router.commands import output
from capdex_router.commands.executor import CommandExecutor, digest_of
from capdex_router.commands.intents.manifest import CommandTool, Intent
from capdex_router.commands.intents.match import is_guarded, match
from capdex_router.commands.learned import Learned, command_of
from capdex_router.commands.learning import PREFIX, Learning, owner_name
from capdex_router.commands.sandbox.bubblewrap import Sandbox, Surroundings
from capdex_router.model.capability import Capability, Executor, Owner, ToolHints
from capdex_router.model.refs import CapabilityRef

MAX_NAME_CHARS: Final = 48
_NO_NAME: Final = re.compile(r"[^a-z0-9]+")


@dataclass(eq=False)
class LearnedTools:
    """The learned tools as a source of the catalogue.

    `work` is the directory that their runs see. Nothing of `own`, the router's directory, is shown.
    """

    learning: Learning
    _: KW_ONLY
    work: Path
    own: Path
    sandbox: Callable[[], Sandbox] = Sandbox.find

    def __post_init__(self) -> None:
        self.work, self.own = self.work.resolve(), self.own.resolve()
        self._turn = asyncio.Lock()

    @property
    def revision(self) -> object:
        """A value that is equal as long as the tools are the same."""
        return self.learning.store.revision

    def listed(self) -> Iterator[Listed]:
        """Yield the intents of all tools in short."""
        for learned in self.learning.store.all().values():
            manifest = learned.tool.manifest
            for intent, ref in zip(learned.tool.intents, refs(learned.tool), strict=True):
                terms = " ".join(_phrases(intent))
                text = _description(learned.tool, intent)
                name = ref.capability_id.partition("#")[2]
                yield Listed(ref, "tool", name, text, manifest.domain, terms)

    def load(self, ref: CapabilityRef) -> Capability:
        """Return an intent with its schema and executor."""
        learned = self.learning.store.all()[_tool_of(ref.capability_id)]
        number = [x.capability_id for x in refs(learned.tool)].index(ref.capability_id)
        intent = learned.tool.intents[number]
        return Capability(
            ref,
            "tool",
            ref.capability_id.partition("#")[2],
            _description(learned.tool, intent),
            intent.input_schema(),
            Owner("learned", owner_name(learned), learned.content),
            output_schema=_output_schema(intent),
            annotations=ToolHints(destructive=is_guarded(intent), idempotent=intent.idempotent),
            executor=self._executor(learned, number),
            closed_schema={**intent.input_schema(), "additionalProperties": False},
        )

    def tools(self) -> tuple[CommandTool, ...]:
        """Return the tools as CMP has them."""
        return tuple(learned.tool for learned in self.learning.store.all().values())

    def named(self, want: str) -> str:
        """Return the id of the one intent that a wish names; raises as `match`."""
        hit = match(want, self.tools())
        return ref_of(hit.tool, hit.intent).capability_id

    async def renew(self, capability_id: str) -> None:
        """Learn a tool again if its program has other bytes than it had: what was agreed to goes.

        Raises InvalidInput if the program is gone, or has not the options of its commands any more.
        """
        if not capability_id.startswith(PREFIX):
            return
        async with self._turn:
            learned = self.learning.store.all().get(_tool_of(capability_id))
            if learned is None or (digest := digest_of(learned.program)) == learned.digest:
                return
            if not digest:
                name = quote(learned.tool.manifest.name)
                raise InvalidInput(
                    f"the program {learned.program} is not there any more",
                    Code.NOT_FOUND,
                    fix="install it again; from another place a person can run: capdex learn PATH; "
                    f"to forget it: capdex learn {name} --remove",
                )
            await self.learning.again(learned)

    def _executor(self, learned: Learned, number: int) -> Executor:
        for path in (self.work, *learned.readable):
            if self.own.is_relative_to(path) or path.is_relative_to(self.own):
                return UnusableTool(
                    f"learned programs do not see {path}",
                    "the files of the router itself are in it",
                    "start the router in a project's directory, or with --work DIR",
                )
        try:
            sandbox = self.sandbox()
        except UsageError as error:
            return UnusableTool(error.message, error.why, error.fix)
        intent = learned.tool.intents[number]
        return CommandExecutor(
            learned.program,
            learned.digest,
            intent.template,
            sandbox,
            Surroundings(self.work, writable=learned.writable, readable=learned.readable),
            _kind(intent),
            learned.successes[number],
        )


def refs(tool: CommandTool) -> tuple[CapabilityRef, ...]:
    """Return the reference of each intent; its name is that of its first phrase, or command."""
    names: list[str] = []
    for intent in tool.intents:
        words = _phrases(intent) if intent.patterns else command_of(intent.template)
        phrase = next(iter(words), "")
        name = _NO_NAME.sub("-", phrase.lower())[:MAX_NAME_CHARS].strip("-") or "run"
        same = sum(1 for other in names if re.fullmatch(re.escape(name) + r"(-\d+)?", other))
        names.append(f"{name}-{same + 1}" if same else name)
    manifest = tool.manifest
    return tuple(
        CapabilityRef(f"{PREFIX}{manifest.name}#{name}", manifest.version) for name in names
    )


def ref_of(tool: CommandTool, intent: Intent) -> CapabilityRef:
    """Return the reference of one intent of a tool."""
    return refs(tool)[tool.intents.index(intent)]


def _phrases(intent: Intent) -> list[str]:
    return [pattern for pattern in intent.patterns if not pattern.startswith("re:")]


def _tool_of(capability_id: str) -> str:
    return capability_id.removeprefix(PREFIX).partition("#")[0]


def _description(tool: CommandTool, intent: Intent) -> str:
    return intent.summary or f"{tool.manifest.summary}: {', '.join(_phrases(intent))}"


def _kind(intent: Intent) -> output.Kind:
    return intent.kind or ("auto" if intent.returns is None else "json")


def _output_schema(intent: Intent) -> Json | None:
    schema = intent.output_schema() if _kind(intent) == "json" else None
    if schema is None or schema.get("type") == "object":
        return schema
    # An output that is not an object travels as {"result": …}.
    return {"type": "object", "properties": {"result": schema}, "required": ["result"]}
