"""An MCP server as a package: its tools, bound by `mcp_service` (P10)."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import orjson

from capdex.errors import Code, InvalidInput, Unavailable, UsageError
from capdex.json import Json
from capdex.manifest.tools import MCP_HINTS
from capdex_publisher.authoring.imports.detect import is_server
from capdex_publisher.authoring.imports.draft import Draft, DraftTool
from capdex_publisher.authoring.imports.report import DOCUMENT, Note
from capdex_publisher.authoring.imports.schemas import adapted, adapted_output
from capdex_publisher.authoring.imports.source import parse, read_file
from capdex_publisher.authoring.imports.text import clean, name_of
from capdex_publisher.authoring.scaffold import placeholder_url

if TYPE_CHECKING:
    import mcp

TIMEOUT_S: Final = 60.0  # a command may install the server first
MAX_PAGES: Final = 50
MAX_LISTED: Final = 1_000  # tools that are looked at
MAX_TOOL_BYTES: Final = 64 * 1024
MAX_NAMED: Final = 40  # tools or servers in an error
MAX_SAID_BYTES: Final = 500  # of what a program that fails wrote to stderr

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_URLS: Final = ("url", "httpUrl", "serverUrl")  # as Gemini CLI and Windsurf write it


async def import_mcp(
    source: str, *, service: str = "", name: str = "", wanted: Sequence[str] = ()
) -> Draft:
    """Return the draft of the tools of an MCP server.

    `source` is the server's http(s) URL, or the command that starts it on stdio, which gets the
    environment of this process without the variables of capdex, and those in front of it; or a
    file with `mcpServers`. `wanted` are the names of the tools to take: all, if none. `service` is
    the https address at which others reach it; by default the URL, and a line to edit for a
    command. Raises UsageError for a command that cannot be read, and Unavailable if the server does
    not answer.
    """
    source, unsent = _configured(source)
    is_url = source.startswith(("http://", "https://"))
    with _quiet(), tempfile.TemporaryFile("w+", errors="replace") as errors:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                found = await _ask(source, is_url, errors)
        except TimeoutError:
            said = "" if is_url else _last_lines(errors)
            why = f"it did not answer in {TIMEOUT_S:g} s" + (f"; it wrote: {said}" if said else "")
            raise _unavailable(source, why) from None
        except Unavailable as error:
            more = f"; its headers were not sent: {', '.join(unsent)}" if unsent else ""
            raise replace(error, why=f"{error.why}{more}") from None
    draft = _draft(found, source if is_url else "", service, name, wanted)
    why = "a binding mcp_service sends no header: add by --service a URL that needs none"
    added = [Note(DOCUMENT, f"header {x}", "left out", "", why) for x in unsent]
    return replace(draft, notes=[*draft.notes, *added])


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
        self.tools: list[Any] = []  # as JSON


async def _ask(source: str, is_url: bool, errors: TextIO) -> _Found:
    import mcp
    from mcp.client.stdio import StdioServerParameters, stdio_client

    if is_url:
        client = mcp.Client(source)
    else:
        command, variables = _command(source)
        # By default the SDK hides the shell's keys, proxies and certificates, which servers need.
        shell = {key: x for key, x in os.environ.items() if not key.startswith("CAPDEX_")}
        parameters = StdioServerParameters(
            command=command[0], args=command[1:], env=shell | variables
        )
        client = mcp.Client(stdio_client(parameters, errlog=errors))
    try:
        async with client:
            found, cursor = _Found(client), None
            seen: set[str | None] = set()
            while cursor not in seen and len(seen) < MAX_PAGES and len(found.tools) < MAX_LISTED:
                seen.add(cursor)
                listed, cursor = await _page(client, cursor)
                found.tools += [x for x in listed if x not in found.tools]
            return found
    except TimeoutError:
        raise
    except FileNotFoundError:
        raise UsageError(
            f"the command {_shown(source)!r} cannot be started",
            why="there is no such program",
            fix="give the command as you type it in a shell, or the server's URL",
        ) from None
    except Exception as error:  # noqa: BLE001 - the SDK raises groups and errors of its transports
        said = "" if is_url else _last_lines(errors)
        inner = _innermost(error)
        # The SDK reports the end of a program in the same class.
        answered = isinstance(inner, mcp.MCPError) and str(inner) != "Connection closed"
        cause = clean(f"{type(inner).__name__}: {inner}".removesuffix(": "))[:300]
        parts = [cause] if answered or not said else []
        raise _unavailable(
            source, "; it wrote: ".join([*parts, *([said] if said else [])])
        ) from None


async def _page(client: mcp.Client, cursor: str | None) -> tuple[list[Any], str | None]:
    """Return a page of tools as JSON, and the cursor of the next one."""
    from pydantic import ValidationError

    try:
        page = await client.list_tools(cursor=cursor, cache_mode="bypass")
    except ValidationError:  # one odd tool: the SDK refuses the whole page
        parameters = {"cursor": cursor} if cursor else None
        dispatcher: Any = client.session._dispatcher  # which has no public face
        raw = await dispatcher.send_raw_request("tools/list", parameters, {})
        listed, following = raw.get("tools"), raw.get("nextCursor")
        if not isinstance(listed, list):
            raise
        return listed, following if isinstance(following, str) and following else None
    tools = [x.model_dump(mode="json", by_alias=True, exclude_none=True) for x in page.tools]
    return tools, page.next_cursor or None


def _draft(found: _Found, url: str, service: str, name: str, wanted: Sequence[str]) -> Draft:
    own = name or name_of(found.name) or "mcp-tools"
    address = service or (url if url.startswith("https://") else placeholder_url("mcp"))
    notes: list[Note] = []
    if own not in (name, found.name):
        notes.append(Note(DOCUMENT, "name", "changed", found.name, own))
    tools: list[DraftTool] = []
    names: list[str] = []
    for tool in found.tools[:MAX_LISTED]:
        given = tool.get("name") if isinstance(tool, dict) else None
        source = clean(given if isinstance(given, str) else "")[:128] or "a tool without a name"
        if fault := _fault(tool, names):
            notes.append(Note(source, "tool", "refused", "", fault))
            continue
        names.append(tool["name"])
        if wanted and tool["name"] not in wanted:
            continue
        parameters, lost = adapted(tool.get("inputSchema"), source)
        notes += lost
        output, lost = adapted_output(tool.get("outputSchema"), source)
        notes += lost
        description = str(tool.get("description") or tool.get("title") or "")
        binding: Json = {"type": "mcp_service", "service_uri": address, "mcp_action": tool["name"]}
        annotations = _annotations(tool)
        tools.append(DraftTool(source, description, parameters, binding, output, annotations))
    if missing := [x for x in wanted if x not in names]:
        listed = ", ".join(map(clean, names[:MAX_NAMED]))
        raise UsageError(f"the server has no tool {missing[0]!r}", why=f"it has {listed}")
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


def _fault(tool: object, names: Sequence[str]) -> str:
    """Return the reason why an entry of the list is no tool, empty if it is one."""
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str) or not tool["name"]:
        return "it is not an object with a name"
    if tool["name"] in names:
        return "another tool has this name, by which a server is called"
    execution = tool.get("execution")
    if isinstance(execution, dict) and execution.get("taskSupport") == "required":
        return "it runs as a task alone, and a package calls it and waits"
    if len(orjson.dumps(tool, default=str)) > MAX_TOOL_BYTES:
        return f"it has more than {MAX_TOOL_BYTES} bytes"
    return ""


def _annotations(tool: Json) -> dict[str, bool]:
    """Return what a server states of a tool's effects; a tool that only reads destroys nothing."""
    given = tool.get("annotations")
    hints: Json = given if isinstance(given, dict) else {}
    stated = {ours: hints[x] for x, ours in MCP_HINTS.items() if isinstance(hints.get(x), bool)}
    if stated.get("read_only") and stated.get("destructive"):
        del stated["destructive"]
    return stated


