"""CIDs, DID URLs, versions, ranges and capability URIs: short texts that people and chains send."""

# ruff: noqa: PT017 - what is raised is judged as well

from __future__ import annotations

import base64
import hashlib
from contextlib import suppress
from random import Random

from mutation import mutate_bytes, mutate_text, size
from target import Target

from capdex import did
from capdex.did import Account, PublicKey, account_of, resolve_key, same_account
from capdex.encoding.multiformats import encode_multibase
from capdex.errors import InvalidInput
from capdex.ipld.cid import Cid
from capdex.problems import Reason
from capdex.uri import CapabilityURI
from capdex.version import Version, VersionRange, parse_selector

# CIDs ---------------------------------------------------------------------------------------------


def varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


# Versions, codecs, hash functions and lengths that no package has.
_ODD_PARTS = (
    *([0, 2, 3, 2**63], [0x71, 0x72, 0x129, 0x01, 0, 2**40]),
    *([0x00, 0x11, 0x13, 0x1B, 0x56, 0xB220], [20, 64, 0, 31, 33, 2**62]),
)


def make_cid(random: Random) -> bytes:
    """Its parts drawn one by one, written in some base, then mutated as text half of the time."""
    digest = hashlib.sha256(random.randbytes(4)).digest()
    parts = [1, random.choice([0x55, 0x70]), 0x12, 32]
    for at, others in enumerate(_ODD_PARTS):
        if not random.randrange(6):
            parts[at] = random.choice(others)
    raw = b"".join(map(varint, parts[2 if not random.randrange(4) else 0 :])) + digest
    if not random.randrange(4):
        raw = mutate_bytes(random, raw, times=size(random, 3))
    if not random.randrange(3) or len(raw) > 2048:  # base58 costs quadratic time
        return raw
    match random.randrange(12):
        case 0:
            text = encode_multibase(raw)
        case 1 | 2 | 3 | 4:
            text = encode_multibase(raw)[1:]
        case 5:
            text = "f" + raw.hex()
        case 6:
            text = "B" + base64.b32encode(raw).decode().rstrip("=")
        case 7:
            text = "u" + base64.urlsafe_b64encode(raw).decode().rstrip("=")
        case _:
            text = "b" + base64.b32encode(raw).decode().rstrip("=").lower()
    if not random.randrange(3):
        text = mutate_text(random, text)
    return (text if random.randrange(12) else f"/ipfs/{text}").encode()


def check_cid(data: bytes) -> str:
    """Read as text and as bytes; what is taken has one spelling, worked out here once more."""
    word = "refused"
    with suppress(InvalidInput):
        cid = Cid.from_bytes(data)
        assert cid.to_bytes() == data
        assert Cid.parse(cid.text) == cid
        word = "bytes"
    text = data.decode("utf-8", "replace")
    with suppress(InvalidInput):
        cid = Cid.parse(text)
        assert cid.text == text == str(cid)
        if cid.version == 1:
            assert text == "b" + base64.b32encode(cid.to_bytes()).decode().rstrip("=").lower()
            assert cid.to_bytes()[:4] in (b"\x01\x55\x12\x20", b"\x01\x70\x12\x20")
        else:
            assert text == encode_multibase(b"\x12\x20" + cid.digest)[1:]
        assert len(cid.digest) == 32
        assert Cid.from_bytes(cid.to_bytes()) == cid
        word = "text"
    return word


# DID URLs -----------------------------------------------------------------------------------------

_KEYS = (
    *("z6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMsw",),
    *("zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme",),
    *("zDnaerDaTF5BXEavCrfRZEk316dpbLsfPDZ3WJ5hRTPFU2169",),
)
_ADDRESS = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
_DIDS = (
    *(did.did_url(f"did:key:{key}") for key in _KEYS),
    *(f"did:pkh:eip155:{chain}:{_ADDRESS}#blockchainAccountId" for chain in ("1", "31337", "0")),
    *(f"eip155:1:{_ADDRESS}", f"did:pkh:eip155:1:{_ADDRESS.lower()}#blockchainAccountId"),
    *(
        "did:web:example.com#key-1",
        "did:nuwa:cap:note@1.0.0",
        "did:pkh:solana:x:y#z",
        "did:key:z#z",
    ),
)


