"""did:key of the W3C CCG: three key types are ours, each the very key of its document (P5)."""

from __future__ import annotations

import base64
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from capdex.did import Algorithm, curve_key, did_url, resolve_key
from capdex.encoding.multiformats import decode_multibase
from capdex.errors import InvalidInput
from capdex.problems import Reason

SUITE = Path(__file__).parents[1] / "vectors" / "did-key" / "keys.json"
CASES: list[dict[str, Any]] = json.loads(SUITE.read_text("utf-8"))

# The first characters of a multibase key tell its type.
OURS = {"z6Mk": Algorithm.ED25519, "zQ3s": Algorithm.SECP256K1, "zDna": Algorithm.P256}


def coordinate(jwk: dict[str, str], name: str) -> int:
    return int.from_bytes(base64.urlsafe_b64decode(jwk[name] + "=="), "big")


def is_key_of(case: dict[str, Any]) -> bool:
    """Whether resolving gives the key that the document shows, in whatever form it does."""
    key = resolve_key(did_url(case["did"]))
    if "publicKeyBase58" in case:
        return key.data == decode_multibase("z" + case["publicKeyBase58"])
    jwk = case["publicKeyJwk"]
    if key.algorithm is Algorithm.ED25519:
        return key.data == base64.urlsafe_b64decode(jwk["x"] + "==")
    point: ec.EllipticCurvePublicNumbers = curve_key(key).public_numbers()
    return (point.x, point.y) == (coordinate(jwk, "x"), coordinate(jwk, "y"))


def outcome(case: dict[str, Any]) -> str:
    identifier: str = case["did"].removeprefix("did:key:")
    if (algorithm := OURS.get(identifier[:4])) is not None:
        key = resolve_key(did_url(case["did"]))
        good = key.algorithm is algorithm and is_key_of(case)
        return f"passed: {algorithm}" if good else "failed"
    with pytest.raises(InvalidInput) as caught:
        resolve_key(did_url(case["did"]))
    assert (caught.value.details or {})["reason"] == Reason.BAD_AUTHOR
    return f"refused by policy: {case['file']}"


def test_keys_that_sign_packages_are_resolved_and_the_others_refused() -> None:
    assert Counter(outcome(case) for case in CASES) == {
        "passed: Ed25519": 5,
        "passed: secp256k1": 6,
        "passed: P-256": 3,
        "refused by policy: nist-curves.json": 4,  # P-384 and P-521
        "refused by policy: bls12381.json": 6,
        "refused by policy: x25519.json": 4,
        "refused by policy: rsa.json": 2,
    }
