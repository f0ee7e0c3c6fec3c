"""Authors and accounts: did:key and did:pkh:eip155 to public keys, and CAIP-10 (P5, P6).

Both methods carry the key in the name, so resolving reads nothing but the DID URL, and a key found
so is its DID's `assertionMethod` by definition. Whatever a resolver refuses raises InvalidInput
with `details["reason"]`: BAD_AUTHOR, or UNKNOWN_DID_METHOD where others could read it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ec

from capdex.encoding.abi import checksum_address, raw_address
from capdex.encoding.multiformats import decode_multibase, encode_multibase
from capdex.errors import InvalidInput
from capdex.problems import Reason

MAX_DID_URL_CHARS = 512  # the longest we resolve has 134

PKH_FRAGMENT: Final = "blockchainAccountId"

_DID_URL = re.compile(r"did:([a-z0-9]+):([A-Za-z0-9._:%-]+)(?:#([A-Za-z0-9._:%-]+))?", re.ASCII)
# A chain id without leading zeros, within CAIP-2's 32 characters; an address with 20 bytes.
_ACCOUNT = re.compile(r"eip155:([1-9][0-9]{0,31}):(0x[0-9A-Fa-f]{40})", re.ASCII)

# The curve edwards25519 (RFC 8032, 5.1).
_P: Final = 2**255 - 19
_D: Final = -121665 * pow(121666, -1, _P) % _P
_SQRT_MINUS_ONE: Final = pow(2, (_P - 1) // 4, _P)


class Algorithm(StrEnum):
    """Signature algorithm; it follows from the key, never from the package."""

    ED25519 = "Ed25519"
    SECP256K1 = "secp256k1"
    P256 = "P-256"
    EIP191 = "EIP-191"


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key that signs: 32 bytes (Ed25519), 33 (a compressed point) or a 20-byte address."""

    algorithm: Algorithm
    data: bytes


@dataclass(frozen=True, slots=True)
class Account:
    """An account on an EVM chain, CAIP-10; `address` is checksummed (EIP-55)."""

    chain_id: int
    address: str

    @classmethod
    def parse(cls, text: str) -> Account:
        """Parse `eip155:<chain id>:0x…`; the address is lower case or checksummed."""
        match = _ACCOUNT.fullmatch(text)
        if match is None:
            raise InvalidInput(
                f"{text[:80]!r} is not an account", fix="write it like eip155:31337:0x…"
            )
        chain_id, written = match.groups()
        address = checksum_address(bytes.fromhex(written[2:]))
        if written not in (address, address.lower()):
            raise InvalidInput(
                f"the address {written} has a wrong checksum",
                why="its capital letters are not EIP-55's",
                fix=f"if it is the right address, write {address}",
            )
        return cls(int(chain_id), address)

    def __str__(self) -> str:
        return f"eip155:{self.chain_id}:{self.address}"


@lru_cache(maxsize=1024)  # authors publish more than once
def _resolve_did_key(identifier: str, fragment: str) -> PublicKey:
    if fragment != identifier:
        raise _bad_author("the fragment of a did:key is its own identifier")
    try:
        data = decode_multibase(identifier)
    except InvalidInput as error:
        raise _bad_author(f"{error.message}: {error.why}") from None
    for prefix, (algorithm, size) in _MULTICODECS.items():
        if data.startswith(prefix):
            key = data[len(prefix) :]
            if len(key) != size or not _is_point(algorithm, key):
                raise _bad_author(f"its {len(key)} bytes are not a usable {algorithm} key")
            return PublicKey(algorithm, key)
    raise _bad_author("its key type is not Ed25519, secp256k1 or P-256")


def _resolve_did_pkh(identifier: str, fragment: str) -> PublicKey:
    if not identifier.startswith("eip155:"):
        namespace = identifier.partition(":")[0]
        raise _unknown_method(f"did:pkh:{namespace[:32]}")
    if fragment != PKH_FRAGMENT:
        raise _bad_author(f"the fragment of a did:pkh is {PKH_FRAGMENT}")
    try:
        account = Account.parse(identifier)
    except InvalidInput as error:
        raise _bad_author(error.message) from None
    return PublicKey(Algorithm.EIP191, raw_address(account.address))


_RESOLVERS: Final[dict[str, Callable[[str, str], PublicKey]]] = {
    "key": _resolve_did_key,
    "pkh": _resolve_did_pkh,
}

# Multicodec prefixes as canonical varints, with the size of the key behind.
_ED25519_PREFIX: Final = b"\xed\x01"
_MULTICODECS: Final = {
    _ED25519_PREFIX: (Algorithm.ED25519, 32),
    b"\xe7\x01": (Algorithm.SECP256K1, 33),
    b"\x80\x24": (Algorithm.P256, 33),
}


