"""Signatures: their text, what they are over, and files that are edited to be signed.

An input is JSON: {"author", "message", "signature"} (hex) or {"file", "author", "publisher"}.
"""

# ruff: noqa: PT017 - what is raised is judged as well

from __future__ import annotations

import json
from functools import cache
from random import Random
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from eth_account import Account
from mutation import mutate_bytes, mutate_lines, mutate_text, size
from packages import AUTHOR, KEY, PUBLISHER, hostile, signed
from target import Target

from capdex import did, signing
from capdex.did import PublicKey, resolve_key
from capdex.encoding.multiformats import encode_multibase
from capdex.errors import CapdexError, InvalidInput, VerificationFailure
from capdex.problems import Reason
from capdex.yaml.reader import read_yaml

MESSAGES = [b"ACP-SIG-V1\ndid:nuwa:cap:note@1.0.0\n" + b"%064x" % n for n in range(3)]
ORDERS = list(signing.ORDERS.values())
EDGES = [0, 1, 2, *ORDERS, *(x - 1 for x in ORDERS), *(x // 2 + 1 for x in ORDERS), 2**256 - 1]
ED25519_ORDER = 2**252 + 27742317777372353535851937790883648493


@cache
def genuine() -> dict[tuple[PublicKey, bytes], tuple[str, bytes]]:
    """For each kind of key and each message, the author and the one signature that counts."""
    made: dict[tuple[PublicKey, bytes], tuple[str, bytes]] = {}
    wallet = Account.from_key(bytes([9]) * 32)
    for message in MESSAGES:
        pkh = did.did_url(did.pkh(31337, wallet.address))
        made[resolve_key(pkh), message] = pkh, signing.sign_eip191(wallet, message)
        made[resolve_key(AUTHOR), message] = AUTHOR, signing.sign_ed25519(KEY, message)
        for curve, prefix, order in (
            (ec.SECP256K1(), b"\xe7\x01", ORDERS[0]),
            (ec.SECP256R1(), b"\x80\x24", ORDERS[1]),
        ):
            private = ec.derive_private_key(12345, curve)
            point = private.public_key().public_bytes(Encoding.X962, PublicFormat.CompressedPoint)
            author = did.did_url("did:key:" + encode_multibase(prefix + point))
            same_each_time = ec.ECDSA(hashes.SHA256(), deterministic_signing=True)
            r, s = decode_dss_signature(private.sign(message, same_each_time))
            s = min(s, order - s)
            signature = r.to_bytes(32, "big") + s.to_bytes(32, "big")
            made[resolve_key(author), message] = author, signature
    return made


def make(random: Random) -> bytes:
    """A genuine signature with some of it changed, or a file to be edited."""
    given = make_signature(random) if random.randrange(4) else make_edit(random)
    return json.dumps(given, ensure_ascii=False).encode("utf-8", "surrogatepass")


def make_signature(random: Random) -> dict[str, Any]:
    (_, message), (author, signature) = random.choice(list(genuine().items()))
    match random.randrange(8):
        case 0:
            signature = mutate_bytes(random, signature, times=size(random, 3))
        case 1:
            message = mutate_bytes(random, message, times=size(random, 3))
        case 2:
            author = mutate_text(random, author)
        case 3:
            author = random.choice(list(genuine().values()))[0]
        case 4:  # r or s at the edge of its range
            at, edge = random.choice([0, 32]), random.choice(EDGES).to_bytes(32, "big")
            signature = signature[:at] + edge + signature[at + 32 :]
        case 5:  # the twin: s negated, or the group's order added to it
            s, order = int.from_bytes(signature[32:64], "big"), random.choice(ORDERS)
            little = int.from_bytes(signature[32:64], "little")
            twins = [
                ((order - s) % 2**256).to_bytes(32, "big"),
                ((s + order) % 2**256).to_bytes(32, "big"),
                ((little + ED25519_ORDER) % 2**256).to_bytes(32, "little"),
            ]
            signature = signature[:32] + random.choice(twins) + signature[64:]
        case 6:
            v = random.choice([0, 1, 27, 28, 29, 30, 35, 36, 255])
            signature = signature[:64] + bytes([v]) * random.randrange(3)
        case _:
            pass
    return {"author": author, "message": message.hex(), "signature": signature.hex()}


def make_edit(random: Random) -> dict[str, Any]:
    data = random.choice(signed() + hostile())
    author, publisher = AUTHOR, PUBLISHER
    match random.randrange(4):
        case 0:
            data = mutate_lines(random, data)
        case 1:
            data = mutate_bytes(random, data, times=size(random, 4))
        case 2:
            author = mutate_text(random, author)
        case _:
            publisher = mutate_text(random, publisher)
    return {"file": data.hex(), "author": author, "publisher": publisher}


def check(data: bytes) -> str:
    """Only what was signed is taken for signed; an edit changes the three values alone."""
    try:
        given = json.loads(data)
        author, publisher = str(given["author"]), str(given.get("publisher"))
        first, second = (bytes.fromhex(given.get(x, "")) for x in ("message", "signature"))
        file = bytes.fromhex(given["file"]) if "file" in given else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return "no input"
    if file is None:
        return check_signature(author, first, second)
    return check_edit(file, author, publisher)


def check_signature(author: str, message: bytes, signature: bytes) -> str:
    if len(signature) <= 256:
        assert signing.decode_signature(encode_multibase(signature)) == signature
    try:
        assert signing.encode_signature(signing.decode_signature(author)) == author
    except InvalidInput as error:
        assert (error.details or {})["reason"] == Reason.SIGNATURE_ENCODING
    try:
        signing.verify_signature(author, message, signature)
    except (InvalidInput, VerificationFailure) as error:
        return str(Reason((error.details or {})["reason"]))
    assert genuine()[resolve_key(author), message][1] == signature
    return "signed"


def check_edit(data: bytes, author: str, publisher: str) -> str:
    try:
        prepared = signing.prepare(data, author=author, publisher=publisher)
    except CapdexError as error:
        assert (error.details or {}).get("reason"), error
        return f"not prepared: {(error.details or {})['reason']}"
    before, after = read_yaml(data).value, read_yaml(prepared.data).value
    written = {"author": author, "publisher": publisher, "signature": signing.PLACEHOLDER}
    assert after == before | {"metadata": before["metadata"] | written}
    message = signing.signing_input(prepared, "did:nuwa:cap:note@1.0.0")
    signature = KEY.sign(message)
    attached = signing.attach(prepared, signature)
    assert signing.signing_input(attached, "did:nuwa:cap:note@1.0.0") == message
    after["metadata"]["signature"] = signing.encode_signature(signature)
    assert read_yaml(attached).value == after
    return "prepared"


TARGETS = [Target("signature", 2, make, check)]
