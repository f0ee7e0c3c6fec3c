"""An MCP server as a package: its tools, bound by `mcp_service` (P10)."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TextIO

import orjson

from capdex.errors import Code, InvalidInput, Unavailable, UsageError
from publisher.authoring.imports.draft import Draft, DraftTool, Json
from publisher.authoring.imports.report import DOCUMENT, Note
from publisher.authoring.imports.schemas import Resolver, TooLarge, adapted
from publisher.authoring.imports.text import clean, name_of, tool_name_of
from publisher.authoring.scaffold import placeholder_url

if TYPE_CHECKING:
    import mcp
    from mcp.types import Tool

TIMEOUT_S: Final = 60.0  # a command may install the server first
MAX_PAGES: Final = 50
MAX_LISTED: Final = 1_000  # tools that are looked at
MAX_TOOL_BYTES: Final = 64 * 1024
MAX_SAID_BYTES: Final = 500  # of what a program that fails wrote to stderr

_HINTS: Final = {
    "read_only_hint": "read_only",
    "destructive_hint": "destructive",
    "idempotent_hint": "idempotent",
}


async def import_mcp(source: str, *, service: str = "", name: str = "") -> Draft:
    """Return the draft of the tools of an MCP server.

    `source` is the server's http(s) URL, or the command that starts it on stdio, which gets the
    environment of this process without the variables of capdex. `service` is the https address at
    which others reach it; by default the URL, and a line to edit for a command. Raises UsageError
    for a command that cannot be read, and Unavailable if the server does not answer.
    """
    is_url = source.startswith(("http://", "https://"))
    try:
        async with asyncio.timeout(TIMEOUT_S):
            with _quiet(), tempfile.TemporaryFile("w+", errors="replace") as errors:
                found = await _ask(source, is_url, errors)
    except TimeoutError:
        raise _unavailable(source, f"it did not answer in {TIMEOUT_S:g} s") from None
    return _draft(found, source if is_url else "", service, name)


class _Found:
    """What a server said of itself, and its tools."""

    def __init__(self, client: mcp.Client) -> None:
        info = client.server_info
        self.name = clean(info.name if info else "")
        self.title = clean(getattr(info, "title", "") or self.name)
        self.description = clean(getattr(info, "description", "") or "")
        self.website = clean(getattr(info, "website_url", "") or "")
        self.instructions = clean(client.instructions or "")
        self.capabilities = client.server_capabilities
        self.tools: list[Tool] = []


async def _ask(source: str, is_url: bool, errors: TextIO) -> _Found:
    import mcp
    from mcp.client.stdio import StdioServerParameters, stdio_client

    if is_url:
        client = mcp.Client(source)
    else:
        command = _command(source)
        # By default the SDK hides the shell's keys, proxies and certificates, which servers need.
        shell = {key: x for key, x in os.environ.items() if not key.startswith("CAPDEX_")}
        parameters = StdioServerParameters(command=command[0], args=command[1:], env=shell)
        client = mcp.Client(stdio_client(parameters, errlog=errors))
    try:
        async with client:
            found, cursor = _Found(client), None
            for _ in range(MAX_PAGES):
                page = await client.list_tools(cursor=cursor)
                found.tools += page.tools
                cursor = page.next_cursor
                if not cursor or len(found.tools) >= MAX_LISTED:
                    break
            return found
    except TimeoutError:
        raise
    except FileNotFoundError:
        raise UsageError(
            f"the command {source!r} cannot be started",
            why="there is no such program",
            fix="give the command as you type it in a shell, or the server's URL",
        ) from None
    except Exception as error:  # noqa: BLE001 - the SDK raises groups and errors of its transports
        said = "" if is_url else _last_lines(errors)
        raise _unavailable(source, said or _cause(error)) from None


def _draft(found: _Found, url: str, service: str, name: str) -> Draft:
    own = name or name_of(found.name) or "mcp-tools"
    address = service or (url if url.startswith("https://") else placeholder_url("mcp"))
    notes: list[Note] = []
    tools: list[DraftTool] = []
    for tool in found.tools[:MAX_LISTED]:
        source = clean(tool.name)[:128] or "a tool without a name"
        if len(orjson.dumps(tool.model_dump(mode="json"))) > MAX_TOOL_BYTES:
            why = f"it has more than {MAX_TOOL_BYTES} bytes"
            notes.append(Note(source, "tool", "refused", "", why))
            continue
        parameters, lost = adapted(tool.input_schema, source)
        notes += lost
        made = tool_name_of(source, [x.name for x in tools])
        output, lost = _output(tool.output_schema, source)
        notes += lost
        description = tool.description or tool.title or ""
        binding: Json = {"type": "mcp_service", "service_uri": address, "mcp_action": tool.name}
        annotations = _annotations(tool)
        tools.append(DraftTool(made, source, description, parameters, binding, output, annotations))
    if not tools:
        raise InvalidInput(
            "the server offers no tool that a package can carry",
            why="; ".join(map(str, notes)),
            fix="a package without tools is a prompt: capdex init NAME --kind prompt",
        )
    if not url:
        why = "others call the server by https, at the URL of --service"
        notes.append(Note(DOCUMENT, "command", "left out", "", why))
    for kind in ("prompts", "resources"):
        if getattr(found.capabilities, kind, None):
            why = "a package has tools and one prompt"
            notes.append(Note(DOCUMENT, kind, "left out", "", why))
    title = found.title or own.replace("-", " ").title()
    homepage = found.website if found.website.startswith("https://") else ""
    return Draft(
        *(own, title, found.description),
        prompt=found.instructions,
        homepage=homepage,
        tools=tools,
        notes=notes,
    )


def _output(schema: Any, source: str) -> tuple[Json | None, list[Note]]:
    if schema is None:
        return None, []
    if schema.get("type", "object") != "object":
        why = "it is not the schema of an object"
        return None, [Note(source, "output schema", "left out", "", why)]
    try:
        return {"type": "object", **Resolver().schema(schema)}, []
    except TooLarge:
        return None, [Note(source, "output schema", "left out", "", "it is too large")]


def _annotations(tool: Tool) -> dict[str, bool]:
    """Return what a server states of a tool's effects; a tool that only reads destroys nothing."""
    stated = {
        ours: value
        for theirs, ours in _HINTS.items()
        if isinstance(value := getattr(tool.annotations, theirs, None), bool)
    }
    if stated.get("read_only") and stated.get("destructive"):
        del stated["destructive"]
    return stated


def _command(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"the command {text!r} cannot be read", why=str(error)) from None
    if not words:
        raise UsageError("--from-mcp is empty", fix="give a URL, or the command of a server")
    return words


def _last_lines(errors: TextIO) -> str:
    """Return the end of what the program wrote to stderr."""
    errors.seek(0, os.SEEK_END)
    errors.seek(max(0, errors.tell() - MAX_SAID_BYTES))
    return clean("; ".join(x.strip() for x in errors.read().splitlines()[-3:] if x.strip()))


def _cause(error: BaseException) -> str:
    """Return the innermost reason of an error that may be a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return clean(f"{type(error).__name__}: {error}".removesuffix(": "))[:300]


def _unavailable(source: str, why: str) -> Unavailable:
    return Unavailable(
        f"the MCP server {source!r} did not list its tools",
        Code.SERVICE_UNAVAILABLE,
        why=why,
        fix="start it by hand to see what it says, or give its URL with its path, often /mcp",
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the SDK's log lines about a stranger's faults away from the terminal."""
    log = logging.getLogger("mcp")
    before, log.level = log.level, logging.CRITICAL
    try:
        yield
    finally:
        log.level = before
