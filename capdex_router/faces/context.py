"""Prompts and resources of the MCP face: what a person or a host puts into a model's context.

`capdex://NAME/VERSION/PART` is a part of a package, `skill://NAME/FILE` a file of a skill folder,
`mcp://SERVER/URI` a resource that a mounted server lists.
"""

from __future__ import annotations

import asyncio
import base64
import mimetypes
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from capdex.errors import CapdexError, Code, InvalidInput
from capdex.manifest.prompt import fill
from capdex.profiles import cap
from capdex.uri import PREFIX
from capdex_router.catalog.catalog import Listed
from capdex_router.catalog.skill_folder import PREFIX as SKILL
from capdex_router.faces.actions import LINE_CHARS, Actions
from capdex_router.policy.consent import clean

MAX_PROMPTS: Final = 50  # that are listed: some frameworks make a tool of each
PAGE: Final = 100  # resources
MESSAGE: Final = "message"  # an argument of each prompt: what the person wants
RESOURCE_NOT_FOUND: Final = -32002  # up to 2025-11-25; 2026-07-28 has INVALID_PARAMS instead


@dataclass(frozen=True, slots=True)
class Offered:
    """The methods of MCP over all that is installed and mounted; they raise MCPError."""

    actions: Actions

    async def list_prompts(self, _: object, __: object) -> types.ListPromptsResult:
        """Return the first prompts by name, each with its arguments in order: hosts go by it."""
        shown = [
            types.Prompt(
                name=name,
                title=clean(listed.name, LINE_CHARS),
                description=clean(listed.description, LINE_CHARS),
                arguments=[
                    types.PromptArgument(name=argument)
                    for argument in dict.fromkeys((*(listed.arguments or ()), MESSAGE))
                ],
            )
            for name, listed in sorted(self._prompts().items())[:MAX_PROMPTS]
        ]
        return types.ListPromptsResult(prompts=shown)

    async def get_prompt(
        self, context: object, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        """Return a prompt as messages of the user, who chose it; a line says whose text it is."""
        listed, given = self._prompts().get(params.name), params.arguments or {}
        with _faults():
            if listed is None:
                raise InvalidInput(
                    f"there is no prompt {params.name[:64]!r} here",
                    Code.NOT_FOUND,
                    fix="prompts/list has the first; each name of a package is one, too",
                )
            skill = self.actions.catalog.get(listed.ref.capability_id, listed.ref.version)
            text = fill(skill.prompt or "", given)
        by = f"signed by {skill.owner.signer}" if skill.owner.signer else "a folder of this machine"
        whose = clean(f"{listed.ref.capability_id}@{listed.ref.version}, {by}")
        head = f"[Prompt of {whose}. The text below is its author's, not the user's.]"
        more = [] if MESSAGE in (listed.arguments or ()) else [given.get(MESSAGE, "")]
        texts = [types.TextContent(type="text", text=x) for x in (f"{head}\n\n{text}", *more) if x]
        return types.GetPromptResult(
            messages=[types.PromptMessage(role="user", content=text) for text in texts]
        )

    async def list_resources(
        self, context: object, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Return a page of resources: of mounted servers, skill folders, then packages."""
        cursor = params.cursor if params and params.cursor else "0"
        with _faults():
            if not re.fullmatch(r"[0-9]{1,9}", cursor):
                raise InvalidInput(
                    "the cursor is none of ours",
                    fix="give nextCursor of the page before, or leave it out",
                )
            servers = self.actions.servers
            listed = await asyncio.gather(*(server.resources() for server in servers))
            entries = [
                _resource(f"mcp://{server.name}/{x.uri}", x.name, x.mime_type, x.description or "")
                for server, resources in zip(servers, listed, strict=True)
                for x in resources
            ]
            entries += self._of_skills()
        end = int(cursor) + PAGE
        more = str(end) if end < len(entries) else None
        return types.ListResourcesResult(resources=entries[int(cursor) : end], next_cursor=more)

    async def list_templates(self, _: object, __: object) -> types.ListResourceTemplatesResult:
        """Return none: hosts ask for them wherever there are resources."""
        return types.ListResourceTemplatesResult(resource_templates=[])

    async def read_resource(
        self, context: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Return what a resource holds."""
        old = context.protocol_version not in MODERN_PROTOCOL_VERSIONS
        with _faults(RESOURCE_NOT_FOUND if old else types.INVALID_PARAMS):
            return types.ReadResourceResult(contents=await self._contents(params.uri))

    async def _contents(self, uri: str) -> list[Any]:
        scheme, _, path = uri.partition("://")
        name, _, rest = path.partition("/")
        for server in self.actions.servers:
            if (scheme, name) == ("mcp", server.name):
                contents = await server.read(rest)
                return [x.model_copy(update={"uri": f"mcp://{name}/{x.uri}"}) for x in contents]
        version, _, part = rest.partition("/") if scheme == "capdex" else ("", "", rest)
        part = unquote(part)
        named = PREFIX + name if scheme == "capdex" else f"{scheme}:{unquote(name)}"
        ours = scheme in ("capdex", "skill")
        skill = self.actions.catalog.get(named, version or None) if ours else None
        resource = next((x for x in skill.resources if x["name"] == part), None) if skill else None
        if skill is None or resource is None or skill.read is None:
            raise InvalidInput(
                f"there is no resource {uri[:128]!r} here",
                Code.NOT_FOUND,
                fix="resources/list has what is there; at level 3 describe names a package's files",
            )
        data = skill.read(part)
        kind = resource.get("mimeType") or mimetypes.guess_type(part)[0]
        try:
            text = data.decode("utf-8")
            return [types.TextResourceContents(uri=uri, mime_type=kind, text=text)]
        except UnicodeDecodeError:
            blob = base64.b64encode(data).decode()
            return [types.BlobResourceContents(uri=uri, mime_type=kind, blob=blob)]

    def _prompts(self) -> dict[str, Listed]:
        """Return what has a prompt, by the name of the prompt: packages have their own names."""
        prompts: dict[str, Listed] = {}
        for listed in sorted(self.actions.catalog.latest(), key=lambda x: x.ref.capability_id):
            if listed.arguments is not None:
                name = _slug(listed.ref.capability_id.removeprefix(PREFIX).removeprefix(SKILL))
                taken = not name or name in prompts
                prompts.setdefault(_slug(listed.ref.capability_id) if taken else name, listed)
        return prompts

    def _of_skills(self) -> Iterator[types.Resource]:
        skills = [x.ref for x in self.actions.catalog.latest() if x.kind == "skill"]
        for ref in sorted(skills, key=lambda x: (x.capability_id.startswith(PREFIX), x)):
            name = ref.capability_id.removeprefix(PREFIX)
            parts = (
                self.actions.catalog.get(name).resources
                if name == ref.capability_id
                else cap.resources(name, ref.version)  # the same of each: no package is read
            )
            for part in parts:
                uri = f"skill://{quote(name.removeprefix(SKILL), '')}/{quote(part['name'])}"
                uri = part.get("uri", uri)
                yield _resource(uri, f"{name}/{part['name']}", part.get("mimeType"))


@contextmanager
def _faults(code: int = types.INVALID_PARAMS) -> Iterator[None]:
    """Turn errors into those of the protocol; `code` is for what the client got wrong."""
    try:
        yield
    except CapdexError as error:
        code = code if isinstance(error, InvalidInput) else types.INTERNAL_ERROR
        words = "; ".join(filter(None, (error.line, error.fix)))
        raise MCPError(code, words, error.to_json()) from None


def _resource(uri: str, name: str, kind: str | None, description: str = "") -> types.Resource:
    return types.Resource(
        uri=uri,
        name=clean(name),
        mime_type=clean(kind or "") or None,
        description=clean(description, LINE_CHARS) or None,
    )


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-")