def _command(text: str) -> tuple[list[str], dict[str, str]]:
    """Return the words of a command, and the variables that stand in front of it as in a shell."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"the command {text!r} cannot be read", why=str(error)) from None
    first = next((i for i, x in enumerate(words) if not _VARIABLE.match(x)), len(words))
    variables = dict(x.split("=", 1) for x in words[:first])
    if not words[first:]:
        raise UsageError("--from-mcp is empty", fix="give a URL, or the command of a server")
    return words[first:], variables


def _configured(source: str) -> tuple[str, list[str]]:
    """Return the command line or URL of the one server in a file of `mcpServers`.

    With it come the names of the headers of a URL. Another source is returned as it is. Raises
    UsageError if the file has several or none.
    """
    path = Path(source)
    if path.suffix != ".json" or not path.is_file():
        return source, []
    value = parse(read_file(path), source)
    given = value.get("mcpServers", value.get("servers")) if isinstance(value, dict) else None
    servers: Json = given if isinstance(given, dict) else {}
    lines: dict[str, str] = {}
    headers: list[str] = []
    for name, server in servers.items():
        if not isinstance(server, dict):
            continue
        words, env, sent = server.get("command"), server.get("env"), server.get("headers")
        env = env if isinstance(env, dict) else {}
        # Several servers are listed in an error, which holds no key of theirs.
        told = os.path.expandvars if len(servers) == 1 else lambda _: "VALUE"
        variables = [f"{x}={told(str(y))}" for x, y in env.items()]
        words = words if isinstance(words, list) else [words] if words else []
        words = [*words, *(server["args"] if isinstance(server.get("args"), list) else [])]
        url = next((server[x] for x in _URLS if server.get(x)), "")
        if url or words:
            lines[str(name)] = str(url or shlex.join([*variables, *map(str, words)]))
        headers = [clean(x) for x in sent] if isinstance(sent, dict) else []
    if len(lines) == 1:
        return next(iter(lines.values())), headers
    if isinstance(value, dict) and is_server(value):
        commands = {"npm": "npx -y", "pypi": "uvx"}
        ways = [str(x["url"]) for x in _objects(value.get("remotes")) if x.get("url")]
        ways += [
            f"{commands.get(str(x.get('registryType')), 'COMMAND')} {x.get('identifier')}"
            for x in _objects(value.get("packages"))
        ]
        raise UsageError(
            f"{source} describes a server of the MCP registry, and lists no tools",
            why="they are asked for at the server's URL, or of the command that starts it",
            fix="; or ".join(f"capdex init --from-mcp {shlex.quote(clean(x))}" for x in ways)
            or "give the URL of the server, or its command",
        )
    raise UsageError(
        f"{source} lists {len(lines)} MCP servers; a package is made of one",
        why=", ".join(map(clean, lines)) or "it has no mcpServers",
        fix="; or ".join(
            f"capdex init {name_of(x) or 'NAME'} --from-mcp {shlex.quote(line)}"
            for x, line in list(lines.items())[:MAX_NAMED]
        )
        or "give the URL of a server, or its command",
    )


def _objects(value: object) -> list[Json]:
    return [x for x in value if isinstance(x, dict)] if isinstance(value, list) else []


def _last_lines(errors: TextIO) -> str:
    """Return the end of what the program wrote to stderr."""
    errors.seek(0, os.SEEK_END)
    errors.seek(max(0, errors.tell() - MAX_SAID_BYTES))
    return clean("; ".join(x.strip() for x in errors.read().splitlines()[-3:] if x.strip()))


def _innermost(error: BaseException) -> BaseException:
    """Return the first error in an error that may be a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _shown(source: str) -> str:
    """Return a source without the variables in front of its command, which may be keys."""
    is_url = source.startswith(("http://", "https://"))
    words, variables = ([], {}) if is_url else _command(source)
    return shlex.join(words) if variables else source


def _unavailable(source: str, why: str) -> Unavailable:
    return Unavailable(
        f"the MCP server {_shown(source)!r} did not list its tools",
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