def resolve_key(did_url: str) -> PublicKey:
    """The public key a DID URL names, fragment included (P5); raises InvalidInput."""
    match = _DID_URL.fullmatch(did_url) if len(did_url) <= MAX_DID_URL_CHARS else None
    if match is None:
        raise _bad_author(f"{did_url[:80]!r} is not a DID URL")
    method, identifier, fragment = match.groups()
    if method not in _RESOLVERS:
        raise _unknown_method(f"did:{method[:32]}")
    if fragment is None:
        raise _bad_author(f"{did_url[:80]!r} names no key: the #fragment is missing")
    return _RESOLVERS[method](identifier, fragment)


def curve_key(key: PublicKey) -> ec.EllipticCurvePublicKey:
    """A secp256k1 or P-256 key ready for use; raises ValueError when it is off the curve."""
    curve = ec.SECP256K1() if key.algorithm is Algorithm.SECP256K1 else ec.SECP256R1()
    return ec.EllipticCurvePublicKey.from_encoded_point(curve, key.data)


def did_key(public: bytes) -> str:
    """The did:key of a raw Ed25519 public key."""
    if len(public) != 32:
        raise ValueError("an Ed25519 public key has 32 bytes")
    return "did:key:" + encode_multibase(_ED25519_PREFIX + public)


def pkh(chain_id: int, address: str) -> str:
    """The did:pkh of an account."""
    return f"did:pkh:{caip10(chain_id, address)}"


def did_url(did: str) -> str:
    """A DID with the fragment that names its key."""
    fragment = PKH_FRAGMENT if did.startswith("did:pkh:") else did.removeprefix("did:key:")
    return f"{did}#{fragment}"


def caip10(chain_id: int, address: str) -> str:
    """An account as CAIP-10 text, its address checksummed; raises InvalidInput."""
    return str(Account.parse(f"eip155:{chain_id}:{address}"))


def account_of(text: str) -> Account | None:
    """The account that a CAIP-10 text, a did:pkh or its DID URL names; None for anything else."""
    account = text.removesuffix(f"#{PKH_FRAGMENT}") if text.startswith("did:pkh:") else text
    try:
        return Account.parse(account.removeprefix("did:pkh:"))
    except InvalidInput:
        return None


def same_account(one: str, other: str) -> bool:
    """True if both texts name one account (P6): the chain and the address are compared."""
    account = account_of(one)
    return account is not None and account == account_of(other)


def _is_point(algorithm: Algorithm, data: bytes) -> bool:
    if algorithm is Algorithm.ED25519:
        return is_sound_point(data)
    try:
        curve_key(PublicKey(algorithm, data))
    except ValueError:
        return False
    return data[0] in (2, 3)


def _bad_author(why: str) -> InvalidInput:
    return InvalidInput(
        f"the author is not usable: {why}",
        why="an author is a did:key or did:pkh:eip155 URL whose fragment names the key",
        fix="run capdex sign, which writes it",
        details={"reason": str(Reason.BAD_AUTHOR)},
    )


def _unknown_method(method: str) -> InvalidInput:
    return InvalidInput(
        f"the author's DID method {method} cannot be resolved here",
        why="did:key and did:pkh:eip155 are",
        fix="sign with capdex sign",
        details={"reason": str(Reason.UNKNOWN_DID_METHOD)},
    )


@lru_cache(maxsize=4096)  # authors publish more than once
def is_sound_point(data: bytes) -> bool:
    """True if `data` is the canonical encoding of a curve point of more than small order.

    OpenSSL accepts more. A small-order key verifies one signature over many messages, and an
    encoding that is not canonical is a second spelling of a key (RFC 8032, 5.1.3).
    """
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    if len(data) != 32 or y >= _P:
        return False
    x = _x_of(y)
    if x is None or (x == 0 and sign):
        return False
    for _ in range(3):  # times 8: what is left of a small-order point is the neutral (0, 1)
        x, y = _double(x, y)
    return (x, y) != (0, 1)


def _x_of(y: int) -> int | None:
    """Return one of the two x for y on -x² + y² = 1 + d·x²·y², or None."""
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if x * x % _P != square:
        x = x * _SQRT_MINUS_ONE % _P
    return x if x * x % _P == square else None


def _double(x: int, y: int) -> tuple[int, int]:
    product = _D * x * x * y * y % _P
    return (
        2 * x * y * pow(1 + product, -1, _P) % _P,
        (y * y + x * x) * pow(1 - product, -1, _P) % _P,
    )
