"""Client of a capdex node: its MCP tools, and its pages of a name and of its status.

A node's answers are claims: verify a package against the chain before it is installed. A node may
be hostile, too: a reply over its limit is not read further, and each failure is a typed error.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final
from urllib.parse import quote

import orjson

from capdex.codes import error_codes
from capdex.errors import (
    CapdexError,
    Code,
    InvalidInput,
    Refused,
    Unavailable,
    UsageError,
    VerificationFailure,
    quoted,
    untrusted_text,
)
from capdex.json import Json, object_of
from capdex.net import json_reply
from capdex.net.http import READ_S, HttpClient, HttpError, ResponseTooLarge, redact

MAX_ANSWER_BYTES: Final = 2 << 20  # over MCP; a node keeps its own answers below 1 MiB
MAX_PROVEN_BYTES: Final = 16 << 20  # with a proof of all releases: 11 MB for a thousand of them
MAX_NAME_BYTES: Final = 8 << 20  # the page of a name: thousands of releases
MAX_STATUS_BYTES: Final = 1 << 20
LONG_BYTES: Final = 1 << 20  # of a long reply each value takes at least so many bytes on average:
MIN_VALUE_BYTES: Final = 8
NO_PAGE: Final = "there is nothing here"  # a node about a page that it does not have
PROTOCOL_VERSION: Final = "2026-07-28"  # the first revision of MCP without a handshake


async def call_tool(mcp_url: str, tool: str, arguments: Json, limit_s: float = READ_S) -> Json:
    """Call one MCP tool of a node by Streamable HTTP: one POST without a session.

    Returns its structured content, or raises the error that it stands for (P16).
    """
    meta = {
        "io.modelcontextprotocol/protocolVersion": PROTOCOL_VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    whole = {**arguments, "detail": "full"}  # the answers are checked: all of them is needed
    params = {"name": tool, "arguments": whole, "_meta": meta}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",  # a server may insist on both
        "MCP-Protocol-Version": PROTOCOL_VERSION,
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }
    proven = arguments.get("proof", "none") != "none"
    status, answer = await _request(
        "POST",
        mcp_url,
        body=orjson.dumps(request),
        headers=headers,
        max_bytes=MAX_PROVEN_BYTES if proven else MAX_ANSWER_BYTES,
        limit_s=limit_s,
    )
    error = answer.get("error")
    if isinstance(error, dict):
        raise _down(mcp_url, f"MCP error: {_quoted(error.get('message'))}")
    result = object_of(answer.get("result"))
    content = result.get("structuredContent")
    if not isinstance(content, dict):
        raise _down(mcp_url, f"it answered {status}, and not as a capdex node")
    if content.get("message") == f"{tool} takes no argument 'detail'":
        raise _earlier(mcp_url)
    if result.get("isError"):
        raise as_error(content)
    return content


async def serves(node_url: str, cap_uri: str, sha256: str) -> bool:
    """Return True if a node answers `cap_uri` with the bytes of this digest (sha256, hex).

    Raises Unavailable while the node has no verdict yet, and VerificationFailure if it rejected
    the package.
    """
    try:
        path = f"/v1/resolve?uri={quote(cap_uri)}"
        answer = await _get(node_url, path, "sha256", str, MAX_ANSWER_BYTES)
    except InvalidInput as error:
        if error.code is not Code.NOT_FOUND:
            raise
        if NO_PAGE in error.message:
            raise _earlier(node_url, ", or its URL has a wrong path") from None
        return False
    return bool(answer["sha256"] == sha256)


async def releases(node_url: str, name: str) -> Json:
    """Read a node's page of a name, `GET /c/<name>.json`; raises InvalidInput NOT_FOUND."""
    return await _get(node_url, f"/c/{name}.json", "releases", list, MAX_NAME_BYTES)


async def status(node_url: str) -> Json:
    """Read a node's status, `GET /status`; its `chain` is an object."""
    return await _get(node_url, "/status", "chain", dict, MAX_STATUS_BYTES)


