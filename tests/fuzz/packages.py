"""Packages: read and judged, whatever their bytes are."""

from __future__ import annotations

import hashlib
import json
import re
from functools import cache
from random import Random
from typing import Any

import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from mutation import MAX_BYTES, TOKENS, mutate_bytes, mutate_lines, mutate_value, size
from target import ROOT, VECTORS, Target

from capdex import did, signing
from capdex.encoding.abi import checksum_address
from capdex.errors import CapdexError, InvalidInput
from capdex.ipld.cid import Cid
from capdex.package import RejectedPackage, VerifiedPackage, judge
from capdex.registry.events import Announcement
from capdex.uri import CapabilityURI
from capdex.yaml.reader import read_yaml

CHAIN_ID = 31337
ACCOUNT = checksum_address(bytes(19) + b"\x07")
PUBLISHER = did.caip10(CHAIN_ID, ACCOUNT)
KEY = Ed25519PrivateKey.from_private_bytes(b"\x05" * 32)
AUTHOR = did.did_url(did.did_key(KEY.public_key().public_bytes_raw()))

_URI = re.compile(rb"did:nuwa:cap:[a-z0-9-]+@[0-9A-Za-z.-]+")
_SIGNATURE = re.compile(rb"\bsignature[\"']?: *(z[1-9A-HJ-NP-Za-km-z]+)")


@cache
def signed() -> list[bytes]:
    """The examples, signed and bound."""
    return [sign(path.read_bytes()) for path in sorted((ROOT / "examples").glob("*.acp.yaml"))]


@cache
def hostile() -> list[bytes]:
    folder = VECTORS / "packages" / "hostile"
    return [path.read_bytes() for path in sorted(folder.glob("*.acp.yaml"))]


@cache
def values() -> list[Any]:
    return [read_yaml(data).value for data in signed()]


def sign(data: bytes) -> bytes:
    """The file signed and bound; as it is where that cannot be done."""
    try:
        prepared = signing.prepare(data, author=AUTHOR, publisher=PUBLISHER)
        uri = str(prepared.value["metadata"].get("id"))
        message = signing.signing_input(prepared, uri)
        return signing.attach(prepared, signing.sign_ed25519(KEY, message))
    except CapdexError:
        return data


def make(random: Random) -> bytes:
    """Mutations of a signed package, some signed again; of a hostile one; or plain noise."""
    data = random.choice(signed())
    match random.randrange(20):
        case 0 | 1 | 2 | 3 | 4:
            return mutate_bytes(random, data, random.choice(signed()))
        case 5:
            return mutate_bytes(random, random.choice(hostile()), data)
        case 6 | 7:
            data = mutate_lines(random, data)
        case 8:
            pieces = [random.choice(TOKENS) for _ in range(size(random, 400))]
            return b"".join(pieces)[:MAX_BYTES]
        case _:
            data = write(random, mutate_value(random, random.choice(values()), values()))
    return sign(data) if random.randrange(2) else data


def write(random: Random, value: Any) -> bytes:
    """A JSON value as YAML, in the style of JSON or in blocks."""
    if random.randrange(2):
        text = json.dumps(value, ensure_ascii=False)
    else:
        text = yaml.dump(value, allow_unicode=True, sort_keys=False, Dumper=yaml.CSafeDumper)
    return text.encode("utf-8", "surrogatepass")[:MAX_BYTES]


def check(data: bytes) -> str:
    """Judged as anybody may announce it: with its own id, sha256 and CID."""
    judged = judge(announce(data), data)
    assert isinstance(judged, VerifiedPackage | RejectedPackage)
    lines = data.decode("utf-8", "replace").split("\n")
    for problem in judged.problems:
        assert 1 <= problem.line <= len(lines), problem
        assert 1 <= problem.column <= len(lines[problem.line - 1]) + 1, problem
        assert problem.message.isprintable(), problem
        json.dumps(problem.to_json())
    if judged.manifest is not None:
        document = judged.manifest.document
        assert json.loads(json.dumps(document)) == document
    if isinstance(judged, VerifiedPackage):
        assert data in signed() or is_signed(data, str(judged.manifest.uri))
        return "verified"
    return str(judged.reason)


def announce(data: bytes) -> Announcement:
    found = _URI.search(data)
    try:
        uri = CapabilityURI.exact(found[0].decode() if found else "")
    except InvalidInput:
        uri = CapabilityURI.exact("did:nuwa:cap:note@1.0.0")
    cid = Cid.of(data)
    return Announcement(CHAIN_ID, ACCOUNT, str(uri), str(uri.version), cid.text, cid.digest)


def is_signed(data: bytes, uri: str) -> bool:
    """Whether the file is signed by `KEY`, worked out without the code under test."""
    for value in set(_SIGNATURE.findall(data)):
        digest = hashlib.sha256(data.replace(value, b"", 1)).hexdigest()
        signature = KEY.sign(f"ACP-SIG-V1\n{uri}\n{digest}".encode())
        if signing.encode_signature(signature).encode() == value:
            return True
    return False


TARGETS = [Target("package", 10, make, check)]
