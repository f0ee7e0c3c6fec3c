"""Signatures, and the editing that leaves every other byte alone (P5)."""

import hashlib

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from eth_account import Account
from hypothesis import given
from hypothesis import strategies as st

from capdex import did, signing
from capdex.did import Algorithm, PublicKey
from capdex.encoding.multiformats import encode_multibase
from capdex.errors import CapdexError, InvalidInput, VerificationFailure
from capdex.problems import Reason

PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
AUTHOR = did.did_url(did.did_key(PRIVATE.public_key().public_bytes_raw()))
ACCOUNT = Account.from_key(bytes([7]) * 32)
PKH_AUTHOR = did.did_url(did.pkh(31337, ACCOUNT.address))
PUBLISHER = did.caip10(31337, ACCOUNT.address)
URI = "did:nuwa:cap:note@1.0.0"
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141

FILE = """\
# A package — with remarks.
metadata:
  id: did:nuwa:cap:note@1.0.0   # the id
  name: "Note"   # trailing

  description: 记笔记
prompt: |
  signature: z111 is not a signature here
"""


def outcome(key: PublicKey, message: bytes, signature: bytes) -> Reason | None:
    """Why a signature is refused, or None where it is valid."""
    try:
        signing.verify_with(key, message, signature)
    except CapdexError as error:
        return Reason((error.details or {})["reason"])
    return None


def prepare(file: bytes, *, author: str, publisher: str | None) -> bytes:
    return signing.prepare(file, author=author, publisher=publisher).data


def prepared(author: str = AUTHOR) -> bytes:
    return prepare(FILE.encode(), author=author, publisher=PUBLISHER)


def test_preparing_writes_three_lines_behind_the_id_and_nothing_else() -> None:
    head, tail = FILE.split("   # the id\n")
    lines = f"  author: {AUTHOR}\n  publisher: {PUBLISHER}\n  signature: z\n"
    assert prepared().decode() == f"{head}   # the id\n{lines}{tail}"


def test_attaching_replaces_the_placeholder_and_nothing_else() -> None:
    signature = bytes(range(64))
    signed = signing.attach(prepared(), signature)
    written = b"signature: " + encode_multibase(signature).encode() + b"\n"
    assert signed == prepared().replace(b"signature: z\n", written)
    assert signing.signing_input(signed, URI) == signing.signing_input(prepared(), URI)


def test_the_signing_input_is_the_digest_of_the_file_without_the_value() -> None:
    without = prepared().replace(b"signature: z\n", b"signature: \n")
    digest = hashlib.sha256(without).hexdigest()
    expected = f"ACP-SIG-V1\n{URI}\n{digest}".encode()
    assert signing.signing_input(prepared(), URI) == expected


def test_preparing_again_changes_no_byte_but_the_values() -> None:
    signed = signing.attach(prepared(), bytes(64))
    assert prepare(signed, author=AUTHOR, publisher=PUBLISHER) == prepared()
    kept = prepare(signed, author=PKH_AUTHOR, publisher=None)
    assert kept == prepared(PKH_AUTHOR)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("signature:", "signature: z"),
        ('signature: ""', "signature: z"),
        ("signature: 'old'  # remark", "signature: z  # remark"),
        ("signature: null", "signature: z"),
        ("signature: z123", "signature: z"),
        ('"signature": z123', '"signature": z'),
    ],
)
def test_a_value_of_any_one_line_style_is_replaced(before: str, after: str) -> None:
    file = FILE.replace("  name:", f"  {before}\n  name:")
    done = prepare(file.encode(), author=AUTHOR, publisher=None).decode()
    expected = FILE.replace("  name:", f"  {after}\n  name:")
    assert done.replace(f"  author: {AUTHOR}\n", "") == expected


def test_a_flow_mapping_is_edited_in_its_own_style() -> None:
    file = 'metadata: {id: "did:nuwa:cap:note@1.0.0", name: Note}\n'
    done = prepare(file.encode(), author=AUTHOR, publisher=None).decode()
    assert done == file.replace('0",', f'0", author: {AUTHOR}, signature: z,')
    assert signing.attach(done.encode(), b"\1").decode() == done.replace("z,", "z2,")


