"""Signers outside this process: over JSON-RPC (Clef, web3signer, a node), or a command.

A command is given one JSON line on stdin, `{"method": "eth_signTransaction", "params": [{…}]}`, and
answers on stdout with `{"result": …}` or `{"error": {"message": …}}`; what it says on stderr is
shown. The methods are those of Ethereum's JSON-RPC API. No shell reads the command line.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import aiohttp
import orjson
from typing_extensions import override

from capdex.errors import Code, Refused, Unavailable, UsageError
from capdex.net.rpc import redact
from publisher.contract import parse_address
from publisher.reply import check_message, check_transaction, refused, to_wire
from publisher.signers import Signed

ANSWER_WAIT_S: Final = 120.0  # a person may have to press a button
CONNECT_S: Final = 5.0
MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024  # a full block's transaction in hex, twice over
MAX_WORDS: Final = 300
METHOD_NOT_FOUND: Final = -32601  # JSON-RPC 2.0, section 5.1

Show = Callable[[str], None]


class _NoSuchMethod(Exception):
    """The signer does not speak this method; never leaves this module."""


class ExternalSigner(ABC):
    """An account whose key is elsewhere."""

    def __init__(
        self, address: str, *, show: Show | None = None, wait_s: float = ANSWER_WAIT_S
    ) -> None:
        self.address = address
        self.wait_s = wait_s
        self._show = show or (lambda words: None)

    async def sign_transaction(self, fields: dict[str, Any]) -> Signed:
        """Ask for a signature and check what comes: see `publisher.reply`."""
        self._show(f"{self.shown} is asked to sign a transaction; agree there if it waits")
        wire = to_wire(fields, self.address)
        # Clef has a name of its own for it.
        answer = await self._ask_first(
            ("eth_signTransaction", [wire]), ("account_signTransaction", [wire])
        )
        return check_transaction(answer, fields, self.address)

    async def sign_message(self, message: bytes) -> bytes:
        """Ask for an EIP-191 signature and check what comes."""
        self._show(f"{self.shown} is asked to sign a message; agree there if it waits")
        data = "0x" + message.hex()
        answer = await self._ask_first(
            ("personal_sign", [data, self.address]),
            ("eth_sign", [self.address, data]),
            ("account_signData", ["text/plain", self.address, data]),
        )
        return check_message(answer, message, self.address)

    async def accounts(self) -> list[str]:
        """The addresses that the signer offers (EIP-55)."""
        found = await self._ask_first(("eth_accounts", []), ("account_list", []))
        if not isinstance(found, list):
            raise refused("its list of accounts is none")
        try:
            return [parse_address(str(one)) for one in found]
        except UsageError as error:
            raise refused(f"its list of accounts holds no address: {error.message}") from None

    @abstractmethod
    async def _answer(self, request: dict[str, Any]) -> bytes:
        """The raw reply to one request; raises Unavailable SIGNER_UNAVAILABLE."""

    @property
    @abstractmethod
    def shown(self) -> str:
        """The signer as it may be shown."""

    async def _ask_first(self, *calls: tuple[str, list[Any]]) -> object:
        """The result of the first method that the signer speaks."""
        for method, params in calls:
            with suppress(_NoSuchMethod):
                return await self._ask(method, params)
        raise refused(f"{self.shown} speaks neither of {', '.join(name for name, _ in calls)}")

    async def _ask(self, method: str, params: list[Any]) -> object:
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        try:
            async with asyncio.timeout(self.wait_s):
                raw = await self._answer(request)
        except TimeoutError:
            raise self._unavailable(f"no answer within {self.wait_s:.0f} s") from None
        try:
            reply = orjson.loads(raw)
        except orjson.JSONDecodeError:
            raise refused("its answer is not JSON") from None
        if not isinstance(reply, dict) or not ({"result", "error"} & reply.keys()):
            raise refused("its answer has neither a result nor an error")
        error = reply.get("error")
        if error is None:
            return reply.get("result")
        code = error.get("code") if isinstance(error, dict) else None
        words = error.get("message") if isinstance(error, dict) else error
        if code == METHOD_NOT_FOUND:
            raise _NoSuchMethod
        raise Refused(
            "the external signer said no",
            Code.SIGNER_REFUSED,
            why=_printable(words) or f"{self.shown} gave no reason",
            fix="agree there, then run the same command again",
        )

    def _unavailable(self, why: str) -> Unavailable:
        return Unavailable(
            f"the external signer {self.shown} does not answer",
            Code.SIGNER_UNAVAILABLE,
            why=why,
            fix="start it, agree there when it asks, and run the same command again",
        )


class HttpSigner(ExternalSigner):
    """A signer that speaks JSON-RPC over HTTP."""

    def __init__(
        self,
        url: str,
        address: str,
        *,
        show: Show | None = None,
        wait_s: float = ANSWER_WAIT_S,
    ) -> None:
        super().__init__(address, show=show, wait_s=wait_s)
        self._url = url

    @property
    @override
    def shown(self) -> str:
        """Without user, path and query."""
        return redact(self._url)

    @override
    async def _answer(self, request: dict[str, Any]) -> bytes:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
        headers = {"Content-Type": "application/json"}
        body = orjson.dumps(request)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, headers=headers) as session,
                session.post(self._url, data=body, allow_redirects=False) as response,
            ):
                raw = await _read(response.content)
                if response.status >= 300 and not raw.lstrip().startswith(b"{"):
                    raise self._unavailable(f"HTTP {response.status}")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # Never str() of it as a whole: some spell out the address that was asked.
            words = getattr(getattr(error, "os_error", None), "strerror", None)
            raise self._unavailable(words or type(error).__name__) from None
        return raw


class CommandSigner(ExternalSigner):
    """A signer that is a program of the user's, run once for each request."""

    def __init__(
        self,
        command: Sequence[str],
        address: str,
        *,
        show: Show | None = None,
        wait_s: float = ANSWER_WAIT_S,
    ) -> None:
        super().__init__(address, show=show, wait_s=wait_s)
        self._command = tuple(command)

    @property
    @override
    def shown(self) -> str:
        """The program without its arguments, which may name keys."""
        return self._command[0]

    @override
    async def _answer(self, request: dict[str, Any]) -> bytes:
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
            )
        except OSError as error:
            raise UsageError(
                f"the signer {self.shown} cannot be started",
                Code.CONFIG,
                why=error.strerror or "",
                fix="correct the command (--signer, or signer in your config.toml)",
            ) from None
        try:
            return await self._talk(process, orjson.dumps(request) + b"\n")
        finally:
            # Its children too: they hold its pipes, and nothing of it may outlive the answer.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    async def _talk(self, process: asyncio.subprocess.Process, line: bytes) -> bytes:
        stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
        if stdin is None or stdout is None or stderr is None:
            raise AssertionError("all three are pipes")
        words = asyncio.create_task(self._show_lines(stderr))
        try:
            with suppress(BrokenPipeError, ConnectionResetError):
                stdin.write(line)
                await stdin.drain()
                stdin.close()
            answer = await _read(stdout)
            code = await process.wait()
            await words
        finally:
            words.cancel()
        if code != 0 and not answer.strip():
            raise refused(f"{self.shown} ended with code {code} and no answer")
        return answer

    async def _show_lines(self, stream: asyncio.StreamReader) -> None:
        """Show what the program says; lines too long for that are dropped."""
        left = MAX_ANSWER_BYTES
        while left > 0:
            try:
                line = await stream.readline()
            except ValueError:
                continue
            if not line:
                return
            left -= len(line)
            self._show(_printable(line.decode("utf-8", "replace").rstrip()))


