"""No byte of a signed package counts for nothing: each one changed, and announced anew (P5, P6).

Whoever changes the bytes announces their own sha256 and CID, so only the reader and the signature
stand in the way. HYPOTHESIS_PROFILE=soak changes every byte of every example, by every
kind of signer.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from eth_account import Account

from capdex import did, signing
from capdex.did import Algorithm
from capdex.encoding.multiformats import encode_multibase
from capdex.ipld.cid import Cid
from capdex.manifest.manifest import read
from capdex.package import RejectedPackage, VerifiedPackage, judge, verify
from capdex.problems import Reason, Verdict
from capdex.registry.events import Announcement

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.acp.yaml"))
SMALLEST = min(EXAMPLES, key=lambda path: path.stat().st_size)
EVERY_BYTE = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
STRIDE = 1 if EVERY_BYTE else 32  # of the larger examples: every byte takes minutes

CHAIN_ID = 31337
ACCOUNT = Account.from_key(bytes([7]) * 32)
PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))

Signer = tuple[str, Callable[[bytes], bytes]]  # an author, and what signs for it


def curve_signer(algorithm: Algorithm, curve: ec.EllipticCurve, multicodec: bytes) -> Signer:
    private = ec.derive_private_key(7, curve)
    point = private.public_key().public_bytes(Encoding.X962, PublicFormat.CompressedPoint)

    def sign(message: bytes) -> bytes:
        r, s = decode_dss_signature(private.sign(message, ec.ECDSA(hashes.SHA256())))
        order = signing.ORDERS[algorithm]
        return r.to_bytes(32, "big") + min(s, order - s).to_bytes(32, "big")

    return did.did_url("did:key:" + encode_multibase(multicodec + point)), sign


SIGNERS: dict[str, Signer] = {
    "Ed25519": (did.did_url(did.did_key(PRIVATE.public_key().public_bytes_raw())), PRIVATE.sign),
    "secp256k1": curve_signer(Algorithm.SECP256K1, ec.SECP256K1(), b"\xe7\x01"),
    "P-256": curve_signer(Algorithm.P256, ec.SECP256R1(), b"\x80\x24"),
    "EIP-191": (
        did.did_url(did.pkh(CHAIN_ID, ACCOUNT.address)),
        lambda message: signing.sign_eip191(ACCOUNT, message),
    ),
}

# What one byte can become: another one, none, or two.
CHANGES: dict[str, Callable[[int], bytes]] = {
    "lowest bit": lambda byte: bytes([byte ^ 0x01]),
    "case": lambda byte: bytes([byte ^ 0x20]),
    "highest bit": lambda byte: bytes([byte ^ 0x80]),
    "deleted": lambda _: b"",
    "doubled": lambda byte: bytes([byte, byte]),
    "space before": lambda byte: bytes([0x20, byte]),
    "line before": lambda byte: bytes([0x0A, byte]),
}


def signed(path: Path, signer: Signer) -> bytes:
    author, sign = signer
    publisher = did.caip10(CHAIN_ID, ACCOUNT.address)
    prepared = signing.prepare(path.read_bytes(), author=author, publisher=publisher)
    return signing.attach(prepared, sign(signing.signing_input(prepared, uri_of(prepared.data))))


def uri_of(data: bytes) -> str:
    manifest = read(data).manifest
    assert manifest is not None
    return str(manifest.uri)


def announce(data: bytes, uri: str) -> Announcement:
    """What whoever publishes these bytes says of them: all of it true."""
    digest, version = hashlib.sha256(data).digest(), uri.partition("@")[2]
    return Announcement(CHAIN_ID, ACCOUNT.address, uri, version, str(Cid.raw(digest)), digest)


def refusal(data: bytes, uri: str) -> RejectedPackage:
    """How changed bytes are refused, under the id they say now."""
    judged = judge(announce(data, uri), data)
    if isinstance(judged, RejectedPackage) and judged.reason is Reason.ID_MISMATCH:
        assert judged.manifest is not None
        judged = judge(announce(data, str(judged.manifest.uri)), data)
    assert isinstance(judged, RejectedPackage), "a changed package was verified"
    return judged


# Reasons of the reader and of the signature; any other would be luck.
NOT_OF_THE_BYTES = {
    *(Reason.BAD_EVENT, Reason.BAD_CID, Reason.CID_MISMATCH, Reason.SHA256_MISMATCH),
    *(Reason.ID_MISMATCH, Reason.VERSION_MISMATCH, Reason.NOT_BOUND),
}


def refusals(
    data: bytes, indexes: range, changes: Iterator[Callable[[int], bytes]]
) -> Counter[Reason]:
    uri, found = uri_of(data), Counter[Reason]()
    for change in changes:
        for index in indexes:
            changed = data[:index] + change(data[index]) + data[index + 1 :]
            if changed == data:
                continue
            judged = refusal(changed, uri)
            assert judged.reason not in NOT_OF_THE_BYTES, (index, judged.message)
            assert judged.verdict in (Verdict.INVALID, Verdict.UNRESOLVABLE, Verdict.UNSIGNED)
            found[judged.reason] += 1
    return found


@pytest.mark.parametrize("signer", SIGNERS.values(), ids=SIGNERS)
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name.removesuffix(".acp.yaml"))
def test_each_example_is_verified_whoever_signs_it(path: Path, signer: Signer) -> None:
    data = signed(path, signer)
    assert isinstance(verify(announce(data, uri_of(data)), data), VerifiedPackage)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_byte_of_the_smallest_example_counts_however_it_changes(
    change: Callable[[int], bytes],
) -> None:
    data = signed(SMALLEST, SIGNERS["Ed25519"])
    found = refusals(data, range(len(data)), iter([change]))
    assert found.total() == len(data)


@pytest.mark.parametrize("name", ["secp256k1", "P-256", "EIP-191"])
def test_bytes_of_the_smallest_example_count_whoever_signs_it(name: str) -> None:
    data = signed(SMALLEST, SIGNERS[name])
    indexes = range(0, len(data), 1 if EVERY_BYTE else 8)
    found = refusals(data, indexes, iter([CHANGES["lowest bit"]]))
    assert found.total() == len(indexes)
    assert found[Reason.BAD_SIGNATURE] > len(indexes) // 2


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name.removesuffix(".acp.yaml"))
def test_bytes_all_over_each_example_count(path: Path) -> None:
    data = signed(path, SIGNERS["Ed25519"])
    indexes = range(EXAMPLES.index(path) % STRIDE, len(data), STRIDE)
    found = refusals(data, indexes, iter([CHANGES["lowest bit"]]))
    assert found.total() == len(indexes)


@pytest.mark.parametrize("name", SIGNERS)
def test_every_character_of_the_signature_counts(name: str) -> None:
    data = signed(SMALLEST, SIGNERS[name])
    uri, start = uri_of(data), data.index(b"signature: ") + len(b"signature: ")
    for index in range(start, data.index(b"\n", start)):
        byte = data[index : index + 1]
        others = (b"", byte * 2, b"1" + byte, *(x for x in (b"1", b"z", b"A", b"0") if x != byte))
        for other in others:
            changed = data[:index] + other + data[index + 1 :]
            reason = refusal(changed, uri).reason
            assert reason in (Reason.BAD_SIGNATURE, Reason.SIGNATURE_ENCODING), (index, other)


def test_the_value_of_the_signature_can_stand_in_one_place_alone() -> None:
    data = signed(SMALLEST, SIGNERS["Ed25519"])
    line = next(x for x in data.splitlines(keepends=True) if x.startswith(b"  signature: "))
    rest, value = data.replace(line, b""), line.split()[1]
    moved = {
        "behind the file": data.replace(line, b"  signature:\n") + value,
        "behind a comment": data.replace(value, value + b" # signed"),
        "behind a space": data.replace(value, b" " + value),
        "on the next line": data.replace(value, b"\n    " + value),
        "in quotes": data.replace(value, b"'" + value + b"'"),
        "in another place": rest.replace(b"  id:", line + b"  id:"),
        "in a quoted key": data.replace(b"  signature:", b'  "signature":'),
        "behind an empty one": data.replace(line, b"  signature:\n" + line),
        "twice": data.replace(line, line * 2),
        "gone": rest,
    }
    for where, changed in moved.items():
        assert changed != data, where
        refusal(changed, uri_of(data))
