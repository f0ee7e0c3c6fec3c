"""did:key, did:pkh, CAIP-10 and base58btc (P5, P6)."""

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from multiformats import multibase

from capdex.did import (
    Account,
    Algorithm,
    PublicKey,
    account_of,
    caip10,
    did_key,
    did_url,
    is_sound_point,
    pkh,
    resolve_key,
    same_account,
)
from capdex.encoding.multiformats import MAX_BASE58_CHARS, decode_multibase, encode_multibase
from capdex.errors import InvalidInput
from capdex.problems import Reason

ADDRESS = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"  # an example of EIP-55
AUTHOR = did_url(pkh(31337, ADDRESS))

# Every encoding of a point of small order, and of y = p and p + 1 (not canonical).
SMALL_ORDER = [
    "0100000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
]
NOT_CANONICAL = [
    "0100000000000000000000000000000000000000000000000000000000000080",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
]


def reason(author: str) -> Reason:
    with pytest.raises(InvalidInput) as caught:
        resolve_key(author)
    assert caught.value.details is not None
    return Reason(caught.value.details["reason"])


def key_url(multicodec: bytes, key: bytes) -> str:
    return did_url("did:key:" + encode_multibase(multicodec + key))


@pytest.mark.parametrize("point", SMALL_ORDER + NOT_CANONICAL)
def test_an_ed25519_key_of_small_order_or_second_spelling_is_refused(point: str) -> None:
    assert not is_sound_point(bytes.fromhex(point))
    assert reason(key_url(b"\xed\x01", bytes.fromhex(point))) is Reason.BAD_AUTHOR


@given(st.binary(min_size=32, max_size=32))
def test_every_generated_ed25519_key_is_sound(seed: bytes) -> None:
    public = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
    assert is_sound_point(public)
    assert resolve_key(did_url(did_key(public))) == PublicKey(Algorithm.ED25519, public)


def test_an_ed25519_key_off_the_curve_is_refused() -> None:
    assert not is_sound_point(bytes([2]) + bytes(31))
    assert not is_sound_point(bytes(31))


@pytest.mark.parametrize(
    ("multicodec", "curve"),
    [(b"\xe7\x01", ec.SECP256K1()), (b"\x80\x24", ec.SECP256R1())],
)
def test_only_compressed_points_on_their_curve_are_keys(
    multicodec: bytes, curve: ec.EllipticCurve
) -> None:
    public = ec.derive_private_key(7, curve).public_key()
    compressed = public.public_bytes(Encoding.X962, PublicFormat.CompressedPoint)
    whole = public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    assert resolve_key(key_url(multicodec, compressed)).data == compressed
    off_curve = b"\x02" + (b"\xff" * 32)
    hybrid = bytes([6]) + whole[1:]
    for bad in (whole, hybrid, off_curve, b"\x04" + compressed[1:], b"", bytes(33), b"\x00"):
        assert reason(key_url(multicodec, bad)) is Reason.BAD_AUTHOR


@pytest.mark.parametrize("multicodec", [b"\xed\x81\x00", b"\xed", b"\xed\x02", b"\x01\xed", b""])
def test_another_spelling_of_the_multicodec_is_refused(multicodec: bytes) -> None:
    public = Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key().public_bytes_raw()
    assert reason(key_url(multicodec, public)) is Reason.BAD_AUTHOR


def test_a_did_pkh_names_the_address_that_signs() -> None:
    key = PublicKey(Algorithm.EIP191, bytes.fromhex(ADDRESS[2:]))
    assert resolve_key(AUTHOR) == key
    assert resolve_key(AUTHOR.replace(ADDRESS, ADDRESS.lower())) == key


MULTIBASE = did_key(
    Ed25519PrivateKey.from_private_bytes(bytes(32)).public_key().public_bytes_raw()
).removeprefix("did:key:")


