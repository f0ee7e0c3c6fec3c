"""Signers: one protocol for a key in this process and for a key that another program holds.

`LocalSigner` signs with `cryptography`: the same deterministic signatures as eth-account makes,
without the second that its import takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed, decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from typing_extensions import override

from capdex.did import Algorithm
from capdex.encoding.abi import checksum_address
from capdex.encoding.keccak import keccak
from capdex.signing import ORDERS
from publisher.keys import eip1559

PRIVATE_KEY_BYTES: Final = 32

_CURVE: Final = ec.SECP256K1()
_ORDER: Final = ORDERS[Algorithm.SECP256K1]
# RFC 6979: the same key and digest always give the same signature.
_ECDSA: Final = ec.ECDSA(Prehashed(SHA256()), deterministic_signing=True)


@dataclass(frozen=True, slots=True)
class Signed:
    """A signed transaction that has not been sent: its raw bytes and its hash (0x hex)."""

    raw: bytes
    tx_hash: str


class Signer(Protocol):
    """An account that signs."""

    @property
    def address(self) -> str:
        """The account's address (EIP-55)."""

    async def sign_transaction(self, fields: dict[str, Any]) -> Signed:
        """Sign the EIP-1559 transaction of `Transaction.fields` without changing any field.

        Raises Refused SIGNER_REFUSED and Unavailable SIGNER_UNAVAILABLE.
        """

    async def sign_message(self, message: bytes) -> bytes:
        """Sign a message by EIP-191 (personal_sign): 65 bytes, r‖s‖v; raises as above."""


class LocalSigner:
    """An account whose private key is in this process's memory.

    Raises ValueError for bytes that are no private key of secp256k1.
    """

    def __init__(self, key: bytes) -> None:
        number = int.from_bytes(key, "big")
        if len(key) != PRIVATE_KEY_BYTES or not 0 < number < _ORDER:
            raise ValueError("not a private key")
        self._number = number
        self._private = ec.derive_private_key(number, _CURVE)
        public = self._private.public_key().public_bytes(
            Encoding.X962, PublicFormat.UncompressedPoint
        )
        self._address = checksum_address(keccak(public[1:])[12:])

    @override
    def __repr__(self) -> str:
        return f"LocalSigner({self.address})"

    @property
    def address(self) -> str:
        """The account's address (EIP-55)."""
        return self._address

    @property
    def key(self) -> bytes:
        """The private key: read it only to encrypt it into a key file."""
        return self._number.to_bytes(PRIVATE_KEY_BYTES, "big")

    async def sign_transaction(self, fields: dict[str, Any]) -> Signed:
        """Sign at once."""
        items = eip1559.items_of(fields)
        r, s, parity = self._sign(keccak(eip1559.encode(items)))
        raw = eip1559.encode([*items, *map(eip1559.item_of, (parity, r, s))])
        return Signed(raw, "0x" + keccak(raw).hex())

    async def sign_message(self, message: bytes) -> bytes:
        """Sign at once."""
        digest = keccak(b"\x19Ethereum Signed Message:\n%d" % len(message) + message)
        r, s, parity = self._sign(digest)
        return r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes([27 + parity])

    def _sign(self, digest: bytes) -> tuple[int, int, int]:
        """The signature of a digest: r, s in the lower half, and the parity of the point R."""
        r, s = decode_dss_signature(self._private.sign(digest, _ECDSA))
        s = min(s, _ORDER - s)
        # R is k·G, and k follows from the signature and the key: k = (digest + r·key) / s.
        k = pow(s, -1, _ORDER) * (int.from_bytes(digest, "big") + r * self._number) % _ORDER
        point = ec.derive_private_key(k, _CURVE).public_key().public_numbers()
        return r, s, point.y & 1
