"""Signatures over packages (P5): the bytes that are signed, the keys, and the place in the file.

A signature cannot cover itself, so the signing input leaves out the value of `metadata.signature`
and nothing else. `prepare` and `attach` edit the text at the YAML reader's offsets: every other
byte, comments included, stays as it was. Errors carry the `Reason` in `details["reason"]`.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from capdex.did import Algorithm, PublicKey, curve_key, resolve_key
from capdex.encoding.keccak import keccak
from capdex.encoding.multiformats import decode_multibase, encode_multibase
from capdex.errors import InvalidInput, VerificationFailure
from capdex.problems import Reason, Severity
from capdex.yaml import Mapping, Scalar, Style, YamlReading, read_yaml

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount

DOMAIN: Final = b"ACP-SIG-V1\n"  # a signature made for this can be used for nothing else
PLACEHOLDER: Final = "z"  # keeps the place of a signature: multibase of no bytes
SIGNATURE_BYTES: Final = 64  # Ed25519, and r‖s of a curve signature
RECOVERABLE_BYTES: Final = 65  # r‖s‖v

# The orders of the curves' groups (SEC 2, 2.4.1; FIPS 186-4, D.1.2.3).
ORDERS: Final = {
    Algorithm.SECP256K1: 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141,
    Algorithm.P256: 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551,
}


def signing_input(file: bytes | YamlReading, cap_uri: str) -> bytes:
    """Return the bytes that a package's author signs (P5).

    `file` is the whole file or its YAML reading, `cap_uri` its `metadata.id` with the version.
    Raises InvalidInput if `metadata.signature` has no value that can be cut out.
    """
    reading = _editable(file)
    data, (start, end) = reading.data, _signature_span(reading)
    digest = hashlib.sha256(data[:start] + data[end:]).hexdigest()
    return DOMAIN + cap_uri.encode() + b"\n" + digest.encode()


def verify_signature(did_url: str, message: bytes, signature: bytes) -> None:
    """Verify the signature of the key that `did_url` names over a signing input.

    Raises InvalidInput for an author that cannot be used (BAD_AUTHOR, UNKNOWN_DID_METHOD) and for
    bytes that are no signature of that key's kind (SIGNATURE_ENCODING), and VerificationFailure
    (BAD_SIGNATURE) for one that is not over this message by this key.
    """
    verify_with(resolve_key(did_url), message, signature)


def verify_with(key: PublicKey, message: bytes, signature: bytes) -> None:
    """Verify a signature as `verify_signature` does, with a resolved key."""
    size = RECOVERABLE_BYTES if key.algorithm is Algorithm.EIP191 else SIGNATURE_BYTES
    if len(signature) != size:
        raise _bad_encoding(
            f"a signature by {key.algorithm} has {size} bytes, not {len(signature)}"
        )
    if not _holds(key, message, signature):
        raise VerificationFailure(
            f"the {key.algorithm} signature is not the author's over these bytes",
            why="the file was changed after it was signed, or another key signed it",
            fix="run capdex sign again",
            details={"reason": str(Reason.BAD_SIGNATURE)},
        )


def sign_ed25519(private: Ed25519PrivateKey, message: bytes) -> bytes:
    """Sign a signing input as a did:key author: 64 bytes."""
    return private.sign(message)


def sign_eip191(account: LocalAccount, message: bytes) -> bytes:
    """Sign a signing input as a did:pkh author (personal_sign): 65 bytes, r‖s‖v."""
    from eth_account.messages import encode_defunct  # half a second that only signing pays

    return bytes(account.sign_message(encode_defunct(primitive=message)).signature)


def encode_signature(signature: bytes) -> str:
    """A signature as `metadata.signature` holds it."""
    return encode_multibase(signature)


def decode_signature(text: str) -> bytes:
    """The bytes of a `metadata.signature`; raises InvalidInput (SIGNATURE_ENCODING)."""
    try:
        return decode_multibase(text)
    except InvalidInput as error:
        raise _bad_encoding(f"{error.message}: {error.why}") from None


def prepare(file: bytes | YamlReading, *, author: str, publisher: str | None) -> YamlReading:
    """Write the author, the publisher (None keeps it) and a placeholder for the signature.

    Returns the YAML reading of the new file. Raises InvalidInput if the file cannot be read, or
    cannot be edited line by line.
    """
    resolve_key(author)
    reading = _editable(file)
    data = reading.data
    wanted = {"author": author, "publisher": publisher, "signature": PLACEHOLDER}
    values = {key: value for key, value in wanted.items() if value is not None}
    metadata = _metadata(reading)
    edits: list[tuple[int, int, str]] = []
    for key, value in values.items():
        if key in metadata.keys:
            scalar = _one_line_scalar(reading, metadata, key)
            space = "" if scalar.end > scalar.start else " "  # `key:` has no place for a value yet
            edits.append((scalar.start, scalar.end, space + value))
    new = [(key, value) for key, value in values.items() if key not in metadata.keys]
    edits += _insertions(reading, metadata, new)
    for start, end, text in sorted(edits, reverse=True):
        data = data[:start] + text.encode() + data[end:]
    prepared = _editable(data)
    written = prepared.value["metadata"]
    if any(written.get(key) != value for key, value in values.items()):
        raise _bad_encoding("metadata is written in a way that cannot be edited line by line")
    return prepared


def attach(prepared: bytes | YamlReading, signature: bytes) -> bytes:
    """Return the prepared file with its signature; raise InvalidInput if it was not prepared."""
    reading = _editable(prepared)
    data, (start, end) = reading.data, _signature_span(reading)
    if start == end:
        raise _bad_encoding("metadata.signature has no value to replace: prepare the file first")
    return data[:start] + encode_signature(signature).encode() + data[end:]


def _holds(key: PublicKey, message: bytes, signature: bytes) -> bool:
    if key.algorithm is Algorithm.EIP191:
        return _recover(message, signature) == key.data
    try:
        if key.algorithm is Algorithm.ED25519:
            _ed25519(key.data).verify(signature, message)
        else:
            der = encode_dss_signature(*_low_s(signature, ORDERS[key.algorithm]))
            curve_key(key).verify(der, message, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


@lru_cache(maxsize=1024)  # authors publish more than once
def _ed25519(public: bytes) -> Ed25519PublicKey:
    return Ed25519PublicKey.from_public_bytes(public)


def _recover(message: bytes, signature: bytes) -> bytes | None:
    """The 20-byte address that signed by EIP-191, or None."""
    from eth_keys.datatypes import Signature
    from eth_keys.exceptions import BadSignature
    from eth_utils.exceptions import ValidationError

    r, s = _low_s(signature, ORDERS[Algorithm.SECP256K1])
    v = signature[64]
    if v not in (27, 28):
        raise _bad_encoding(f"its v is {v}, not 27 or 28")
    digest = keccak(b"\x19Ethereum Signed Message:\n%d" % len(message) + message)
    try:
        public = Signature(vrs=(v - 27, r, s)).recover_public_key_from_msg_hash(digest)
    except (BadSignature, ValidationError):
        return None
    return public.to_canonical_address()


def _low_s(signature: bytes, order: int) -> tuple[int, int]:
    """r and s in range, s in the lower half: else every signature would have a twin."""
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big")
    if not 0 < r < order or not 0 < s <= order // 2:
        raise _bad_encoding("its r or s is out of range (s must be in the lower half)")
    return r, s


def _editable(file: bytes | YamlReading) -> YamlReading:
    """Return the reading of the file; raise InvalidInput if it cannot be read."""
    reading = file if isinstance(file, YamlReading) else read_yaml(file)
    for problem in reading.problems:
        if problem.severity is Severity.ERROR:
            raise InvalidInput(
                f"the file cannot be read: {problem.message}",
                why=f"at line {problem.line}" if problem.line else "",
                fix=problem.hint,
                details={"reason": str(problem.code)},
            )
    return reading


def _metadata(reading: YamlReading) -> Mapping:
    """Return the metadata section in the source; raise InvalidInput if there is none."""
    metadata = reading.outline.mapping(("metadata",))
    if metadata is None:
        raise InvalidInput(
            "the file has no metadata section", details={"reason": str(Reason.MISSING_FIELD)}
        )
    return metadata


def _signature_span(reading: YamlReading) -> tuple[int, int]:
    """Return the byte offsets of the value of `metadata.signature`; raise InvalidInput."""
    metadata = _metadata(reading)
    if "signature" not in metadata.keys:
        raise InvalidInput(
            "metadata.signature is missing",
            fix="run capdex sign",
            details={"reason": str(Reason.UNSIGNED)},
        )
    scalar = _one_line_scalar(reading, metadata, "signature")
    if scalar.style is not Style.PLAIN:
        raise _bad_encoding("metadata.signature is written in quotes")
    return scalar.start, scalar.end


def _one_line_scalar(reading: YamlReading, metadata: Mapping, key: str) -> Scalar:
    """Return the value of a key of metadata that ends on the key's line; raise InvalidInput."""
    scalar = reading.outline.scalar(("metadata", key))
    line = metadata.keys[key].line
    if (
        scalar is None
        or scalar.style is Style.BLOCK
        or scalar.line != line
        or b"\n" in reading.data[scalar.start : scalar.end]
    ):
        raise _bad_encoding(f"metadata.{key} is not a value on one line")
    return scalar


def _insertions(
    reading: YamlReading, metadata: Mapping, new: list[tuple[str, str]]
) -> list[tuple[int, int, str]]:
    """Return the edits that add keys behind `metadata.id`, in its own style."""
    if not new:
        return []
    if "id" not in metadata.keys:
        raise InvalidInput("metadata.id is missing", details={"reason": str(Reason.MISSING_FIELD)})
    behind = _one_line_scalar(reading, metadata, "id").end
    if metadata.flow:
        return [(behind, behind, "".join(f", {key}: {value}" for key, value in new))]
    newline = reading.data.find(b"\n", behind)
    at = len(reading.data) if newline < 0 else newline
    indent = "\n" + " " * (metadata.column - 1)
    return [(at, at, "".join(f"{indent}{key}: {value}" for key, value in new))]


def _bad_encoding(message: str) -> InvalidInput:
    return InvalidInput(
        f"the signature cannot be used: {message}",
        fix="run capdex sign, which writes it",
        details={"reason": str(Reason.SIGNATURE_ENCODING)},
    )
