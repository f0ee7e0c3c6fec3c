"""Ed25519 is verified without the cofactor, and R and s have one encoding each (P5, RFC 8032).

The cases are made here, by a signer that knows how to add points of small order: two verifiers that
differ in the equation, or in what they decode, would give them different verdicts. The page of the
protocol shows them, for other implementations.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha512
from pathlib import Path
from typing import NamedTuple

import pytest

from capdex.did import Algorithm, PublicKey, is_sound_point
from capdex.errors import CapdexError
from capdex.problems import Reason
from capdex.signing import verify_with

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
PROTOCOL = Path(__file__).parents[2] / "docs" / "protocol.md"
SECRET = int.from_bytes(sha512(b"capdex: a secret for tests").digest(), "little") % L

Point = tuple[int, int]


def add(a: Point, b: Point) -> Point:
    cross = D * a[0] * b[0] * a[1] * b[1] % P
    x = (a[0] * b[1] + a[1] * b[0]) * pow(1 + cross, -1, P)
    return x % P, (a[1] * b[1] + a[0] * b[0]) * pow(1 - cross, -1, P) % P


def times(scalar: int, point: Point) -> Point:
    result = (0, 1)
    for bit in f"{scalar:b}":
        result = add(result, result)
        if bit == "1":
            result = add(result, point)
    return result


def decode(data: bytes) -> Point:
    y = int.from_bytes(data, "little") & (2**255 - 1)
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if x * x % P == square else x * pow(2, (P - 1) // 4, P) % P
    assert x * x % P == square
    return (x if x % 2 == data[31] >> 7 else P - x), y


def encode(point: Point) -> bytes:
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


BASE = decode(bytes.fromhex("58" + "66" * 31))
# A generator of the eight points of small order.
TORSION = decode(bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"))
PLAIN, MIXED = times(SECRET, BASE), add(times(SECRET, BASE), TORSION)


class Case(NamedTuple):
    what: str
    valid: bool
    key: bytes
    message: bytes
    signature: bytes


def challenge(r_bytes: bytes, key: bytes, message: bytes) -> int:
    return int.from_bytes(sha512(r_bytes + key + message).digest(), "little") % L


def signed(key: Point, r: int, torsion: int, message: bytes) -> tuple[bytes, int]:
    """A signature that holds with the cofactor, and what is left of small order without it."""
    r_bytes = encode(add(times(r, BASE), times(torsion, TORSION)))
    k = challenge(r_bytes, encode(key), message)
    left = (torsion + (k if key is MIXED else 0)) % 8
    return r_bytes + ((r + k * SECRET) % L).to_bytes(32, "little"), left


def find(what: str, key: Point, torsion: int, *, valid: bool) -> Case:
    for r in range(1, 1000):
        signature, left = signed(key, r, torsion, b"capdex")
        if valid == (left == 0):
            return Case(what, valid, encode(key), b"capdex", signature)
    raise AssertionError(what)


def cases() -> Iterator[Case]:
    usual = find("usual", PLAIN, 0, valid=True)
    yield usual
    yield find("key of mixed order, nothing left of small order", MIXED, 0, valid=True)
    yield find("R and key of mixed order that cancel out", MIXED, 3, valid=True)
    yield find("key of mixed order: holds with the cofactor only", MIXED, 0, valid=False)
    yield find("R of mixed order: holds with the cofactor only", PLAIN, 1, valid=False)
    s = int.from_bytes(usual.signature[32:], "little") + L
    greater = usual.signature[:32] + s.to_bytes(32, "little")
    yield usual._replace(
        what="s is not less than the group's order", valid=False, signature=greater
    )
    neutral = (P + 1).to_bytes(32, "little")  # a second encoding of (0, 1)
    s = challenge(neutral, usual.key, usual.message) * SECRET % L
    second = usual._replace(signature=neutral + s.to_bytes(32, "little"))
    yield second._replace(what="R is not encoded canonically", valid=False)


CASES = list(cases())


def refusal(case: Case) -> Reason | None:
    """Why a signature is refused, or None where it is valid."""
    try:
        verify_with(PublicKey(Algorithm.ED25519, case.key), case.message, case.signature)
    except CapdexError as error:
        return Reason((error.details or {})["reason"])
    return None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_a_signature_is_judged_without_the_cofactor(case: Case) -> None:
    assert is_sound_point(case.key)
    assert refusal(case) is (None if case.valid else Reason.BAD_SIGNATURE)


@pytest.mark.parametrize("order", range(8))
def test_a_key_of_small_order_is_no_key(order: int) -> None:
    assert not is_sound_point(encode(times(order, TORSION)))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_the_protocol_shows_every_case(case: Case) -> None:
    verdict = "valid" if case.valid else "invalid"
    row = f"| {case.what} | `{case.key.hex()}` | `{case.signature.hex()}` | {verdict} |"
    assert row in PROTOCOL.read_text("utf-8")
