"""Check the reply of an external signer, field by field, against the request.

A signer is another program and may be wrong, old or hostile. A transaction is sent only if it is
the requested one and is signed by the requested account.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

from capdex import did, signing
from capdex.did import Algorithm
from capdex.encoding.keccak import keccak
from capdex.errors import CapdexError, Code, Refused
from publisher.keys.eip1559 import FIELDS, TRANSACTION_TYPE, encode, item_of, items_of
from publisher.keys.signer import Signed

HALF_ORDER: Final = signing.ORDERS[Algorithm.SECP256K1] // 2


def to_wire(fields: dict[str, Any], address: str) -> dict[str, Any]:
    """Return the fields of a transaction as the parameter of `eth_signTransaction`."""
    wire = {key: hex(value) if isinstance(value, int) else value for key, value in fields.items()}
    return wire | {"from": address}


def check_transaction(answer: object, fields: dict[str, Any], address: str) -> Signed:
    """Return the signed transaction of a reply (0x hex, or an object with `raw`).

    Raises Refused SIGNER_REFUSED for anything but `fields` signed by `address`.
    """
    import rlp  # 0.3 s that only external signers need
    from rlp.exceptions import RLPException

    text = answer.get("raw") if isinstance(answer, dict) else answer
    raw = _bytes(text, "a signed transaction")
    if raw[:1] != TRANSACTION_TYPE:
        _refuse("it is not a transaction of type 2 (EIP-1559)")
    try:
        items = rlp.decode(raw[1:])
    except (RLPException, RecursionError):
        _refuse("it is not a transaction at all")
    if not isinstance(items, list) or len(items) != len(FIELDS) + 3:
        _refuse("it is not a transaction at all")
    requested = items_of(fields)
    for name, item, expected in zip(FIELDS, items, requested, strict=False):
        if item != expected:
            _refuse(f"its {name} is {_shown(item)}, not {_shown(expected)}")
    signer = _recover(keccak(encode(requested)), items[len(FIELDS) :])
    if signer != address.lower():
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


def _recover(digest: bytes, parts: list[Any]) -> str:
    """Return the signing address (lower case); high-s signatures are refused, as on chain."""
    from eth_keys.datatypes import Signature
    from eth_keys.exceptions import BadSignature
    from eth_utils.exceptions import ValidationError

    if not all(isinstance(part, bytes) and len(part) <= 32 for part in parts):
        _refuse("it has no signature")
    parity, r, s = (int.from_bytes(part, "big") for part in parts)
    if parts != [item_of(parity), item_of(r), item_of(s)] or not 0 < s <= HALF_ORDER:
        _refuse("its signature is not in canonical form")
    try:
        key = Signature(vrs=(parity, r, s)).recover_public_key_from_msg_hash(digest)
    except (BadSignature, ValidationError, ValueError):
        _refuse("its signature is none")
    return str(key.to_address())


def _shown(item: object) -> str:
    if not isinstance(item, bytes):
        return "a list"
    text = "0x" + item.hex()
    return text if len(text) <= 66 else text[:66] + "…"