def test_a_file_that_ends_behind_its_id_is_edited_too() -> None:
    done = prepare(f"metadata:\n  id: {URI}".encode(), author=AUTHOR, publisher=None)
    assert done.decode() == f"metadata:\n  id: {URI}\n  author: {AUTHOR}\n  signature: z"


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("", Reason.YAML_SYNTAX),
        ("a: [", Reason.YAML_SYNTAX),
        ("metadata: 1\n", Reason.MISSING_FIELD),
        ("other: {}\n", Reason.MISSING_FIELD),
        ("metadata:\n  name: Note\n", Reason.MISSING_FIELD),
        ("metadata:\n  id: a\n  id: b\n", Reason.DUPLICATE_KEY),
        ("metadata:\n  id: a\n  signature: |\n    z1\n", Reason.SIGNATURE_ENCODING),
        ("metadata:\n  id: a\n  signature:\n    z1\n", Reason.SIGNATURE_ENCODING),
        ("metadata:\n  id: a\n  signature: z1\n    z2\n", Reason.SIGNATURE_ENCODING),
        ("metadata:\n  id: a\n  signature: [z1]\n", Reason.SIGNATURE_ENCODING),
        ("metadata:\n  id: a\n  signature: {a: z1}\n", Reason.SIGNATURE_ENCODING),
        ("metadata:\n  id: |\n    a\n", Reason.SIGNATURE_ENCODING),
    ],
)
def test_a_file_that_cannot_be_edited_is_refused(file: str, reason: Reason) -> None:
    with pytest.raises(InvalidInput) as caught:
        prepare(file.encode(), author=AUTHOR, publisher=None)
    assert (caught.value.details or {})["reason"] == reason


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", Reason.UNSIGNED),
        ("signature: 'z1'", Reason.SIGNATURE_ENCODING),
        ('signature: "z1"', Reason.SIGNATURE_ENCODING),
        ("signature: |\n    z1", Reason.SIGNATURE_ENCODING),
        ("signature: z1\n    z2", Reason.SIGNATURE_ENCODING),
        ("signature: z1\n  signature: z1", Reason.DUPLICATE_KEY),
        ("signature: &a z1", Reason.YAML_FEATURE),
        ("signature: !!str z1", Reason.YAML_FEATURE),
    ],
)
def test_a_signature_that_is_not_one_plain_value_is_not_cut_out(line: str, reason: Reason) -> None:
    file = FILE.replace("  name:", f"  {line}\n  name:")
    with pytest.raises(InvalidInput) as caught:
        signing.signing_input(file.encode(), URI)
    assert (caught.value.details or {})["reason"] == reason


def test_attaching_to_a_file_that_was_not_prepared_is_refused() -> None:
    for file in (FILE, FILE.replace("  name:", "  signature:\n  name:")):
        with pytest.raises(InvalidInput):
            signing.attach(file.encode(), bytes(64))


def test_a_publisher_that_would_not_be_read_back_is_refused() -> None:
    for publisher in ("1", "a # b", "[x]"):
        with pytest.raises(InvalidInput) as caught:
            prepare(FILE.encode(), author=AUTHOR, publisher=publisher)
        assert (caught.value.details or {})["reason"] == Reason.SIGNATURE_ENCODING


def test_a_file_that_is_only_remarked_on_is_edited() -> None:
    file = FILE.replace("  name:", "  version: 1.10\n  name:")
    done = prepare(file.encode(), author=AUTHOR, publisher=PUBLISHER)
    assert done.decode() == prepared().decode().replace("  name:", "  version: 1.10\n  name:")


def test_an_author_that_cannot_sign_is_refused_before_the_file_is_edited() -> None:
    with pytest.raises(InvalidInput):
        prepare(FILE.encode(), author="did:web:example.com#key", publisher=None)


@pytest.mark.parametrize("text", ["", "z0", "zO", "mAQ", "1", "Z1", "z é", "z" + "2" * 600])
def test_a_signature_in_another_encoding_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        signing.decode_signature(text)
    assert (caught.value.details or {})["reason"] == Reason.SIGNATURE_ENCODING


@given(st.binary(max_size=65))
def test_a_signature_survives_writing_and_reading(signature: bytes) -> None:
    assert signing.decode_signature(signing.encode_signature(signature)) == signature


MESSAGE = b"ACP-SIG-V1\ndid:nuwa:cap:note@1.0.0\n" + b"0" * 64


def test_an_ed25519_author_signs_the_input_itself() -> None:
    signature = signing.sign_ed25519(PRIVATE, MESSAGE)
    signing.verify_signature(AUTHOR, MESSAGE, signature)
    with pytest.raises(VerificationFailure):
        signing.verify_signature(AUTHOR, MESSAGE + b"x", signature)


