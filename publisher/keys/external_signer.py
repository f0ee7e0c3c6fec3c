"""Protocol of signers outside this process: requests, and how a reply is read.

The methods are those of Ethereum's JSON-RPC API, and Clef's names for them.
`publisher.keys.signer_transport` reaches a signer by HTTP or runs it as a command.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import orjson

from capdex.encoding.abi import parse_address
from capdex.errors import Code, Refused, Unavailable, UsageError
from publisher.keys.signer import Signed
from publisher.keys.signer_reply import check_message, check_transaction, refused, to_wire

ANSWER_WAIT_S: Final = 120.0  # a person may have to press a button
MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024  # a full block's transaction in hex, twice over
MAX_WORDS: Final = 300
METHOD_NOT_FOUND: Final = -32601  # JSON-RPC 2.0, section 5.1

Show = Callable[[str], None]


class _NoSuchMethod(Exception):
    """The signer does not support this method; never leaves this module."""


class ExternalSigner(ABC):
    """An account whose key is elsewhere."""

    def __init__(
        self, address: str, *, show: Show | None = None, wait_s: float = ANSWER_WAIT_S
    ) -> None:
        self.address = address
        self.wait_s = wait_s
        self._show = show or (lambda words: None)

    async def sign_transaction(self, fields: dict[str, Any]) -> Signed:
        """Request a signature and check the reply: see `publisher.keys.signer_reply`."""
        self._show(f"{self.shown} is asked to sign a transaction; agree there if it waits")
        wire = to_wire(fields, self.address)
        # Clef has a name of its own for it.
        answer = await self._ask_first(
            ("eth_signTransaction", [wire]), ("account_signTransaction", [wire])
        )
        return check_transaction(answer, fields, self.address)

    async def sign_message(self, message: bytes) -> bytes:
        """Request an EIP-191 signature and check the reply."""
        self._show(f"{self.shown} is asked to sign a message; agree there if it waits")
        data = "0x" + message.hex()
        answer = await self._ask_first(
            ("personal_sign", [data, self.address]),
            ("eth_sign", [self.address, data]),
            ("account_signData", ["text/plain", self.address, data]),
        )
        return check_message(answer, message, self.address)

    async def accounts(self) -> list[str]:
        """Return the addresses that the signer offers (EIP-55)."""
        found = await self._ask_first(("eth_accounts", []), ("account_list", []))
        if not isinstance(found, list):
            raise refused("its list of accounts is none")
        try:
            return [parse_address(str(one)) for one in found]
        except UsageError as error:
            raise refused(f"its list of accounts holds no address: {error.message}") from None

    @abstractmethod
    async def _answer(self, request: dict[str, Any]) -> bytes:
        """Return the raw reply to one request; raises Unavailable SIGNER_UNAVAILABLE."""

    @property
    @abstractmethod
    def shown(self) -> str:
        """The signer as it may be shown."""

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
            async with asyncio.timeout(self.wait_s):
                raw = await self._answer(request)
        except TimeoutError:
            raise self.unavailable(f"no answer within {self.wait_s:.0f} s") from None
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
            why=printable(words) or f"{self.shown} gave no reason",
            fix="agree there, then run the same command again",
        )

    def unavailable(self, why: str) -> Unavailable:
        """Return the error for a signer that cannot be reached."""
        return Unavailable(
            f"the external signer {self.shown} does not answer",
            Code.SIGNER_UNAVAILABLE,
            why=why,
            fix="start it, agree there when it asks, and run the same command again",
        )


async def read_bounded(stream: Any) -> bytes:
    """Read a stream to its end, up to the limit."""
    raw = b""
    while chunk := await stream.read(65_536):
        raw += chunk
        if len(raw) > MAX_ANSWER_BYTES:
            raise refused(f"its answer has more than {MAX_ANSWER_BYTES} bytes")
    return raw


def printable(words: object) -> str:
    """Return untrusted text, shortened and without control characters."""
    return "".join(c if c.isprintable() else " " for c in str(words or "")[:MAX_WORDS])