def make_did(random: Random) -> bytes:
    """A DID URL with a key of any kind and length, or a good one mutated."""
    if not random.randrange(8):
        return random.choice(_DIDS).encode()
    if random.randrange(3):
        return mutate_text(random, random.choice(_DIDS), random.choice(_DIDS)).encode()
    prefix = random.choice([b"\xed\x01", b"\xe7\x01", b"\x80\x24", b"\xec\x01", b"\x85\x24", b""])
    key = random.choice([b"", b"\x02", b"\x03", b"\x04"]) + random.randbytes(size(random, 70))
    if random.randrange(2):  # points of small order, and ones out of range
        edge = random.choice([0, 1, 2**255 - 19, 2**255 - 20, 2**255 - 18, 2**256 - 1, 2**255 + 1])
        key = edge.to_bytes(32, "little")
    return did.did_url("did:key:" + encode_multibase(prefix + key)).encode()


def check_did(data: bytes) -> str:
    """A key of the size its kind has, or InvalidInput with a reason; accounts never raise."""
    text = data.decode("utf-8", "replace")
    account = account_of(text)
    assert same_account(text, text) is (account is not None)
    if account is not None:
        assert Account.parse(str(account)) == account
    try:
        key = resolve_key(text)
    except InvalidInput as error:
        assert error.details is not None
        reason = Reason(error.details["reason"])
        assert reason in (Reason.BAD_AUTHOR, Reason.UNKNOWN_DID_METHOD)
        return str(reason)
    assert isinstance(key, PublicKey)
    assert len(key.data) == {"Ed25519": 32, "EIP-191": 20}.get(key.algorithm, 33)
    return str(key.algorithm)


# versions -----------------------------------------------------------------------------------------

_RANGES = (
    *("1.2.3", "^1.2", "~1.2.3", "1.x", ">=1.2 <2", "1.2 - 2.3", "*", "1.0.0-rc.1", "<2 || >3", ""),
    *("1.2.3+build", "v1.2.3", "=v1.2", ">=1.0.0-0 <1.0.0", "x.1", "^0.0.1", "~>1", "||", "1 || *"),
)
_PARTS = (
    *(" ", "  ", "||", "-", ".", "0", "01", "x", "X", "*", "v", "=", ">", "<", "~", "^", "+", "rc"),
    *("-0", "-rc.1", "9" * 15, "9" * 16, "1" * 300, "\n", "\u00a0", "٣"),
)
_VERSIONS = [Version.parse(x) for x in ("0.0.0", "1.2.3", "1.0.0-rc.1", "2.0.0-0", "999.1.0-a.b")]


def make_range(random: Random) -> bytes:
    if random.randrange(3):
        text = "".join(random.choice(_RANGES + _PARTS) for _ in range(size(random, 40)))
    else:
        text = mutate_text(random, random.choice(_RANGES), random.choice(_RANGES))
    return text.encode()


def check_range(data: bytes) -> str:
    """Read as each of the four grammars; what is taken is written back, and can be asked."""
    text = data.decode("utf-8", "replace")
    word = "refused"
    with suppress(InvalidInput):
        VersionRange.parse(text)
        word = "range"
    with suppress(InvalidInput):
        wanted = parse_selector(text)
        if isinstance(wanted, VersionRange):
            assert any(version in wanted for version in _VERSIONS) in (True, False)
        assert str(CapabilityURI.parse(f"did:nuwa:cap:note@{text}")) == f"did:nuwa:cap:note@{text}"
    for parse in (CapabilityURI.parse, CapabilityURI.exact, CapabilityURI.loose):
        with suppress(InvalidInput):
            parse(text)
    with suppress(InvalidInput):
        version = Version.parse(text)
        assert str(version) == text
        assert version in VersionRange.parse(text)
        assert sorted([version, *_VERSIONS])
        word = "version"
    return word


TARGETS = [
    Target("cid", 2, make_cid, check_cid),
    Target("did", 1, make_did, check_did),
    Target("range", 1, make_range, check_range),
]
