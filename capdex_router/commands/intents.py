"""Intents of learned tools through the pipeline: by a wish in words, or by the tool and intent."""

from __future__ import annotations

from dataclasses import dataclass

from capdex.json import Json
from capdex_router.catalog.catalog import Catalog
from capdex_router.cmp.manifest import CommandTool, Intent
from capdex_router.cmp.match import match
from capdex_router.commands.source import LearnedTools, refs
from capdex_router.invoke.invoke import Caller, Invoker
from capdex_router.model.refs import InvokeResult


@dataclass(frozen=True, slots=True)
class Intents:
    """Runs intents; `catalog` has them beside all else."""

    tools: LearnedTools
    invoker: Invoker
    catalog: Catalog

    def named(self, want: str, context: Json) -> tuple[str, Json]:
        """Return the id of the one intent that a wish names (CMP, Execute: Intent), and its input.

        Raises InvalidInput AMBIGUOUS with candidates, or NOT_FOUND.
        """
        found = match(want, self.tools.tools())
        ref = refs(found.tool)[found.tool.intents.index(found.intent)]
        names = [one.name for one in found.intent.template.parameters]
        return ref.capability_id, {name: context[name] for name in names if name in context}

    async def run(
        self, tool: CommandTool, intent: Intent, arguments: Json, caller: Caller
    ) -> InvokeResult:
        """Run an intent."""
        ref = refs(tool)[tool.intents.index(intent)]
        return await self.invoker.invoke(ref.capability_id, None, arguments, caller)
