"""JSON-RPC to an EVM chain: bounded, batched, with several endpoints failed over.

Our own client rather than web3's: a reply meets a size bound before it meets a parser, one bad log
does not cost the range it came in, and a too large range is not asked for five times more.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit, urlunsplit

import aiohttp
import orjson

from capdex.errors import Code, UsageError
from capdex.events import RawLog
from capdex.net import faults
from capdex.net.faults import Fault, RpcError
from capdex.net.wire import Header, hex_, quantity, read_header, read_logs, unhex

CONNECT_S = 5.0
READ_S = 20.0
MAX_REPLY_BYTES = 64 * 1024 * 1024  # a range of ~50 000 logs; larger ones only slow us down
MAX_BATCH = 100  # vendors refuse more, and a batch of headers stays near 2 MB
MAX_ATTEMPTS = 6  # about 8 s with one endpoint; whoever can wait longer asks again
BACKOFF_BASE_S = 0.25
BACKOFF_CAP_S = 8.0
BLAMED_REST_S = 30.0  # where there is another endpoint to ask meanwhile

_ELSEWHERE = (Fault.RATE, Fault.TRANSIENT, Fault.FATAL)  # another endpoint may answer these
_HEADERS = {"content-type": "application/json", "accept": "application/json"}

T = TypeVar("T")
Call = tuple[str, Sequence[Any]]


def _as_is(result: Any) -> Any:
    return result


@dataclass(slots=True)
class _Endpoint:
    url: str
    shown: str
    failures: int = 0
    rests_until: float = 0.0
    batches: bool = True


class Rpc:
    """Calls to one chain through one or more endpoints, the first healthy one preferred.

    A websocket URL is also asked over HTTP at the same place, as Anvil and the vendors serve both;
    `websockets` are the URLs at which new heads may be heard (see `capdex.net.heads`).
    """

    def __init__(
        self, urls: Sequence[str], *, session: aiohttp.ClientSession | None = None
    ) -> None:
        if not urls:
            raise UsageError("no RPC endpoint is given", Code.CONFIG, fix="pass --rpc-url URL")
        spoken = [_split_schemes(url) for url in urls]
        http = list(dict.fromkeys(http for http, _ in spoken))
        self._endpoints = [_Endpoint(url, redact(url)) for url in http]
        self.websockets = tuple(dict.fromkeys(websocket for _, websocket in spoken))
        self._session, self._owns_session = session, session is None
        self._ids = itertools.count(1)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the session, if it is ours."""
        if self._session is not None and self._owns_session:
            await self._session.close()
            self._session = None

    @property
    def session(self) -> aiohttp.ClientSession:
        """The HTTP session, opened on first use inside the running loop."""
        if self._session is None:
            timeout = aiohttp.ClientTimeout(
                total=CONNECT_S + READ_S, sock_connect=CONNECT_S, sock_read=READ_S
            )
            self._session = aiohttp.ClientSession(timeout=timeout, read_bufsize=1 << 20)
        return self._session

    @property
    def endpoint(self) -> str:
        """The endpoint asked next, with its credentials left out."""
        return self._pick(set()).shown

    async def call(
        self, method: str, params: Sequence[Any] = (), read: Callable[[Any], T] = _as_is
    ) -> T:
        """The result of one call; raises RpcError.

        `read` makes a value of it; where it raises ValueError the endpoint is at fault.
        """
        results = await self._anywhere([(method, params)], read, single=True)
        return results[0]

    async def batch(self, calls: Sequence[Call], read: Callable[[Any], T] = _as_is) -> list[T]:
        """The results of many calls, in their order; raises RpcError when any of them fails."""
        results: list[T] = []
        for start in range(0, len(calls), MAX_BATCH):
            results += await self._anywhere(calls[start : start + MAX_BATCH], read, single=False)
        return results

    async def chain_id(self) -> int:
        """The chain's id."""
        return await self.call("eth_chainId", (), quantity)

    async def block(self, number: int | str) -> Header | None:
        """A block's header by number or tag, or None where the endpoint has none."""
        tag = number if isinstance(number, str) else hex(number)
        return await self.call("eth_getBlockByNumber", [tag, False], read_header)

    async def blocks(self, numbers: Sequence[int]) -> list[Header | None]:
        """Headers by number, in the order asked, None where the endpoint has none."""
        calls = [("eth_getBlockByNumber", [hex(n), False]) for n in numbers]
        return await self.batch(calls, read_header)

    async def logs(self, address: bytes, first: int, last: int) -> list[RawLog]:
        """A contract's logs in blocks `first` to `last`, both included, in canonical order."""
        query = {"address": hex_(address), "fromBlock": hex(first), "toBlock": hex(last)}
        return await self.call(
            "eth_getLogs", [query], lambda found: read_logs(found, address, first, last)
        )

    async def logs_at(self, address: bytes, blocks: Sequence[Header]) -> list[list[RawLog]]:
        """A contract's logs in each of these blocks, asked by block hash."""

        def read(found: Any) -> list[RawLog]:
            logs = read_logs(found, address, blocks[0].number, blocks[-1].number)
            if any(log.position.block_hash not in hashes for log in logs):
                raise ValueError("a log is of another block")
            return logs

        hashes = {block.hash for block in blocks}
        calls = [
            ("eth_getLogs", [{"address": hex_(address), "blockHash": hex_(block.hash)}])
            for block in blocks
        ]
        if len(calls) == 1:
            return [await self.call(*calls[0], read)]
        return await self.batch(calls, read)

    async def view(self, address: bytes, data: bytes, block: bytes | str = "latest") -> bytes:
        """What a contract returns to a call at a block, by hash (EIP-1898) or tag."""
        at = block if isinstance(block, str) else {"blockHash": hex_(block)}
        return await self.call("eth_call", [{"to": hex_(address), "data": hex_(data)}, at], unhex)

    async def code(self, address: bytes, block: str = "latest") -> bytes:
        """The code at an address; empty where there is none."""
        return await self.call("eth_getCode", [hex_(address), block], unhex)

    def blame(self, why: str) -> RpcError:
        """Let the current endpoint rest: what it said cannot be true. Returns the error to raise.

        Another endpoint is asked next; a lone one after a pause.
        """
        endpoint = self._pick(set())
        error = _error(endpoint, Fault.TRANSIENT, why)
        self._rest(endpoint, error)
        if len(self._endpoints) > 1:
            endpoint.rests_until += BLAMED_REST_S
        return error

    # --------------------------------------------------------------------------------- inside

    async def _anywhere(
        self, calls: Sequence[Call], read: Callable[[Any], T], *, single: bool
    ) -> list[T]:
        hopeless: set[str] = set()
        for attempt in itertools.count(1):
            endpoint = self._pick(hopeless)
            wait_s = endpoint.rests_until - asyncio.get_running_loop().time()
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            try:
                results = await self._ask(endpoint, calls, read, single=single)
            except RpcError as error:
                if error.fault is Fault.FATAL:
                    hopeless.add(endpoint.url)
                elif error.fault in _ELSEWHERE:
                    self._rest(endpoint, error)
                last = len(hopeless) == len(self._endpoints) or attempt >= MAX_ATTEMPTS
                if error.fault not in _ELSEWHERE or last:
                    raise
            else:
                endpoint.failures = 0
                return results
        raise AssertionError("unreachable")

    def _pick(self, hopeless: set[str]) -> _Endpoint:
        now = asyncio.get_running_loop().time()
        able = [e for e in self._endpoints if e.url not in hopeless]
        return min(able, key=lambda e: max(e.rests_until - now, 0.0))

    def _rest(self, endpoint: _Endpoint, error: RpcError) -> None:
        # Full jitter: many nodes behind one endpoint must not come back at the same instant.
        ceiling_s = min(BACKOFF_CAP_S, BACKOFF_BASE_S * 2**endpoint.failures)
        endpoint.failures = min(endpoint.failures + 1, 16)
        pause_s = random.uniform(0, ceiling_s)  # noqa: S311 - jitter, not a secret
        pause_s = max(pause_s, error.retry_after_s or 0.0)
        endpoint.rests_until = asyncio.get_running_loop().time() + pause_s

    async def _ask(
        self,
        endpoint: _Endpoint,
        calls: Sequence[Call],
        read: Callable[[Any], T],
        *,
        single: bool,
    ) -> list[T]:
        if single or not endpoint.batches:
            replies = [await self._ask_one(endpoint, call) for call in calls]
        else:
            replies = await self._ask_many(endpoint, calls)
        try:
            return [read(_result(endpoint, reply)) for reply in replies]
        except (ValueError, OverflowError) as error:
            raise _error(endpoint, Fault.TRANSIENT, str(error)) from None

    async def _ask_many(self, endpoint: _Endpoint, calls: Sequence[Call]) -> list[Any]:
        requests = [self._request(call) for call in calls]
        try:
            reply = await self._post(endpoint, requests)
            if isinstance(reply, dict) and reply.get("error"):
                _result(endpoint, reply)
        except RpcError as error:
            if error.fault not in (Fault.FATAL, Fault.TOO_LARGE_RANGE):
                raise
            endpoint.batches = False  # it takes no batches, or none this long
            return [await self._ask_one(endpoint, call) for call in calls]
        answers = reply if isinstance(reply, list) else []
        by_id = {r["id"]: r for r in answers if isinstance(r, dict) and type(r.get("id")) is int}
        if len(answers) != len(calls) or any(r["id"] not in by_id for r in requests):
            raise _error(endpoint, Fault.TRANSIENT, "the reply does not answer the calls asked")
        return [by_id[request["id"]] for request in requests]

    async def _ask_one(self, endpoint: _Endpoint, call: Call) -> Any:
        request = self._request(call)
        reply = await self._post(endpoint, request)
        if not isinstance(reply, dict):
            raise _error(endpoint, Fault.TRANSIENT, "the reply is not a JSON-RPC object")
        if not reply.get("error") and reply.get("id") != request["id"]:
            raise _error(endpoint, Fault.TRANSIENT, "the reply carries another call's id")
        return reply

    def _request(self, call: Call) -> dict[str, Any]:
        method, params = call
        return {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": list(params)}

    async def _post(self, endpoint: _Endpoint, body: Any) -> Any:
        try:
            async with self.session.post(
                endpoint.url, data=orjson.dumps(body), headers=_HEADERS, allow_redirects=False
            ) as response:
                data = await _read(endpoint, response)
                status = response.status
                wait_s = faults.retry_after(response.headers.get("retry-after"))
        except TimeoutError:
            raise _error(
                endpoint, Fault.TRANSIENT, f"no answer within {CONNECT_S + READ_S:.0f} s"
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            why = str(error).replace(endpoint.url, endpoint.shown) or type(error).__name__
            raise _error(endpoint, Fault.TRANSIENT, why[:300]) from None
        try:
            reply = orjson.loads(data)
        except orjson.JSONDecodeError:
            reply = None
        if status == 200 and reply is not None:
            return reply
        fault, why = faults.of_status(status), f"HTTP status {status}"
        if isinstance(reply, dict) and isinstance(reply.get("error"), dict):
            # Some vendors answer a refused call with status 400; its words say more.
            said = faults.of_error(reply["error"])
            fault = said if status == 400 or said is not Fault.TRANSIENT else fault
            why = _words(reply["error"])
        elif status == 200:
            fault, why = Fault.TRANSIENT, "the reply is not JSON"
        raise _error(endpoint, fault, why, wait_s)


async def _read(endpoint: _Endpoint, response: aiohttp.ClientResponse) -> bytes:
    pieces, size = [], 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > MAX_REPLY_BYTES:
            raise _error(endpoint, Fault.TOO_LARGE_RANGE, "the reply is over 64 MiB")
        pieces.append(piece)
    return b"".join(pieces)


def _result(endpoint: _Endpoint, reply: dict[str, Any]) -> Any:
    if reply.get("error"):
        raise _error(endpoint, faults.of_error(reply["error"]), _words(reply["error"]))
    if "result" not in reply:
        raise _error(endpoint, Fault.TRANSIENT, "the reply has neither result nor error")
    return reply["result"]


def _words(error: Any) -> str:
    text = error.get("message") if isinstance(error, dict) else error
    return "".join(c if c.isprintable() else " " for c in str(text)[:300])


def _error(
    endpoint: _Endpoint, fault: Fault, why: str, retry_after_s: float | None = None
) -> RpcError:
    return RpcError(
        f"the RPC endpoint {endpoint.shown} did not answer as it should",
        why=why,
        fix="see that it runs and is reachable, or add another endpoint with --rpc-url",
        details={"endpoint": endpoint.shown, "fault": str(fault)},
        fault=fault,
        retry_after_s=retry_after_s,
    )


def redact(url: str) -> str:
    """An endpoint as it may be shown: vendors' URLs carry keys in user, path and query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that is no URL"
    host = parts.netloc.rpartition("@")[2]
    secret = parts.path.strip("/") or parts.query
    return f"{parts.scheme}://{host}" + ("/…" if secret else "")


def _split_schemes(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https", "ws", "wss") and parts.hostname
    except ValueError:
        known = None
    if not known:
        raise UsageError(
            "an RPC endpoint is not a URL this program can use",
            Code.CONFIG,
            why="its scheme must be http, https, ws or wss, and it must name a host",
            fix="write it like http://127.0.0.1:8545",
        )
    tail = "s" if parts.scheme in ("https", "wss") else ""
    return (
        urlunsplit(parts._replace(scheme=f"http{tail}")),
        urlunsplit(parts._replace(scheme=f"ws{tail}")),
    )