async def open_external(
    spec: str, address: str = "", *, show: Show | None = None, wait_s: float = ANSWER_WAIT_S
) -> ExternalSigner:
    """The signer at an http(s) URL, or that a command line starts.

    Without an address it is asked for its accounts, and has to have one alone. Raises UsageError.
    """
    signer: ExternalSigner
    named = parse_address(address) if address else ""
    if spec.startswith(("http://", "https://")):
        signer = HttpSigner(spec, named, show=show, wait_s=wait_s)
    else:
        try:
            command = shlex.split(spec)
        except ValueError as error:
            raise _bad_command(str(error)) from None
        if not command:
            raise _bad_command("it is empty")
        signer = CommandSigner(command, named, show=show, wait_s=wait_s)
    if not named:
        accounts = await signer.accounts()
        if len(accounts) != 1:
            raise UsageError(
                f"{signer.shown} holds {len(accounts)} accounts",
                Code.CONFIG,
                why=", ".join(accounts[:5]),
                fix="say which: --signer-address 0x…, or signer-address in your config.toml",
            )
        signer.address = accounts[0]
    return signer


async def _read(stream: Any) -> bytes:
    """Everything a stream gives, up to the limit."""
    raw = b""
    while chunk := await stream.read(65_536):
        raw += chunk
        if len(raw) > MAX_ANSWER_BYTES:
            raise refused(f"its answer has more than {MAX_ANSWER_BYTES} bytes")
    return raw


def _bad_command(why: str) -> UsageError:
    return UsageError(
        "the signer is neither a URL nor a command line",
        Code.CONFIG,
        why=why,
        fix="write it like http://127.0.0.1:8550, or like the command that you would type",
    )


def _printable(words: object) -> str:
    return "".join(c if c.isprintable() else " " for c in str(words or "")[:MAX_WORDS])
