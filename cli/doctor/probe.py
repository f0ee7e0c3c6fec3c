"""One HTTP request at a time to whatever the doctor examines: bounded, and discreet about URLs.

Clients of the rooms retry, and fail over; a doctor wants the first answer as it is.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread
from typing import Any, Final, Self

import aiohttp
import orjson
from aiohttp.abc import AbstractResolver, ResolveResult

from capdex.encoding.keccak import keccak
from capdex.net.rpc.client import redact

MAX_REPLY_BYTES: Final = 1 << 20


class Trouble(Exception):
    """Why a request has no answer, in words without the address asked."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response as it came."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Its body; raises Trouble when that is not JSON."""
        try:
            # Not json's: eth_account lets Python recurse so deep that a hostile text kills it.
            return orjson.loads(self.body)
        except orjson.JSONDecodeError:
            raise Trouble(f"it answered {self.status}, and not with JSON") from None


class Probe:
    """One HTTP session for all checks."""

    def __init__(self) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(resolver=_Resolver()),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._session.close()

    async def ask(self, method: str, url: str, **given: Any) -> Reply:
        """One request; redirects are not followed. Raises Trouble."""
        try:
            async with self._session.request(
                method, url, allow_redirects=False, **given
            ) as response:
                body = await _read(response)
                return Reply(response.status, response.headers, body)
        except aiohttp.ClientConnectorError as error:
            words = error.os_error.strerror or "no connection"
            raise Trouble(f"{redact(url)}: {words.lower()}") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # Never their own words: some spell out the address, which may be a credential.
            raise Trouble(f"{redact(url)}: {type(error).__name__}") from None

    async def rpc(self, url: str, method: str, *params: Any) -> tuple[Any, Reply]:
        """The result of one JSON-RPC call, and the reply it came in; raises Trouble."""
        for scheme in ("ws", "wss"):  # asked over HTTP at the same place, as the node does
            if url.startswith(f"{scheme}://"):
                url = "http" + url.removeprefix("ws")
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        reply = await self.ask("POST", url, json=request)
        document = reply.json()
        if not isinstance(document, dict) or "result" not in document:
            said = document.get("error") if isinstance(document, dict) else None
            words = said.get("message") if isinstance(said, dict) else None
            raise Trouble(
                f"{redact(url)}: {method} was refused: {str(words)[:200]}"
                if words
                else f"{redact(url)}: it answered {reply.status}, and not as JSON-RPC"
            )
        return document["result"], reply

    async def view(self, url: str, address: str, name: str) -> int | None:
        """What a contract's view without arguments returns, as a number; None when it refuses."""
        call = {"to": address, "data": "0x" + keccak(f"{name}()".encode("ascii"))[:4].hex()}
        try:
            word, _ = await self.rpc(url, "eth_call", call, "latest")
            return number(word) if len(word) == 66 else None
        except (Trouble, TypeError):
            return None


def number(value: object) -> int:
    """A JSON-RPC quantity; raises Trouble for anything else."""
    try:
        if isinstance(value, str) and value.startswith("0x") and len(value) <= 66:
            return int(value, 16)
    except ValueError:
        pass
    raise Trouble("its answer makes no sense")


async def _read(response: aiohttp.ClientResponse) -> bytes:
    body = b""
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > MAX_REPLY_BYTES:
            raise Trouble(f"its answer is over {MAX_REPLY_BYTES >> 20} MiB")
    return body


class _Resolver(AbstractResolver):
    """Looks names up in threads that nobody waits for.

    Those of asyncio's own resolver are joined at the end: where DNS is broken, that takes longer
    than everything the doctor does.
    """

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        loop = asyncio.get_running_loop()
        found: asyncio.Future[list[Any]] = loop.create_future()

        def tell(answer: list[Any] | OSError) -> None:
            if found.done():
                return
            if isinstance(answer, OSError):
                found.set_exception(answer)
            else:
                found.set_result(answer)

        def look() -> None:
            answer: list[Any] | OSError
            try:
                answer = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)
            except OSError as error:
                answer = error
            except UnicodeError:  # a label over 63 characters
                answer = OSError(None, "no such host")
            with suppress(RuntimeError):  # the loop is closed: it came too late
                loop.call_soon_threadsafe(tell, answer)

        Thread(target=look, daemon=True).start()
        return [
            ResolveResult(
                hostname=host,
                host=place[0],
                port=place[1],
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST,
            )
            for kind, _, protocol, _, place in await found
        ]

    async def close(self) -> None:
        """Nothing is held."""
