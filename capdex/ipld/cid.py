"""Strict content identifiers (CIDs): one accepted spelling each, sha2-256 only (P3)."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from typing import Final

from multiformats.cid import CID as _CID

from capdex.encoding.multiformats import encode_multibase
from capdex.errors import InvalidInput

MAX_CID_CHARS = 128
RAW: Final = "raw"
DAG_PB: Final = "dag-pb"
_RAW_PREFIX: Final = b"\x01\x55\x12\x20"  # CIDv1, raw, sha2-256, 32 bytes
_DAG_PB_PREFIX: Final = b"\x01\x70\x12\x20"
_RAW_NUMBER: Final = int.from_bytes(_RAW_PREFIX, "big")
_CODECS: Final = {_RAW_PREFIX: RAW, _DAG_PB_PREFIX: DAG_PB}

# Maps the digits of RFC 4648 to those of int(). Any other byte maps to NUL, which int() refuses.
_DIGITS: Final = dict(
    zip(b"abcdefghijklmnopqrstuvwxyz234567", b"0123456789abcdefghijklmnopqrstuv", strict=True)
)
_TO_BASE_32: Final = bytes(_DIGITS.get(byte, 0) for byte in range(256))


@dataclass(frozen=True, slots=True)
class Cid:
    """An accepted CID; `digest` is its 32-byte sha2-256."""

    text: str
    version: int
    codec: str
    digest: bytes

    @classmethod
    def parse(cls, text: str) -> Cid:
        """Parse a CIDv1 (base32 lower case; raw or dag-pb) or a CIDv0; raises InvalidInput."""
        number = _raw_number(text)
        if number is None:
            return cls._read(text)
        return cls(text, 1, RAW, number.to_bytes(36, "big")[4:])

    @classmethod
    def _read(cls, text: str) -> Cid:
        """Parse any CID with py-multiformats; raises InvalidInput.

        The library is lenient (upper case, paths, trailing bytes, identity), so a CID is accepted
        only if the library writes it back as the same text.
        """
        if not text.isascii() or not text.isalnum() or len(text) > MAX_CID_CHARS:
            raise _refusal(text, "a CID is at most 128 ASCII letters and digits, no path")
        try:
            cid = _CID.decode(text)
            version, codec = int(cid.version), str(cid.codec_name)
            function, digest, spelling = str(cid.hash.name), bytes(cid.hash.digest), str(cid)
        except Exception as error:  # noqa: BLE001 - the library documents no error types
            raise _refusal(text, f"it does not decode: {str(error)[:120]}") from None
        if spelling != text:  # the library always writes a CIDv1 in lower-case base32
            raise _refusal(text, f"its one spelling is {spelling[:80]}")
        if codec not in (RAW, DAG_PB):
            raise _refusal(text, f"its codec is {codec}, not raw or dag-pb")
        if function != "sha2-256" or len(digest) != 32:
            raise _refusal(text, f"its hash is {function} of {len(digest)} bytes, not sha2-256")
        return cls(text, version, codec, digest)

    @classmethod
    def raw(cls, digest: bytes) -> Cid:
        """Return the raw CIDv1 of a 32-byte sha2-256 digest: the one form the contract accepts."""
        if len(digest) != 32:
            raise ValueError("a sha2-256 digest has 32 bytes")
        return cls(_base32(_RAW_PREFIX + digest), 1, RAW, digest)

    @classmethod
    def of(cls, data: bytes) -> Cid:
        """Return the raw CIDv1 of `data` as one block."""
        return cls.raw(hashlib.sha256(data).digest())

    @classmethod
    def from_bytes(cls, data: bytes) -> Cid:
        """Parse the binary form, which links and CARs contain; raises InvalidInput."""
        prefix, digest = data[:-32], data[-32:]
        if prefix == b"\x12\x20":
            return cls(encode_multibase(data)[1:], 0, DAG_PB, digest)
        if prefix in _CODECS:
            return cls(_base32(data), 1, _CODECS[prefix], digest)
        raise _refusal(f"0x{data[:8].hex()}…", "it is not raw or dag-pb with sha2-256")

    def to_bytes(self) -> bytes:
        """Return the binary form: a prefix, then the digest."""
        if self.version == 0:
            return b"\x12\x20" + self.digest
        return next(p for p, codec in _CODECS.items() if codec == self.codec) + self.digest

    @property
    def v1(self) -> Cid:
        """The CIDv1 of the same block, by which blocks are stored."""
        return self if self.version else Cid.from_bytes(_DAG_PB_PREFIX + self.digest)

    def matches(self, block: bytes) -> bool:
        """Return True if the sha2-256 of `block` is the digest (for dag-pb: of the root block)."""
        return hashlib.sha256(block).digest() == self.digest

    def __str__(self) -> str:
        return self.text


def spells(text: str, digest: bytes) -> bool:
    """Return True if `text` is `Cid.raw(digest).text`; ten times faster than encoding it."""
    number = _raw_number(text)
    return number is not None and number == int.from_bytes(_RAW_PREFIX + digest, "big")


def _raw_number(text: str) -> int | None:
    """Decode a raw CIDv1 to its 36 bytes as one number; None for any other CID (the slow path)."""
    if len(text) != 59 or text[0] != "b":
        return None
    try:
        number = int(text[1:].encode("ascii").translate(_TO_BASE_32), 32)
    except ValueError:
        return None
    # 58 digits hold 36 bytes, and two bits of zero.
    return number >> 2 if number >> 258 == _RAW_NUMBER and not number & 3 else None


def _base32(data: bytes) -> str:
    return "b" + base64.b32encode(data).decode("ascii").rstrip("=").lower()


def _refusal(text: str, why: str) -> InvalidInput:
    return InvalidInput(
        f"{text[:80]!r} is not an accepted CID",
        why=why,
        fix="use the raw CIDv1 of the file, as capdex publish prints it",
    )
