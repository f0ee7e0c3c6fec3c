"""Protocol of signers outside this process: requests, and the check of every reply.

The methods are those of Ethereum's JSON-RPC API, and Clef's names for them.
`publisher.keys.signer_transport` reaches a signer by HTTP or runs it as a command. A signer is
another program and may be wrong, old or hostile: a transaction is sent only if it is the requested
one, field by field, and is signed by the requested account.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NoReturn

import orjson

from capdex import did, signing
from capdex.encoding.abi import parse_address
from capdex.encoding.keccak import keccak
from capdex.errors import CapdexError, Code, Refused, Unavailable, UsageError
from publisher.keys.signer import Signed

ANSWER_WAIT_S: Final = 120.0  # a person may have to press a button
MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024  # a full block's transaction in hex, twice over
MAX_WORDS: Final = 300
METHOD_NOT_FOUND: Final = -32601  # JSON-RPC 2.0, section 5.1
DYNAMIC_FEE: Final = b"\x02"  # the transaction type of EIP-1559
HALF_ORDER: Final = signing.ORDERS[did.Algorithm.SECP256K1] // 2  # a higher s is invalid on chain

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
        """Request a signature and check the reply."""
        self._show(f"{self.shown} is asked to sign a transaction; agree there if it waits")
        wire = {key: hex(x) if isinstance(x, int) else x for key, x in fields.items()}
        wire["from"] = self.address
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


def check_transaction(answer: object, fields: dict[str, Any], address: str) -> Signed:
    """Return the signed transaction of a reply (0x hex, or an object with `raw`).

    Raises Refused SIGNER_REFUSED for anything but `fields` signed by `address`.
    """
    from eth_account import Account  # a second that only signing pays
    from eth_account.typed_transactions.typed_transaction import TypedTransaction
    from hexbytes import HexBytes

    text = answer.get("raw") if isinstance(answer, dict) else answer
    raw = _bytes(text, "a signed transaction")
    if raw[:1] != DYNAMIC_FEE:
        _refuse("it is not a transaction of type 2 (EIP-1559)")
    try:
        signed = TypedTransaction.from_bytes(HexBytes(raw)).as_dict()
        signature = {name: signed[name] for name in "vrs"}
        requested = TypedTransaction.from_dict({**fields, "accessList": (), **signature})
    except Exception:  # noqa: BLE001 - the library raises whatever the bytes provoke
        _refuse("it is not a transaction at all")
    for name, expected in requested.as_dict().items():
        if signed[name] != expected:
            _refuse(f"its {name} is {_shown(signed[name])}, not {_shown(expected)}")
    canonical = bytes(requested.encode()) == raw and signature["v"] in (0, 1)
    if not canonical or not 0 < signature["s"] <= HALF_ORDER:
        _refuse("its signature is not in canonical form")
    try:
        signer = Account.recover_transaction(raw)
    except Exception:  # noqa: BLE001 - as above
        _refuse("its signature is none")
    if signer != address:
        _refuse(f"it is signed by {signer}, not by {address}")
    return Signed(raw, "0x" + keccak(raw).hex())


def check_message(answer: object, message: bytes, address: str) -> bytes:
    """Return the signature of a reply (65 bytes, r‖s‖v, v is 27 or 28).

    Raises Refused SIGNER_REFUSED.
    """
    signature = _bytes(answer, "a signature")
    if len(signature) == 65 and signature[64] in (0, 1):  # some signers count from 0
        signature = signature[:64] + bytes([signature[64] + 27])
    try:
        signing.verify_signature(did.did_url(did.pkh(1, address)), message, signature)
    except CapdexError:
        _refuse(f"it is not the signature of {address} over the message")
    return signature


def refused(why: str) -> Refused:
    """Return the error for a reply that must not be used."""
    return Refused(
        "the external signer did not sign what it was asked to",
        Code.SIGNER_REFUSED,
        why=why,
        fix="check which signer and which account are configured (--signer, signer-address)",
    )


def _refuse(why: str) -> NoReturn:
    raise refused(why) from None


def _bytes(text: object, what: str) -> bytes:
    try:
        if not isinstance(text, str) or not text.startswith("0x"):
            raise ValueError
        return bytes.fromhex(text[2:])
    except ValueError:
        _refuse(f"its answer is not {what}")


def _shown(item: object) -> str:
    text = "0x" + item.hex() if isinstance(item, bytes) else str(item)
    return text if len(text) <= 66 else text[:66] + "…"


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
