"""A capdex node from the outside: its MCP actions, and its page of a name.

What a node says is a claim: whoever installs a package checks it against the chain.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from capdex.errors import (
    KINDS,
    CapdexError,
    Code,
    InvalidInput,
    Refused,
    Unavailable,
    UsageError,
    VerificationFailure,
)
from capdex.net.rpc.hints import MAX_WORDS, words

if TYPE_CHECKING:
    from mcp import Client

READ_S: Final = 20.0  # twice what a node allows itself for one call
MAX_PAGE_BYTES: Final = 8 << 20  # a name with thousands of releases

Json = dict[str, Any]


class NodeClient:
    """One open MCP connection to a node. Open it with `NodeClient.connect`."""

    def __init__(self, client: Client, url: str) -> None:
        self._client = client
        self._url = url

    @classmethod
    @asynccontextmanager
    async def connect(cls, mcp_url: str) -> AsyncIterator[NodeClient]:
        """Open the connection; raises Unavailable NODE_UNAVAILABLE when nobody answers there."""
        from mcp import Client  # half a second to import: only where a node is asked

        try:
            async with Client(mcp_url, read_timeout_seconds=READ_S) as client:
                yield cls(client, mcp_url)
        except Exception as error:  # noqa: BLE001 - the SDK's task groups wrap whatever happened
            raise _told(error, mcp_url) from None

    async def call(self, tool: str, arguments: Json) -> Json:
        """Call one action; its structured content, or the error it stands for (P16)."""
        try:
            result = await self._client.call_tool(tool, arguments)
        except Exception as error:  # noqa: BLE001 - see connect
            raise _told(error, self._url) from None
        content = result.structured_content
        if not isinstance(content, dict):
            raise _down(self._url, "its answer has no structured content")
        if result.is_error:
            raise as_error(content)
        return content


async def serves(mcp_url: str, cap_uri: str, sha256: str) -> bool:
    """Whether a node answers `cap_uri` with these very bytes (sha256, hex).

    Raises Unavailable while it does not know yet, and VerificationFailure when it judged the
    package and rejected it. Opens a connection of its own: a node may start while we wait.
    """
    try:
        async with NodeClient.connect(mcp_url) as node:
            answer = await node.call("resolve_capability", {"cap_uri": cap_uri})
    except InvalidInput as error:
        if error.code is not Code.NOT_FOUND:
            raise
        return False
    return answer.get("sha256") == sha256


async def releases(node_url: str, name: str) -> Json:
    """Everything a node knows of a name: `GET /c/<name>.json`; raises InvalidInput NOT_FOUND."""
    status, answer = await _get(node_url, f"/c/{name}.json")
    if status == 200 and isinstance(answer.get("releases"), list):
        return answer
    raise _no_page(node_url, status, answer)


async def status(node_url: str) -> Json:
    """Where a node stands: `GET /status`, with its `chain` an object."""
    code, answer = await _get(node_url, "/status")
    if code != 200 or not isinstance(answer.get("chain"), dict):
        raise _no_page(node_url, code, answer)
    return answer


async def indexed_block(node_url: str) -> int | None:
    """The newest block whose events a node knows; None before the first."""
    block = (await status(node_url))["chain"].get("block_number")
    return block if isinstance(block, int) else None


async def _get(node_url: str, path: str) -> tuple[int, Json]:
    """The status and the JSON object of a page; raises Unavailable NODE_UNAVAILABLE."""
    import aiohttp
    import orjson

    timeout = aiohttp.ClientTimeout(total=READ_S, sock_connect=5)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(f"{node_url}{path}", allow_redirects=False) as response,
        ):
            body = await response.content.read(MAX_PAGE_BYTES + 1)
            while len(body) <= MAX_PAGE_BYTES and (more := await response.content.read(1 << 16)):
                body += more
            status = response.status
    except (aiohttp.ClientError, TimeoutError) as error:
        raise _down(node_url, _words(error)) from None
    if len(body) > MAX_PAGE_BYTES:
        raise _down(node_url, "its answer is over the limit")
    try:
        # Not json's: eth_account lets Python recurse so deep that a hostile text kills it.
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise _down(node_url, f"it answered {status}, and not with JSON") from None
    if not isinstance(answer, dict):
        raise _down(node_url, f"it answered {status}, and not as a capdex node")
    return status, answer


def _no_page(node_url: str, status: int, answer: Json) -> CapdexError:
    if "code" in answer:
        return as_error(answer)
    return _down(node_url, f"it answered {status}, and not as a capdex node")


def as_error(content: Json) -> CapdexError:
    """The error behind `{code, message, retryable, details}`, in its family."""
    try:
        code = Code(words(content.get("code")))
    except ValueError:
        return Unavailable(
            f"the node failed: {words(content.get('message'))[:300]}", Code.NODE_UNAVAILABLE
        )
    given = content.get("details")
    details: Json = dict(given) if isinstance(given, dict) else {}
    why, fix = (words(details.pop(key, ""))[:MAX_WORDS] for key in ("why", "fix"))
    message = words(content.get("message"))[:MAX_WORDS] or str(code)
    return _family(code)(message, code, why, fix, details)


def _family(code: Code) -> type[CapdexError]:
    kind = KINDS[code]
    if code is Code.UNVERIFIED:
        return VerificationFailure
    if kind.retryable or code is Code.INTERNAL:
        return Unavailable
    return {4: Refused, 2: UsageError}.get(kind.exit, InvalidInput)


def _told(error: Exception, url: str) -> CapdexError:
    """One error of ours for whatever came out of the SDK."""
    leaves = list(_leaves(error))
    for leaf in leaves:
        if isinstance(leaf, CapdexError):
            return leaf
    return _down(url, _words(leaves[0]))


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}".rstrip(": ")


def _down(url: str, why: str) -> Unavailable:
    return Unavailable(
        f"the node at {url} does not answer",
        Code.NODE_UNAVAILABLE,
        why=why,
        fix="start one: capdex up, or name another with CAPDEX_MCP_URL and CAPDEX_NODE_URL",
    )
