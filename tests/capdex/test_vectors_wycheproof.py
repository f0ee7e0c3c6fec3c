"""Wycheproof: Ed25519 and the two curves, whose r‖s form is ours and whose DER is converted (P5).

A case is `[tcId, key, message, signature, result, comment]`; keys of curves are uncompressed.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from capdex.did import Algorithm, PublicKey, is_sound_point
from capdex.errors import CapdexError
from capdex.problems import Reason
from capdex.signing import ORDERS, verify_with

SUITE = Path(__file__).parents[1] / "vectors" / "wycheproof"
ED25519, SECP256K1, P256 = Algorithm.ED25519, Algorithm.SECP256K1, Algorithm.P256


def cases(name: str) -> list[Any]:
    found: list[Any] = json.loads((SUITE / f"{name}.json").read_text("utf-8"))
    return found


def key_of(algorithm: Algorithm, text: str) -> PublicKey:
    raw = bytes.fromhex(text)
    if algorithm is ED25519:
        return PublicKey(algorithm, raw)
    return PublicKey(algorithm, bytes([2 + raw[64] % 2]) + raw[1:33])


def refusal(key: PublicKey, message: bytes, signature: bytes) -> Reason | None:
    """Why a signature is refused, or None where it is valid."""
    try:
        verify_with(key, message, signature)
    except CapdexError as error:
        return Reason((error.details or {})["reason"])
    return None


def converted(der: bytes) -> bytes | None:
    """A DER signature as r‖s; None where it is not strict DER of two numbers of 32 bytes."""
    try:
        r, s = decode_dss_signature(der)
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")
    except (ValueError, OverflowError):
        return None


def is_high_s(algorithm: Algorithm, signature: bytes) -> bool:
    return ORDERS[algorithm] // 2 < int.from_bytes(signature[32:], "big") < ORDERS[algorithm]


def outcome(algorithm: Algorithm, case: list[Any], *, der: bool) -> str:
    _, key, message, text, result, _ = case
    signature: bytes | None = bytes.fromhex(text)
    if der:
        assert refusal(key_of(algorithm, key), bytes.fromhex(message), bytes.fromhex(text))
        signature = converted(bytes.fromhex(text))
        if signature is None:
            return "passed: refused" if result == "invalid" else "failed: valid DER was not read"
    assert signature is not None
    reason = refusal(key_of(algorithm, key), bytes.fromhex(message), signature)
    if result == "valid" and reason is None:
        return "passed: valid"
    if result == "invalid" and reason is not None:
        return "passed: refused"
    if result == "valid" and algorithm is not ED25519 and is_high_s(algorithm, signature):
        assert reason is Reason.SIGNATURE_ENCODING
        return "refused by policy: high s"
    return f"failed: {result}"


@pytest.mark.parametrize(
    ("name", "algorithm", "counts"),
    [
        ("ed25519_test", ED25519, (88, 63, 0)),
        ("ecdsa_secp256k1_sha256_p1363_test", SECP256K1, (95, 85, 72)),
        ("ecdsa_secp256k1_sha256_bitcoin_test", SECP256K1, (162, 301, 0)),
        ("ecdsa_secp256k1_sha256_test", SECP256K1, (96, 308, 72)),
        ("ecdsa_secp256r1_sha256_p1363_test", P256, (103, 89, 70)),
        ("ecdsa_secp256r1_sha256_test", P256, (103, 310, 71)),
    ],
)
def test_each_signature_is_judged_as_wycheproof_says_or_refused_for_its_high_s(
    name: str, algorithm: Algorithm, counts: tuple[int, int, int]
) -> None:
    der = algorithm is not ED25519 and "p1363" not in name
    outcomes = {case[0]: outcome(algorithm, case, der=der) for case in cases(name)}
    assert [number for number, found in outcomes.items() if found.startswith("failed")] == []
    found = Counter(outcomes.values())
    kinds = ("passed: valid", "passed: refused", "refused by policy: high s")
    assert tuple(found[kind] for kind in kinds) == counts


def test_every_ed25519_key_of_wycheproof_is_sound() -> None:
    assert all(is_sound_point(bytes.fromhex(case[1])) for case in cases("ed25519_test"))
