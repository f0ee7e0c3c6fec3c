"""An MCP server as a package: its tools, bound by `mcp_service` (P10)."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import ssl
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TextIO

from capdex.errors import Code, InvalidInput, Unavailable, UsageError
from capdex.json import Json, object_of
from capdex.manifest.urls import url_fault
from capdex.net.connection import proxy_of
from capdex_publisher.authoring.imports.draft import Draft, DraftTool
from capdex_publisher.authoring.imports.openai import tool_of
from capdex_publisher.authoring.imports.report import (
    DOCUMENT,
    UNSEEN,
    Note,
    clean,
    name_of,
    unseen,
    written,
)
from capdex_publisher.authoring.imports.servers import Server, public_address, server_of
from capdex_publisher.authoring.imports.source import shown

if TYPE_CHECKING:
    import httpx2
    import mcp

TIMEOUT_S: Final = 60.0  # a command may install the server first
MAX_PAGES: Final = 50
MAX_LISTED: Final = 1_000  # tools that are looked at
MAX_TOOL_BYTES: Final = 64 * 1024
MAX_NAMED: Final = 40  # tools in an error
_REASON: Final = re.compile(r"\w*Error\b")
_WEB: Final = re.compile(r"https?://[^\s'\"]+")
MAX_SAID_BYTES: Final = 4000  # of what a program that fails wrote to stderr


async def import_mcp(
    source: str, *, service: str = "", name: str = "", wanted: Sequence[str] = ()
) -> Draft:
    """Return the draft of the tools of an MCP server.

    `source` is the server's http(s) URL, or the command that starts it on stdio, which gets the
    environment of this process without the variables of capdex, and those in front of it; or the
    file of a host that has one server. `wanted` are the names of the tools to take: all, if none.
    `service` is the https address at which others reach it; by default the URL, and a line to edit
    for a command. Raises UsageError for what names no server, and Unavailable if it does not
    answer.
    """
    if service and not service.startswith("did:") and (fault := url_fault(service)):
        what = f"--service {service!r} is no address at which others reach the server"
        raise UsageError(what, why=fault, fix="give its https URL, or leave --service out")
    server = server_of(source)
    unsent = server.headers
    with _quiet(), tempfile.TemporaryFile("w+", errors="replace") as errors:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                answers = await _ask(server, errors)
        except TimeoutError:
            why = f"it did not answer in {TIMEOUT_S:g} s"
            raise _unavailable(server, why, _said(errors)) from None
        except Unavailable as error:
            more = f"; its headers were not sent: {', '.join(unsent)}" if unsent else ""
            raise replace(error, why=f"{error.why}{more}") from None
    draft = _draft(answers, server.url, service, name, wanted)
    why = "a binding mcp_service sends no header: add by --service a URL that needs none"
    added = [Note(DOCUMENT, f"header {x}", "left out", "", why) for x in unsent]
    for word in server.unread:
        why = "it is not read" + ("; --tool NAME takes single tools" if "ool" in word else "")
        added.append(Note(DOCUMENT, f"server {word}", "left out", "", why))
    return replace(draft, notes=[*draft.notes, *added])


class _Answers:
    """What a server said of itself, and its tools."""

    def __init__(self, client: mcp.Client) -> None:
        info = client.server_info
        self.name = clean(info.name if info else "")
        self.title = clean(getattr(info, "title", "") or self.name)
        self.description = clean(getattr(info, "description", "") or "")
        self.website = clean(getattr(info, "website_url", "") or "")
        self.instructions = client.instructions or ""
        self.capabilities = client.server_capabilities
        self.tools: list[Any] = []  # as JSON
        self.goes_on = False  # after as many as are looked at


def _client(server: Server, http: httpx2.AsyncClient, errors: TextIO) -> mcp.Client:
    import mcp
    from mcp.client.stdio import StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client

    if server.url:
        return mcp.Client(streamable_http_client(server.url, http_client=http))
    # By default the SDK hides the shell's keys, proxies and certificates, which servers need.
    shell = {key: x for key, x in os.environ.items() if not key.startswith("CAPDEX_")}
    command, *args = server.command
    env = {**shell, **server.env}
    parameters = StdioServerParameters(command=command, args=args, env=env, cwd=server.cwd)
    return mcp.Client(stdio_client(parameters, errlog=errors))


async def _ask(server: Server, errors: TextIO) -> _Answers:
    import httpx2

    statuses = list[int]()

    async def note(response: httpx2.Response) -> None:  # the SDK's errors do not have it
        statuses.append(response.status_code)

    tls = ssl.create_default_context()
    proxy = proxy_of(server.url)
    http = httpx2.AsyncClient(timeout=TIMEOUT_S, verify=tls, proxy=proxy, trust_env=False)
    http.event_hooks = {"response": [note]}
    try:
        async with http, _client(server, http, errors) as client:
            answers, cursor = _Answers(client), None
            seen: set[str | None] = set()
            while cursor not in seen and len(seen) < MAX_PAGES and len(answers.tools) < MAX_LISTED:
                seen.add(cursor)
                listed, cursor = await _page(client, cursor)
                answers.tools += [x for x in listed if x not in answers.tools]
            answers.goes_on = bool(cursor) and cursor not in seen
            return answers
    except TimeoutError:
        raise
    except (FileNotFoundError, PermissionError):
        raise UsageError(
            f"the command {server.shown!r} cannot be started",
            why="there is no such program that may be run, or no folder to start it in",
            fix="give the command as you type it in a shell, or the server's URL",
        ) from None
    except Exception as error:  # noqa: BLE001 - the SDK raises groups and errors of its transports
        said = _said(errors)
        raise _unavailable(server, _cause(error, statuses, said), said) from None


def _cause(error: BaseException, statuses: Sequence[int], said: str) -> str:
    """Return why a server did not answer; empty where what its program wrote says it all."""
    from pydantic import ValidationError

    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, ValidationError):
        [first, *_] = error.errors()
        where = ".".join(map(str, first["loc"]))
        cause = clean(f"its reply does not follow MCP at {where}: {first['msg']}")[:300]
    else:
        told = f"{type(error).__name__}: {error}".removesuffix(": ")
        cause = clean(_WEB.sub(lambda match: shown(match[0]), told))[:300]
        if said and str(error) in ("", "Connection closed"):  # the end of a program
            return ""
    if statuses and statuses[-1] >= 400:
        cause += f" (HTTP {statuses[-1]})"
        if statuses[-1] in (401, 403):
            cause += "; a package calls servers without authentication"
    return cause


async def _page(client: mcp.Client, cursor: str | None) -> tuple[list[Any], str | None]:
    """Return a page of tools as JSON, and the cursor of the next one."""
    import mcp_types as types
    from pydantic import TypeAdapter, ValidationError

    request = types.ListToolsRequest(params=types.PaginatedRequestParams(cursor=cursor))
    session: Any = client.session
    try:  # not `list_tools`: it takes out the words that it does not know
        page = await session.send_request(request, TypeAdapter(dict[str, Any]))
    except ValidationError:  # one odd tool: the SDK refuses the whole page
        asked = request.model_dump(mode="json", by_alias=True, exclude_none=True)
        options: Json = {}
        session._stamp(asked, options)  # which has no public face, as the next one
        page = await session._dispatcher.send_raw_request("tools/list", asked["params"], options)
    listed, more = page.get("tools"), str(page.get("nextCursor") or "")  # some give a number
    return (listed, more or None) if isinstance(listed, list) else ([], None)


def _draft(answers: _Answers, url: str, service: str, name: str, wanted: Sequence[str]) -> Draft:
    if answers.goes_on:
        raise InvalidInput(
            "the server lists too many tools, and no router calls one of them",
            why=f"over {MAX_PAGES} pages or {MAX_LISTED} tools",
            fix="have the server list fewer, or more of them on a page",
        )
    own = name or name_of(answers.name) or "mcp-tools"
    notes: list[Note] = []
    if own not in (name, answers.name):
        notes.append(Note(DOCUMENT, "name", "changed", answers.name, own))
    listed = answers.tools[:MAX_LISTED]
    tools = list(_tools(listed, service or public_address(url), wanted, notes))
    if not tools:
        raise InvalidInput(
            "the server offers no tool that a package can carry",
            why="; ".join(str(x) for x in notes if x.fate == "refused") or "it lists none",
            fix="a package without tools is a prompt: capdex init NAME --kind prompt",
        )
    if not url:
        why = "others call the server by https, at the URL of --service"
        notes.append(Note(DOCUMENT, "command", "left out", "", why))
    for kind in ("prompts", "resources"):
        if getattr(answers.capabilities, kind, None):
            why = "a package has tools and one prompt"
            notes.append(Note(DOCUMENT, kind, "left out", "", why))
    if lost := unseen(answers.instructions):
        notes.append(Note(DOCUMENT, "instructions", "left out", lost, UNSEEN))
    title = answers.title or own.replace("-", " ").title()
    return Draft(
        own,
        title,
        answers.description,
        prompt=clean(answers.instructions),
        homepage=answers.website,
        tools=tools,
        notes=notes,
    )


def _tools(
    listed: Sequence[Any], address: str, wanted: Sequence[str], notes: list[Note]
) -> Iterator[DraftTool]:
    """Yield the wanted tools of a list; `notes` gets what of it is not carried."""
    names: list[str] = []
    for tool in listed:
        given = object_of(tool).get("name")
        name = given if isinstance(given, str) else ""
        source = clean(name)[:128] or "a tool without a name"
        if fault := _fault(tool, name, names):
            notes.append(Note(source, "tool", "refused", "", fault))
            continue
        names.append(name)
        if name in wanted or not wanted:
            binding: Json = {"type": "mcp_service", "service_uri": address, "mcp_action": name}
            made, lost = tool_of(tool, source, binding)
            notes += lost
            yield made
    if missing := [x for x in wanted if x not in names]:
        has = ", ".join(map(clean, names[:MAX_NAMED]))
        raise UsageError(f"the server has no tool {missing[0]!r}", why=f"it has {has}")


def _fault(tool: Any, name: str, names: Sequence[str]) -> str:
    """Return the reason why an entry of the list is no tool, empty if it is one."""
    if not name:
        return "it is not an object with a name"
    if name in names:
        return "another tool has this name, by which a server is called"
    if object_of(tool.get("execution")).get("taskSupport") == "required":
        return "it runs as a task alone, and a package calls it and waits"
    if len(written(tool | {"outputSchema": None}).encode(errors="replace")) > MAX_TOOL_BYTES:
        return f"it has more than {MAX_TOOL_BYTES} bytes"
    return ""


def _said(errors: TextIO) -> str:
    """Return what the program wrote to stderr: npm says its reason first, Python last.

    Node.js says it in the middle, in a line that begins with `Error` or `TypeError`.
    """
    errors.seek(0, os.SEEK_END)
    errors.seek(max(0, errors.tell() - MAX_SAID_BYTES))
    lines = [x.strip()[:200] for x in errors.read().splitlines() if x.strip()]
    reason = [x for x in lines[3:-3] if _REASON.match(x)][:1]
    return clean("; ".join(lines if len(lines) < 7 else [*lines[:3], "…", *reason, *lines[-3:]]))


def _unavailable(server: Server, why: str, said: str) -> Unavailable:
    what = f"the MCP server {server.shown!r} did not list its tools"
    fix = "give its URL with its path, often /mcp"
    if why.endswith("without authentication"):
        fix = "give the URL of a server that needs no authentication"
    elif not server.url:
        fix = "start it by hand to see what it says"
    told = "; it wrote: ".join(filter(None, [why, said]))
    return Unavailable(what, Code.SERVICE_UNAVAILABLE, why=told, fix=fix)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the SDK's log lines about a stranger's faults away from the terminal."""
    log = logging.getLogger("mcp")
    before, log.level = log.level, logging.CRITICAL
    try:
        yield
    finally:
        log.level = before