async def indexed_block(node_url: str) -> int | None:
    """Return the newest block that a node has indexed; None before the first."""
    block = (await status(node_url))["chain"].get("block_number")
    return block if isinstance(block, int) else None


async def _get(node_url: str, path: str, member: str, kind: type, max_bytes: int) -> Json:
    """Return the JSON object of a page, which has this member; raise the error it stands for."""
    status, answer = await _request("GET", f"{node_url}{path}", max_bytes=max_bytes)
    if status == 200 and isinstance(answer.get(member), kind):
        return answer
    if "code" in answer:
        raise as_error(answer)
    raise _down(node_url, f"it answered {status}, and not as a capdex node")


async def _request(
    method: str, url: str, *, max_bytes: int, limit_s: float = READ_S, **more: Any
) -> tuple[int, Json]:
    """Return status and JSON object of an answer; raises Unavailable NODE_UNAVAILABLE."""
    try:
        async with asyncio.timeout(limit_s), HttpClient() as http:
            response = await http.request(method, url, max_bytes=max_bytes, **more)
    except TimeoutError:
        raise _down(url, f"no answer within {limit_s:g} s") from None
    except ResponseTooLarge:
        raise _misbehaves(url, f"over {max_bytes >> 20} MiB") from None
    except HttpError as error:
        raise _down(url, str(error)) from None
    try:
        answer = json_reply.parse(
            response.body, long_bytes=LONG_BYTES, min_value_bytes=MIN_VALUE_BYTES
        )
    except ValueError as error:
        if response.status != 200:
            raise _down(url, f"it answered {response.status}, and not with JSON") from None
        raise _misbehaves(url, str(error)) from None
    if not isinstance(answer, dict):
        raise _down(url, f"it answered {response.status}, and not as a capdex node")
    return response.status, answer


def as_error(content: Json, who: str = "the node") -> CapdexError:
    """Return the typed error for `{code, message, retryable, details}`.

    Its texts are named and quoted as those of `who`: people and models take an error for ours.
    """
    try:
        code = Code(untrusted_text(content.get("code")))
    except ValueError:
        return Unavailable(
            f"the node failed: {_quoted(content.get('message'))}",
            Code.NODE_UNAVAILABLE,
        )
    details = {**object_of(content.get("details"))}
    details.pop("proven", None)  # only who verified a proof says so
    said = content.get("message"), details.pop("why", ""), details.pop("fix", "")
    texts = map(untrusted_text, said)
    message, why, fix = (text and f"{who} says {quoted(text)}" for text in texts)
    return _family(code)(message or str(code), code, why, fix, details)


def _quoted(words: object) -> str:
    return quoted(untrusted_text(words)[:300])


def _family(code: Code) -> type[CapdexError]:
    kind = error_codes()[code]
    if code is Code.UNVERIFIED:
        return VerificationFailure
    if kind.retryable or code is Code.INTERNAL:
        return Unavailable
    return {4: Refused, 2: UsageError}.get(kind.exit, InvalidInput)


def _down(url: str, why: str) -> Unavailable:
    return Unavailable(
        f"the node at {redact(url)} does not answer as it should",
        Code.NODE_UNAVAILABLE,
        why=why,
        fix="see that it runs and is reachable (start one: capdex up), or name another with "
        "CAPDEX_MCP_URL and CAPDEX_NODE_URL",
    )


def _earlier(url: str, also: str = "") -> Unavailable:
    return Unavailable(
        f"the node at {redact(url)} is of an earlier version of capdex{also}",
        Code.NODE_UNAVAILABLE,
        why="it does not answer what is asked now",
        fix="upgrade it, or name another node with CAPDEX_MCP_URL and CAPDEX_NODE_URL",
    )


def _misbehaves(url: str, how: str) -> Unavailable:
    return Unavailable(
        f"the answer of {redact(url)} is {how}",
        Code.NODE_UNAVAILABLE,
        why="a capdex node sends no such answer",
        fix="name another node with CAPDEX_MCP_URL and CAPDEX_NODE_URL",
    )
