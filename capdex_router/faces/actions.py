"""The five actions of an agent: find, describe, call, route and manage, over the runtime.

They answer values and texts; the MCP face puts them into results. What packages say stands in
answers alone, cut and without characters that do not show.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import orjson

from capdex.errors import Code, InvalidInput
from capdex.json import Json, object_of
from capdex.json_schema.arguments import came, check_names, one_of, read_arguments
from capdex.uri import PREFIX as PACKAGE
from capdex_router.catalog.catalog import NOT_HERE, TOOLS_SHOWN, Catalog, Listed, split
from capdex_router.catalog.mcp_mount import Mounted
from capdex_router.catalog.search import CatalogHit, Search
from capdex_router.commands.source import LearnedTools
from capdex_router.faces.arguments import Wanted, example, read_input, within
from capdex_router.faces.manage import Packages, next_calls
from capdex_router.faces.tools import ACTIONS, LEVELS, MAX_HITS
from capdex_router.install.resolve import NodeHit
from capdex_router.invoke.invoke import Caller, Invoker
from capdex_router.invoke.results import PREFIX, Results
from capdex_router.model.capability import Capability
from capdex_router.model.images import Image, without_images
from capdex_router.model.refs import InvokeResult
from capdex_router.policy.consent import Asker, clean
from capdex_router.policy.quoting import seen
from capdex_router.routing.session import Session

LINE_CHARS: Final = 120  # of a description in a list
WHY_SHOWN: Final = 2  # fields that matched, of a hit of a node
MAX_LISTED: Final = 64  # tools of a package, which has no more; a mounted server may
_BRACKETS: Final = str.maketrans("[]", "()")
READ_ON: Final = {"properties": {"offset": {"type": "integer"}}}  # the input for a stored result


@dataclass(frozen=True, slots=True)
class Actions:
    """What an agent can do; what is None is not offered. The MCP servers have resources."""

    catalog: Catalog
    search: Search
    invoker: Invoker
    results: Results
    routing: Session | None = None
    packages: Packages | None = None
    learned: LearnedTools | None = None
    servers: Sequence[Mounted] = ()

    async def find(self, want: str, limit: int = 5, *, remote: bool = True) -> str:
        """Return one line a hit, with why it was found; without a wish the domains."""
        await self._awake()
        if not want.strip():
            domains = [f"{name} ({count})" for name, count in self.search.domains().items()]
            lines = [f"domains: {', '.join(domains[:50])}"] if domains else []
            lines += self._missing()
            return "\n".join(lines) or "nothing is installed: say in want what is to be done"
        limit = min(max(limit, 1), MAX_HITS)
        hits = self.search.find(want, limit)
        node_hits: Sequence[NodeHit] = ()
        asked = ""
        packages = self.packages if remote else None
        if packages is not None and (len(hits) < limit or packages.nodes_are_here):
            node_hits, asked = await packages.search(want, MAX_HITS)
            hits = self.search.find(want, limit, {x.capability_id: _why(x) for x in node_hits})
        lines = [self._hit(*pair) for pair in zip(hits, [None, *hits], strict=False)]
        here = {x.ref.capability_id for x in self.catalog.latest()} if node_hits else ()
        new = [x for x in node_hits if x.capability_id not in here][: limit - len(lines)]
        lines += [_registry_hit(x) for x in new]
        lines += [f"to use {x.name}, install it: {_install(x.name)}" for x in new[:1]]
        wider = "" if remote or self.packages is None else ", or ask the registry: remote true"
        lines = lines or [f"nothing found: try other words{wider}"]
        lines += self._missing() if len(lines) < limit else []
        return "\n".join([*lines, asked] if asked else lines)

    def describe(self, uri: str, level: int = 3) -> Json | str:
        """Return a capability at one of CMP's levels 1 to 4; the third is CAP's manifest, short."""
        if level is True or level not in LEVELS:
            raise InvalidInput("there is no such level", why=came(level), fix="give 1 to 4")
        capability = self._named(uri)
        if level == 1:
            return _line(capability)
        if level == 2:
            lines = [_line(listed) for listed in self.catalog.tools(capability.ref)]
            return "\n".join(_cut(lines, MAX_LISTED)) or "it has no tools"
        if level == 4:
            sample = {"uri": capability.ref.capability_id, **self._example(capability, "input")}
            return self._fitting(sample)
        ref = capability.ref
        # The URI says the kind, too, and the name of a tool.
        said = ("capability_id", "version", "kind", "name" if "#" in ref.capability_id else "")
        shown = capability.manifest() | {"resources": [x["name"] for x in capability.resources]}
        if capability.kind == "skill":
            shown["tools"] = [self.catalog.short_name(x) for x in capability.tools][:TOOLS_SHOWN]
        rest = {x: y for x, y in shown.items() if x not in said and y not in (None, [])}
        uri = f"{self.catalog.short_name(ref.capability_id)}@{ref.version}"
        return self._fitting({"uri": uri, **rest})

    async def call(self, wanted: Wanted, caller: Caller) -> tuple[InvokeResult, tuple[Image, ...]]:
        """Invoke a capability, or a command by a wish, or read on in a stored result.

        The images of its output are beside the result, for the host to show.
        """
        if wanted.uri is not None and wanted.uri.startswith(PREFIX):
            given = read_arguments(READ_ON, within(wanted.input))
            check_names("a stored result", READ_ON["properties"], given)
            return InvokeResult(self.results.read(wanted.uri, given.get("offset", 0)), None, 0), ()
        uri, given = wanted.uri, wanted.input
        if uri is not None and uri.startswith("mcp:"):
            await self._awake(re.split("[#@]", uri)[0])
        if uri is None:
            if self.learned is None:
                raise InvalidInput("no commands are learned here", fix="call by uri")
            uri = self.learned.named(wanted.want or "")
        capability = self._named(uri)
        inner, named = within(given), object_of(capability.input_schema.get("properties"))
        if "input" not in named or not self.invoker.accepts(capability, given):
            given = inner
        if not self.invoker.accepts(capability, given):  # a null, or digits, as models write them
            read = read_input(capability.input_schema, given)
            given = read if self.invoker.accepts(capability, read) else given
        # Without a version the highest is meant, also if a program is learned again on the way.
        _, version = split(uri)
        result = await self.invoker.invoke(capability.ref.capability_id, version, given, caller)
        if self.routing is not None:
            self.routing.answered(capability, result)
        if result.error is not None and result.error["reason"] == Code.INVALID_INPUT:
            shown = {"uri": uri, "input_schema": capability.input_schema}
            shown = self._fitting(self._example(capability, "example") | shown)
            shown = result.error["details"] | shown
            result = replace(result, error=result.error | {"details": shown})
        output, images = without_images(result.output or {})
        if wanted.uri is None and result.ok:  # words of a wish fill no parameter: say what ran
            called = {"called": {"uri": uri, "input": given}}
            output = called | output | called
        result = replace(result, output=output) if result.ok else result
        return self.results.shorten(result), images

    def route(self, message: str) -> Json:
        """Return the capability that a message is for, and why."""
        if self.routing is None:
            raise InvalidInput("messages are not routed here", Code.NOT_FOUND, fix=NOT_HERE)
        return self.routing.route(message)

    async def manage(self, action: str, target: str, asker: Asker) -> str:
        """Install, upgrade, remove or learn `target`, or list what is here."""
        one_of("action", action, ACTIONS)
        if action == "list":
            await self._awake()
            lines = [*_cut(self._installed()), *self._missing()]
            return "\n".join(lines) or "nothing is installed"
        if not target:
            raise InvalidInput(f"{action} needs a target", fix="give a name as target")
        if action == "learn" and self.learned is not None:
            known = await self.learned.learning.learn(target, asker)
            ids = [x.ref.capability_id for x in self.catalog.latest()]
            names = [x for x in ids if x.startswith(f"{known}#")]
            return f"{known}: learned\n{next_calls(names)}"
        if self.packages is None or action == "learn":
            raise InvalidInput(f"{action} is not offered here", fix=f"run: capdex {action}")
        return await self.packages.act(action, target, asker)

    async def _awake(self, owner: str = "") -> None:
        named = [server for server in self.servers if owner in ("", f"mcp:{server.name}")]
        await asyncio.gather(*(server.awake() for server in named))

    def _missing(self) -> list[str]:
        """Return a line for packages that cannot be read, and for each server that does not run."""
        down = [("what is installed", self.catalog.fault)]
        down += [(f"mcp:{server.name}", server.down) for server in self.servers]
        return [f"{x} is missing: {clean(y.line)}; {y.fix}" for x, y in down if y is not None]

    def _named(self, uri: str) -> Capability:
        """Return what a model names; the error for what is not installed says how that is done."""
        try:
            return self.catalog.find(uri)
        except InvalidInput as error:
            mounted = None if self.routing is None else self.routing.active
            if error.code == Code.AMBIGUOUS and mounted:  # its prompt uses short names
                with suppress(InvalidInput):
                    return self.catalog.find(f"{mounted}#{uri}")
            for server in self.servers:
                if uri.startswith(f"mcp:{server.name}#") and (down := server.down) is not None:
                    raise down from None
            name = re.split(r"[#@]", uri.removeprefix(PACKAGE))[0]
            if error.fix != NOT_HERE or self.packages is None or not name or ":" in name:
                raise
            fix = f"{NOT_HERE}, or if it is in the registry: {_install(name)}"
            raise replace(error, fix=fix) from None

    def _fitting(self, answer: Json) -> Json:
        """Return what fits the context of a model; of more its beginning, as of a long output."""
        return self.results.shorten(InvokeResult(seen(answer), None, 0)).output or answer

    def _example(self, capability: Capability, key: str) -> Json:
        """Return an input that the schema allows, under a key; the schema if none is known."""
        schema = capability.input_schema
        for candidate in (capability.example, example(schema)):
            if candidate is not None and self.invoker.accepts(capability, candidate):
                return {key: candidate}
        return {"input_schema": schema}

    def _hit(self, hit: CatalogHit, above: CatalogHit | None) -> str:
        """Return a hit in as few tokens as possible: `call` and `describe` take the short name.

        Why it was found is not said again if it is the same as in the line above.
        """
        name = self.catalog.short_name(hit.listed.ref.capability_id)
        why = "" if above is not None and above.why == hit.why else f" [{hit.why}]"
        return f"{name} {_described(hit.listed.description)}{why}"

    def _installed(self) -> list[str]:
        """Return a line for each package, then for each tool that has none."""
        latest = {x.ref.capability_id: x for x in self.catalog.latest()}
        shown = [id_ for id_ in latest if "#" not in id_ or id_.partition("#")[0] not in latest]
        return [_line(latest[id_]) for id_ in sorted(shown, key=lambda id_: "#" in id_)]


def _cut(lines: list[str], most: int = MAX_HITS) -> list[str]:
    more = len(lines) - most
    return lines[:most] + ([f"and {more} more: use find"] if more > 0 else [])


def _line(entry: Listed | Capability) -> str:
    ref = entry.ref
    return f"{ref.capability_id}@{ref.version} {clean(entry.description, LINE_CHARS)}".rstrip()


def _registry_hit(hit: NodeHit) -> str:
    """Return a hit of a node; its name without a version, since that would pin an installation."""
    shown = _described(hit.summary or hit.title)
    version = hit.uri.partition("@")[2]
    state = ", deprecated" if hit.deprecated else ""
    state += f", like the older name {hit.like} of another owner" if hit.like else ""
    return f"{hit.name} {shown} [registry {version}{state}, by {_why(hit)}]"


def _described(words: str) -> str:
    """Return a description for a line of `find`, where what stands in brackets is ours."""
    return clean(words, LINE_CHARS).translate(_BRACKETS)


def _why(hit: NodeHit) -> str:
    return ", ".join(hit.matched[:WHY_SHOWN]) or "meaning"


def _install(name: str) -> str:
    return f'manage {{"action":"install","target":{orjson.dumps(clean(name)).decode()}}}'
