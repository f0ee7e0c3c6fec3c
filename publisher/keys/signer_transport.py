"""Reach an external signer: JSON-RPC over HTTP (Clef, web3signer, a node), or a command.

A command is given one JSON line on stdin, `{"method": "eth_signTransaction", "params": [{…}]}`, and
answers on stdout with `{"result": …}` or `{"error": {"message": …}}`; its stderr is
shown. The command line is not read by a shell.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import aiohttp
import orjson
from typing_extensions import override

from capdex.encoding.abi import parse_address
from capdex.errors import Code, UsageError
from capdex.net.rpc.client import redact
from publisher.keys.external_signer import (
    ANSWER_WAIT_S,
    MAX_ANSWER_BYTES,
    ExternalSigner,
    Show,
    printable,
    read_bounded,
    refused,
)

CONNECT_S: Final = 5.0


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
                raw = await read_bounded(response.content)
                if response.status >= 300 and not raw.lstrip().startswith(b"{"):
                    raise self.unavailable(f"HTTP {response.status}")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # Never str() of the whole error: some contain the URL, which may hold credentials.
            words = getattr(getattr(error, "os_error", None), "strerror", None)
            raise self.unavailable(words or type(error).__name__) from None
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
            answer = await read_bounded(stdout)
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
            self._show(printable(line.decode("utf-8", "replace").rstrip()))


async def open_external(
    spec: str, address: str = "", *, show: Show | None = None, wait_s: float = ANSWER_WAIT_S
) -> ExternalSigner:
    """Open the signer at an http(s) URL, or the one that a command line starts.

    Without an address, the signer has to offer exactly one account. Raises UsageError.
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


def _bad_command(why: str) -> UsageError:
    return UsageError(
        "the signer is neither a URL nor a command line",
        Code.CONFIG,
        why=why,
        fix="write it like http://127.0.0.1:8550, or like the command that you would type",
    )