@pytest.mark.parametrize(
    "author",
    [
        "", "did:", "did:key", "did:key:", "note", "eip155:1:" + ADDRESS, "DID:key:z6Mk#z6Mk",
        f"did:key:{MULTIBASE}", f"did:key:{MULTIBASE}#", f"did:key:{MULTIBASE}#key-1",
        f"did:key:{MULTIBASE}#{MULTIBASE} ", f"did:key:{MULTIBASE}#{MULTIBASE}\n",
        f"did:key:{MULTIBASE}?x#{MULTIBASE}", f"did:key:{MULTIBASE}/p#{MULTIBASE}",
        f"did:key:{MULTIBASE}#{MULTIBASE}#{MULTIBASE}", "did:key:z#z", "did:key:z6Mk0#z6Mk0",
        f"did:key:f{MULTIBASE}#f{MULTIBASE}", f"did:key:z1{MULTIBASE[1:]}#z1{MULTIBASE[1:]}",
        "did:key:" + "z" * 600 + "#" + "z" * 600,
        AUTHOR.replace("#blockchainAccountId", ""), AUTHOR.replace("#blockchain", "#block"),
        AUTHOR.replace("aA", "Aa"), AUTHOR.replace("31337", "031337"),
        AUTHOR.replace("31337", "0"), AUTHOR.replace("0x5", "0X5"), AUTHOR.replace("0x5a", "0x5"),
        AUTHOR.replace("31337", "-1"), AUTHOR.replace("31337", "１"), AUTHOR.replace("31337:", ""),
    ],
)  # fmt: skip
def test_an_author_without_a_usable_key_is_refused(author: str) -> None:
    assert reason(author) is Reason.BAD_AUTHOR


@pytest.mark.parametrize(
    "author",
    [
        "did:web:example.com#key-1",
        "did:web:example.com",
        "did:nuwa:cap:note",
        "did:ethr:0x1234#controller",
        "did:pkh:solana:4sGjMW1sUnHzSxGspuhpqLDx6wiyjNtZ:CKg5d12Jhpej1JqtmxLJgaFqqeYjxgPqToJ4LBdvG9Ev#x",
    ],
)
def test_another_did_method_is_told_apart_from_a_bad_author(author: str) -> None:
    assert reason(author) is Reason.UNKNOWN_DID_METHOD


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_did_key_is_made_of_a_whole_key(size: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        did_key(bytes(size))


@pytest.mark.parametrize("text", [ADDRESS, ADDRESS.lower()])
def test_an_account_is_written_with_its_checksum(text: str) -> None:
    assert caip10(31337, text) == f"eip155:31337:{ADDRESS}"
    assert Account.parse(f"eip155:31337:{text}") == Account(31337, ADDRESS)


@pytest.mark.parametrize(
    "text",
    ["", "eip155:1", f"eip155:01:{ADDRESS}", f"eip155:0:{ADDRESS}", f"cosmos:1:{ADDRESS}",
     f"eip155:1:{ADDRESS.upper()}", f"eip155:1:{ADDRESS}\n", "eip155:1:0x00", f"eip155::{ADDRESS}",
     f"eip155:{'9' * 33}:{ADDRESS}", f"eip155:1:{ADDRESS.replace('aA', 'Aa')}"],
)  # fmt: skip
def test_what_is_not_caip_10_is_not_an_account(text: str) -> None:
    with pytest.raises(InvalidInput):
        Account.parse(text)


def test_accounts_are_compared_by_chain_and_address_whatever_their_spelling() -> None:
    account = caip10(31337, ADDRESS)
    for same in (account, account.lower(), AUTHOR, pkh(31337, ADDRESS)):
        assert same_account(same, account)
    for other in (
        caip10(1, ADDRESS),
        did_url(pkh(1, ADDRESS)),
        f"did:key:{MULTIBASE}",
        "",
        ADDRESS,
    ):
        assert not same_account(other, account)
    assert not same_account("junk", "junk")
    assert account_of("did:pkh:" + AUTHOR) is None


@given(st.text(max_size=100) | st.text(max_size=60).map("did:key:z6Mk{}".format))
def test_resolving_raises_nothing_but_invalid_input(text: str) -> None:
    for author in (text, f"{text}#{text}", f"did:pkh:{text}#blockchainAccountId"):
        assert reason(author) in (Reason.BAD_AUTHOR, Reason.UNKNOWN_DID_METHOD)


@given(st.binary(max_size=80))
def test_base58btc_agrees_with_py_multiformats(data: bytes) -> None:
    text = encode_multibase(data)
    assert decode_multibase(text) == data
    assert multibase.encode("base58btc", data) == text


@given(st.text(alphabet="z1aZ0OIl2 é", max_size=30))
def test_every_base58btc_text_that_is_taken_is_the_only_one_for_its_bytes(text: str) -> None:
    try:
        data = decode_multibase(text)
    except InvalidInput:
        return
    assert encode_multibase(data) == text


def test_a_base58btc_text_over_its_limit_is_refused() -> None:
    with pytest.raises(InvalidInput):
        decode_multibase("z" + "2" * MAX_BASE58_CHARS)
