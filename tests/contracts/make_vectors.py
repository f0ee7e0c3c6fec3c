#!/usr/bin/env python3
"""Write the vectors that a machine can make: ids, signatures and logs of the registry.

    python tests/contracts/make_vectors.py

By means of eth_abi and eth_account alone: neither our contracts nor our core have a hand in them,
and both are held to them. A test makes sure that the files are what this script writes.
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from eth_abi.abi import encode
from eth_account import Account
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak

VECTORS = Path(__file__).resolve().parents[1] / "vectors" / "contract"

ALICE, BOB, CAROL = (to_checksum_address(f"0x{n:040x}") for n in (0xA11CE, 0xB0B, 0xCA401))
SECRET = keccak(text="a secret")
DIGEST = (0xD16E57).to_bytes(32, "big")
KEY = keccak(text="Alice's key")
AUTHOR = Account.from_key(KEY).address
NOW, MIN_AGE = 1_800_000_000, 60
LONG_SEMVER = "1.0.0-abcdefghijklmnopqrstuvwxy"

NAMES = ("note", "a1", "n0te", "weather-reporter-by-nuwa", "a" * 64)
SEMVERS = ("1.0.0", "10.200.3000", LONG_SEMVER, "1.0.0-" + "a" * 58)
PUBLICATION = (
    *(("name", "string"), ("semver", "string"), ("cid", "string")),
    *(("sha256", "bytes32"), ("secret", "bytes32"), ("publisher", "address")),
    *(("nonce", "uint256"), ("deadline", "uint256")),
)


def raw_cid(digest: bytes) -> str:
    return "b" + base64.b32encode(b"\x01\x55\x12\x20" + digest).decode().lower().rstrip("=")


def hexed(value: bytes) -> str:
    return "0x" + value.hex()


def commitment(name: str, claimer: str, secret: bytes) -> bytes:
    types = ["bytes32", "address", "bytes32"]
    return keccak(encode(types, [keccak(text=name), claimer, secret]))


def make_ids() -> dict[str, Any]:
    claims = [(NAMES[0], ALICE, SECRET), (NAMES[0], BOB, SECRET), (NAMES[3], ALICE, bytes(32))]
    claims += [(NAMES[4], to_checksum_address("0x" + "ff" * 20), b"\xff" * 32)]
    return {
        "about": "Hashes by which storage, topics and commitments know a name or a version.",
        "names": [{"name": name, "id": hexed(keccak(text=name))} for name in NAMES],
        "semvers": [{"semver": semver, "id": hexed(keccak(text=semver))} for semver in SEMVERS],
        "commitments": [
            {
                "name": name,
                "claimer": claimer,
                "secret": hexed(secret),
                "commitment": hexed(commitment(name, claimer, secret)),
            }
            for name, claimer, secret in claims
        ],
    }


def make_signatures() -> dict[str, Any]:
    first = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
    second = to_checksum_address("0x" + "c0" * 20)
    cases = [
        (31337, first, "note", "1.0.0", b"a package", SECRET, 0, NOW),
        (1, first, "weather-reporter-by-nuwa", "10.200.3000", b"another", bytes(32), 7, 2**64),
        (8453, second, "a1", LONG_SEMVER, b"", b"\xff" * 32, 2**128, NOW + 3600),
        (2**63 - 1, second, "a" * 64, "1.0.0-" + "a" * 58, b"long", SECRET, 1, NOW),
    ]
    return {
        "about": "Publications signed by EIP-712 in the domain `capdex`, version `1`.",
        "signatures": [signature(*case) for case in cases],
    }


def signature(
    chain_id: int,
    contract: str,
    name: str,
    semver: str,
    package: bytes,
    secret: bytes,
    nonce: int,
    deadline: int,
) -> dict[str, Any]:
    sha256 = hashlib.sha256(package).digest()
    message = {
        "name": name,
        "semver": semver,
        "cid": raw_cid(sha256),
        "sha256": sha256,
        "secret": secret,
        "publisher": AUTHOR,
        "nonce": nonce,
        "deadline": deadline,
    }
    types = {"Publication": [{"name": field, "type": kind} for field, kind in PUBLICATION]}
    domain = {
        "name": "capdex",
        "version": "1",
        "chainId": chain_id,
        "verifyingContract": contract,
    }
    signed = Account.sign_typed_data(KEY, domain, types, message)
    shown = {k: hexed(v) if isinstance(v, bytes) else v for k, v in message.items()}
    # As text: a JSON number of more than 53 bits is another number in half of the world's readers.
    shown |= {"nonce": str(nonce), "deadline": str(deadline)}
    return {
        "chain_id": str(chain_id),
        "contract": contract,
        **shown,
        "digest": hexed(signed.message_hash),
        "signature": hexed(signed.signature),
    }


def make_log() -> dict[str, Any]:
    """One event of every kind, as `CapabilityRegistry.t.sol` brings them about, and each head."""
    note, memo = keccak(text="note"), keccak(text="memo")
    release = ["note", LONG_SEMVER]
    text, texts = ["string"], ["string"] * 3
    published = [*texts, "bytes32"]
    cid = raw_cid(DIGEST)
    events: list[tuple[str, bytes, str, list[str], list[Any]]] = [
        ("Committed", commitment("note", ALICE, SECRET), BOB, ["uint64"], [NOW]),
        ("Committed", commitment("memo", AUTHOR, SECRET), BOB, ["uint64"], [NOW]),
        ("Claimed", note, ALICE, text, ["note"]),
        (
            "Published",
            note,
            ALICE,
            published,
            [f"did:nuwa:cap:note@{LONG_SEMVER}", LONG_SEMVER, cid, DIGEST],
        ),
        ("MaintainerAdded", note, ALICE, ["string", "address"], ["note", CAROL]),
        ("Yanked", note, CAROL, texts, [*release, "leaks the user's token"]),
        ("Unyanked", note, CAROL, texts[:2], release),
        ("Deprecated", note, ALICE, texts, [*release, "请升级到 2.0.0 🙏"]),
        ("Undeprecated", note, ALICE, texts[:2], release),
        ("MaintainerRemoved", note, ALICE, ["string", "address"], ["note", CAROL]),
        ("NameDeprecated", note, ALICE, texts, ["note", "", "memo"]),
        ("NameUndeprecated", note, ALICE, text, ["note"]),
        ("Sponsored", memo, AUTHOR, ["string", "address", "uint256"], ["memo", BOB, 0]),
        (
            "Published",
            memo,
            AUTHOR,
            published,
            ["did:nuwa:cap:memo@1.0.0", "1.0.0", cid, DIGEST],
        ),
        ("TransferOffered", note, ALICE, ["string", "address"], ["note", BOB]),
        ("TransferCancelled", note, ALICE, text, ["note"]),
        ("TransferOffered", note, ALICE, ["string", "address"], ["note", CAROL]),
        ("Transferred", note, CAROL, ["string", "address"], ["note", ALICE]),
        ("Renounced", note, CAROL, text, ["note"]),
    ]
    word, shown = bytes(32), []
    for sequence, (kind, subject, account, types, values) in enumerate(events, start=1):
        signature = f"{kind}(bytes32,address,uint64,{','.join(types)})"
        topics = [keccak(text=signature), subject, encode(["address"], [account])]
        data = encode(["uint64", *types], [sequence, *values])
        head = keccak(word + keccak(b"".join(topics) + keccak(data)))[:24]
        word = head + sequence.to_bytes(8, "big")
        shown.append(
            {"event": signature}
            | {f"topic{n}": hexed(topic) for n, topic in enumerate(topics)}
            | {"data": hexed(data), "log": hexed(word)}
        )
    return {
        "about": "One event of every kind, and the word of slot 0 after each: head and count.",
        "events": shown,
    }


def vectors() -> dict[Path, str]:
    """The text of each file by its path."""
    made = {"ids": make_ids(), "signatures": make_signatures(), "log": make_log()}
    return {
        VECTORS / f"{name}.json": json.dumps(value, indent=2, ensure_ascii=False) + "\n"
        for name, value in made.items()
    }


if __name__ == "__main__":
    for path, content in vectors().items():
        path.write_text(content, "utf-8")