@pytest.mark.parametrize("algorithm", [Algorithm.SECP256K1, Algorithm.P256])
def test_a_curve_author_signs_the_sha256_with_a_low_s(algorithm: Algorithm) -> None:
    is_koblitz = algorithm is Algorithm.SECP256K1
    private = ec.derive_private_key(7, ec.SECP256K1() if is_koblitz else ec.SECP256R1())
    r, s = decode_dss_signature(private.sign(MESSAGE, ec.ECDSA(hashes.SHA256())))
    order = signing.ORDERS[algorithm]
    low, high = min(s, order - s), max(s, order - s)
    point = private.public_key().public_bytes(Encoding.X962, PublicFormat.CompressedPoint)
    prefix = b"\xe7\x01" if is_koblitz else b"\x80\x24"
    author = did.did_url("did:key:" + encode_multibase(prefix + point))
    signing.verify_signature(author, MESSAGE, r.to_bytes(32, "big") + low.to_bytes(32, "big"))
    with pytest.raises(InvalidInput):
        signing.verify_signature(author, MESSAGE, r.to_bytes(32, "big") + high.to_bytes(32, "big"))


def test_an_account_signs_as_its_wallet_does() -> None:
    signature = signing.sign_eip191(ACCOUNT, MESSAGE)
    signing.verify_signature(PKH_AUTHOR, MESSAGE, signature)
    other = did.did_url(did.pkh(31337, Account.from_key(bytes([8]) * 32).address))
    for author, message in ((other, MESSAGE), (PKH_AUTHOR, MESSAGE + b"x")):
        with pytest.raises(VerificationFailure):
            signing.verify_signature(author, message, signature)


@pytest.mark.parametrize("v", [0, 1, 26, 29, 35, 36, 255])
def test_a_recovery_byte_other_than_27_and_28_is_refused(v: int) -> None:
    signature = signing.sign_eip191(ACCOUNT, MESSAGE)
    with pytest.raises(InvalidInput):
        signing.verify_signature(PKH_AUTHOR, MESSAGE, signature[:64] + bytes([v]))


def test_the_high_s_twin_of_an_account_signature_is_refused() -> None:
    signature = signing.sign_eip191(ACCOUNT, MESSAGE)
    s = ORDER - int.from_bytes(signature[32:64], "big")
    twin = signature[:32] + s.to_bytes(32, "big") + bytes([55 - signature[64]])
    with pytest.raises(InvalidInput):
        signing.verify_signature(PKH_AUTHOR, MESSAGE, twin)


@pytest.mark.parametrize(
    ("over", "why"), [(0, Reason.BAD_SIGNATURE), (1, Reason.SIGNATURE_ENCODING)]
)
def test_the_lower_half_of_s_ends_with_half_the_order(over: int, why: Reason) -> None:
    signature = (1).to_bytes(32, "big") + (ORDER // 2 + over).to_bytes(32, "big") + bytes([27])
    assert outcome(did.resolve_key(PKH_AUTHOR), MESSAGE, signature) is why


@pytest.mark.parametrize("r", [1, 5])  # 5 is the x of no point of the curve
def test_a_signature_from_which_no_key_or_another_one_follows_is_refused(r: int) -> None:
    signature = r.to_bytes(32, "big") + (1).to_bytes(32, "big") + bytes([27])
    assert outcome(did.resolve_key(PKH_AUTHOR), MESSAGE, signature) is Reason.BAD_SIGNATURE


@given(st.binary(max_size=70) | st.binary(min_size=64, max_size=65))
def test_a_random_signature_is_refused_with_a_reason(signature: bytes) -> None:
    for author in (AUTHOR, PKH_AUTHOR):
        why = outcome(did.resolve_key(author), MESSAGE, signature)
        assert why in (Reason.BAD_SIGNATURE, Reason.SIGNATURE_ENCODING)


@given(st.binary(min_size=32, max_size=32), st.sampled_from([27, 28]))
def test_an_account_signature_with_any_r_is_refused_with_a_reason(r: bytes, v: int) -> None:
    signature = r + (1).to_bytes(32, "big") + bytes([v])
    why = outcome(did.resolve_key(PKH_AUTHOR), MESSAGE, signature)
    assert why in (Reason.BAD_SIGNATURE, Reason.SIGNATURE_ENCODING)
