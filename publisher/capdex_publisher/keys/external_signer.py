"""Signers outside this process: JSON-RPC over HTTP (Clef, web3signer, a node), or a command.

A command is given one JSON line on stdin, `{"method": "eth_signTransaction", "params": [{…}]}`, and
answers on stdout with `{"result": …}` or `{"error": {"message": …}}`; its stderr is shown. No shell
reads the command line. The methods are those of Ethereum's JSON-RPC API, and Clef's names for them.

`capdex_publisher.keys.signer_replies` checks each reply.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import orjson

from capdex.encoding.abi import parse_address
from capdex.encoding.contract_abi import by_selector, signature
from capdex.encoding.hexadecimal import to_hex
from capdex.errors import Code, Refused, Unavailable, UsageError, quoted, untrusted_text
from capdex.net.http import HttpClient, HttpError, ResponseTooLarge, redact
from capdex_publisher.keys.signer import Signed
from capdex_publisher.keys.signer_replies import (
    check_message,
    check_transaction,
    check_typed_data,
    refused,
)

ANSWER_WAIT_S: Final = 120.0  # a person may have to press a button
MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024  # a full block's transaction in hex, twice over
_TOO_LONG: Final = f"its answer has more than {MAX_ANSWER_BYTES} bytes"
METHOD_NOT_FOUND: Final = -32601  # JSON-RPC 2.0, section 5.1


class _NoSuchMethod(Exception):
    """The signer does not support this method; never leaves this module."""


class ExternalSigner:
    """An account whose key is behind an http(s) URL, or held by the program of a command line.

    `shown` is the signer as it may be shown: the URL without user, path and query, or the program
    without its arguments, which may name keys. Raises UsageError for another `spec`.
    """

    def __init__(
        self,
        spec: str,
        address: str = "",
        *,
        show: Callable[[str], None] = lambda words: None,
        wait_s: float = ANSWER_WAIT_S,
    ) -> None:
        self.address = address
        self._spec = spec
        self._command = [] if spec.startswith(("http://", "https://")) else _split(spec)
        self.shown = self._command[0] if self._command else redact(spec)
        self._show = show
        self._wait_s = wait_s

    async def sign_transaction(self, fields: dict[str, Any]) -> Signed:
        """Request a signature and check the reply."""
        self._show(f"{self.shown} is asked to sign a transaction; agree there if it waits")
        wire = {key: hex(x) if isinstance(x, int) else x for key, x in fields.items()}
        wire["from"] = self.address
        called = by_selector("function").get(bytes.fromhex(fields["data"][2:10]))
        # Clef has a name of its own for it, and refuses a call unless it is told of which function.
        clef = [wire, signature(called)] if called else [wire]
        answer = await self._ask_first(
            ("eth_signTransaction", [wire]), ("account_signTransaction", clef)
        )
        return check_transaction(answer, fields, self.address)

    async def sign_message(self, message: bytes) -> bytes:
        """Request an EIP-191 signature and check the reply."""
        self._show(f"{self.shown} is asked to sign a message; agree there if it waits")
        data = to_hex(message)
        answer = await self._ask_first(
            ("personal_sign", [data, self.address]),
            ("eth_sign", [self.address, data]),
            ("account_signData", ["text/plain", self.address, data]),
        )
        return check_message(answer, message, self.address)

    async def sign_typed_data(self, document: dict[str, Any]) -> bytes:
        """Request an EIP-712 signature and check the reply."""
        self._show(f"{self.shown} is asked to sign a publication; agree there if it waits")
        answer = await self._ask_first(
            ("eth_signTypedData_v4", [self.address, document]),
            ("account_signTypedData", [self.address, document]),
        )
        return check_typed_data(answer, document, self.address)

    async def accounts(self) -> list[str]:
        """Return the addresses that the signer offers (EIP-55)."""
        accounts = await self._ask_first(("eth_accounts", []), ("account_list", []))
        if not isinstance(accounts, list):
            raise refused("its list of accounts is none")
        try:
            return [parse_address(untrusted_text(account)) for account in accounts]
        except UsageError as error:
            raise refused(f"its list of accounts holds no address: {error.message}") from None

    async def _ask_first(self, *calls: tuple[str, list[Any]]) -> object:
        """Return the result of the first method that the signer supports."""
        for method, params in calls:
            with suppress(_NoSuchMethod):
                return await self._ask(method, params)
        names = [name for name, _ in calls]
        raise Refused(
            f"the external signer {self.shown} cannot do what is needed",
            Code.SIGNER_REFUSED,
            why=f"it speaks none of {', '.join(names)}",
            fix="sign packages with a key of the author's own (capdex keygen)"
            if "personal_sign" in names
            else "use a signer that speaks one of them, or a key file (--keystore)",
        )

    async def _ask(self, method: str, params: list[Any]) -> object:
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        try:
            async with asyncio.timeout(self._wait_s):
                body = orjson.dumps(request)
                raw = await (self._run(body) if self._command else self._post(body))
        except TimeoutError:
            raise self._unavailable(f"no answer within {self._wait_s:.0f} s") from None
        try:
            reply = orjson.loads(raw)
        except orjson.JSONDecodeError:
            raise refused("its answer is not JSON") from None
        if not isinstance(reply, dict) or not ({"result", "error"} & reply.keys()):
            raise refused("its answer has neither a result nor an error")
        error = reply.get("error")
        if error is None:
            return reply.get("result")
        said = error if isinstance(error, dict) else {"message": error}
        if said.get("code") == METHOD_NOT_FOUND:
            raise _NoSuchMethod
        raise Refused(
            "the external signer said no",
            Code.SIGNER_REFUSED,
            why=f"{self.shown} says {quoted(untrusted_text(said.get('message'))[:300])}",
            fix="agree there, or correct what it complains of, then run the same command again",
        )

    async def _post(self, body: bytes) -> bytes:
        try:
            async with HttpClient() as http:
                reply = await http.request(
                    "POST",
                    self._spec,
                    body=body,
                    headers={"Content-Type": "application/json"},
                    max_bytes=MAX_ANSWER_BYTES,
                    timeout_s=self._wait_s,
                )
        except ResponseTooLarge:
            raise refused(_TOO_LONG) from None
        except HttpError as error:
            raise self._unavailable(str(error)) from None
        if reply.status >= 300 and not reply.body.lstrip().startswith(b"{"):
            raise self._unavailable(f"HTTP {reply.status}")
        return reply.body

    async def _run(self, body: bytes) -> bytes:
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
            return await self._talk(process, body + b"\n")
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
            answer = await _read_bounded(stdout)
            code = await process.wait()
            await words
        finally:
            words.cancel()
        if code != 0 and not answer.strip():
            raise refused(f"{self.shown} ended with code {code} and no answer")
        return answer

    async def _show_lines(self, stream: asyncio.StreamReader) -> None:
        """Show the program's stderr; overlong lines are dropped."""
        left = MAX_ANSWER_BYTES
        while left > 0:
            try:
                line = await stream.readline()
            except ValueError:
                continue
            if not line:
                return
            left -= len(line)
            self._show(untrusted_text(line.decode("utf-8", "replace").rstrip()))

    def _unavailable(self, why: str) -> Unavailable:
        return Unavailable(
            f"the external signer {self.shown} does not answer",
            Code.SIGNER_UNAVAILABLE,
            why=why,
            fix="start it, agree there when it asks, and run the same command again",
        )


async def open_external(
    spec: str, address: str = "", *, show: Callable[[str], None] = lambda words: None
) -> ExternalSigner:
    """Open the signer at an http(s) URL, or the one that a command line starts.

    Without an address, the signer has to offer exactly one account. Raises UsageError.
    """
    signer = ExternalSigner(spec, parse_address(address) if address else "", show=show)
    if not signer.address:
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


async def _read_bounded(stream: Any) -> bytes:
    """Read a stream to its end, up to the limit."""
    raw = b""
    while chunk := await stream.read(65_536):
        raw += chunk
        if len(raw) > MAX_ANSWER_BYTES:
            raise refused(_TOO_LONG)
    return raw


def _split(spec: str) -> list[str]:
    """Return the words of a command line; raises UsageError."""
    try:
        command, why = shlex.split(spec), "it is empty"
    except ValueError as error:
        command, why = [], str(error)
    if not command:
        raise UsageError(
            "the signer is neither a URL nor a command line",
            Code.CONFIG,
            why=why,
            fix="write it like http://127.0.0.1:8550, or like the command that you would type",
        )
    return command
