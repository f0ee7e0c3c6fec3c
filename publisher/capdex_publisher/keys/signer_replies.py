"""Checks of what an external signer returned: it is used only if it is what was asked for.

A signer may be wrong, old or hostile: a transaction is sent only if it is the requested one, field
by field, and is signed by the requested account.
"""

from __future__ import annotations

from typing import Any, Final

from capdex import did, signing
from capdex.encoding.hexadecimal import to_hex
from capdex.encoding.keccak import keccak
from capdex.errors import CapdexError, Code, Refused
from capdex_publisher.keys.signer import Signed, recover_typed_data

DYNAMIC_FEE: Final = b"\x02"  # the transaction type of EIP-1559
HALF_ORDER: Final = signing.ORDERS[did.Algorithm.SECP256K1] // 2  # a higher s is invalid on chain


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
        raise refused("it is not a transaction of type 2 (EIP-1559)")
    try:
        signed = TypedTransaction.from_bytes(HexBytes(raw)).as_dict()
        signature = {name: signed[name] for name in "vrs"}
        requested = TypedTransaction.from_dict({**fields, "accessList": (), **signature})
    except Exception:  # noqa: BLE001 - the library raises whatever the bytes provoke
        raise refused("it is not a transaction at all") from None
    for name, expected in requested.as_dict().items():
        if signed[name] != expected:
            raise refused(f"its {name} is {_shown(signed[name])}, not {_shown(expected)}") from None
    canonical = bytes(requested.encode()) == raw and signature["v"] in (0, 1)
    if not canonical or not 0 < signature["s"] <= HALF_ORDER:
        raise refused("its signature is not in canonical form")
    try:
        signer = Account.recover_transaction(raw)
    except Exception:  # noqa: BLE001 - as above
        raise refused("its signature is none") from None
    if signer != address:
        raise refused(f"it is signed by {signer}, not by {address}")
    return Signed(raw, to_hex(keccak(raw)))


def check_message(answer: object, message: bytes, address: str) -> bytes:
    """Return the signature of a reply (65 bytes, r‖s‖v, v is 27 or 28).

    Raises Refused SIGNER_REFUSED.
    """
    signature = _signature(answer)
    try:
        signing.verify_signature(did.did_url(did.pkh(1, address)), message, signature)
    except CapdexError:
        raise refused(f"it is not the signature of {address} over the message") from None
    return signature


def check_typed_data(answer: object, document: dict[str, Any], address: str) -> bytes:
    """Return the signature of a reply as `check_message` does; raises Refused SIGNER_REFUSED."""
    signature = _signature(answer)
    if recover_typed_data(document, signature) != address:
        raise refused(f"it is not the signature of {address} over the document")
    return signature


def _signature(answer: object) -> bytes:
    signature = _bytes(answer, "a signature")
    if len(signature) == 65 and signature[64] in (0, 1):  # some signers count from 0
        signature = signature[:64] + bytes([signature[64] + 27])
    return signature


def refused(why: str) -> Refused:
    """Return the error for a reply that must not be used."""
    return Refused(
        "the external signer did not sign what it was asked to",
        Code.SIGNER_REFUSED,
        why=why,
        fix="check which signer and which account are configured (--signer, signer-address)",
    )


def _bytes(text: object, what: str) -> bytes:
    try:
        if not isinstance(text, str) or not text.startswith("0x"):
            raise ValueError
        return bytes.fromhex(text[2:])
    except ValueError:
        raise refused(f"its answer is not {what}") from None


def _shown(item: object) -> str:
    text = to_hex(item) if isinstance(item, bytes) else str(item)
    return text if len(text) <= 66 else text[:66] + "…"
