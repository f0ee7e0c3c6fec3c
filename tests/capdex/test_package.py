"""Judging packages: every verdict and every reason, and no byte that does not count (P3-P6)."""

import hashlib
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from eth_account import Account
from hypothesis import given
from hypothesis import strategies as st

from capdex import did, signing
from capdex.errors import VerificationFailure
from capdex.ipld.cid import Cid
from capdex.package import (
    RejectedPackage,
    VerifiedPackage,
    claimed_uri,
    judge,
    judge_announcement,
    verify,
)
from capdex.problems import Reason, Severity, Verdict
from capdex.registry.events import Announcement
from capdex.uri import CapabilityURI

CHAIN_ID = 31337
PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
AUTHOR = did.did_url(did.did_key(PRIVATE.public_key().public_bytes_raw()))
ACCOUNT = Account.from_key(bytes([7]) * 32)
STRANGER = Account.from_key(bytes([8]) * 32)
PKH_AUTHOR = did.did_url(did.pkh(CHAIN_ID, ACCOUNT.address))
PUBLISHER = did.caip10(CHAIN_ID, ACCOUNT.address)
URI = "did:nuwa:cap:greeter@1.0.0"

FILE = f"""\
# Greets.
metadata:
  id: {URI}
  name: "Greeter"
  description: "Says hello — 你好."
  triggers:
    - {{type: keyword, value: "hello"}}
schema: |
  {{"$schema": "https://json-schema.org/draft/2020-12/schema",
   "$id": "did:nuwa:state:greeter#v1", "type": "object"}}
prompt: |
  Say hello.
"""


def signed(
    file: str = FILE, *, author: str = AUTHOR, publisher: str | None = PUBLISHER, uri: str = URI
) -> bytes:
    """The file, prepared and signed by the key that `author` names."""
    data = signing.prepare(file.encode(), author=author, publisher=publisher)
    message = signing.signing_input(data, uri)
    if author == AUTHOR:
        return signing.attach(data, signing.sign_ed25519(PRIVATE, message))
    return signing.attach(data, signing.sign_eip191(ACCOUNT, message))


def announce(data: bytes, **changes: Any) -> Announcement:
    """What the chain says of these bytes."""
    digest = hashlib.sha256(data).digest()
    event = Announcement(CHAIN_ID, ACCOUNT.address, URI, "1.0.0", str(Cid.raw(digest)), digest)
    return event._replace(**changes)


def rejection(data: bytes, announcement: Announcement | None = None) -> RejectedPackage:
    judged = judge(announcement or announce(data), data)
    assert isinstance(judged, RejectedPackage)
    assert judged.checks
    assert [check.ok for check in judged.checks] == [True] * (len(judged.checks) - 1) + [False]
    return judged


def verdict(data: bytes, announcement: Announcement | None = None) -> tuple[Verdict, Reason]:
    judged = rejection(data, announcement)
    return judged.verdict, judged.reason


SIGNED = signed()


def test_a_package_signed_by_its_author_and_bound_to_its_publisher_is_verified() -> None:
    package = verify(announce(SIGNED), SIGNED)
    assert isinstance(package, VerifiedPackage)
    assert package.verdict is Verdict.VERIFIED
    assert (package.signer, package.data) == (AUTHOR, SIGNED)
    assert str(package.manifest.uri) == URI
    names = [check.name for check in package.checks]
    assert names == ["event", "cid", "sha256", "manifest", "id", "signature", "binding"]
    assert all(check.ok for check in package.checks)
    assert not [problem for problem in package.problems if problem.severity is Severity.ERROR]


@pytest.mark.parametrize("publisher", [None, PUBLISHER])
def test_an_account_that_signs_and_publishes_needs_no_publisher_line(publisher: str | None) -> None:
    data = signed(author=PKH_AUTHOR, publisher=publisher)
    assert verify(announce(data), data).signer == PKH_AUTHOR


def test_a_verified_package_is_made_by_judging_alone() -> None:
    package = verify(announce(SIGNED), SIGNED)
    with pytest.raises(TypeError):
        replace(package, mint=object())


def test_the_verdict_is_the_same_every_time() -> None:
    assert judge(announce(SIGNED), SIGNED) == judge(announce(SIGNED), SIGNED)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"cap_uri": "did:nuwa:cap:greeter"}, Reason.BAD_EVENT),
        ({"cap_uri": "did:nuwa:cap:greeter@^1"}, Reason.BAD_EVENT),
        ({"cap_uri": "did:nuwa:cap:Greeter@1.0.0"}, Reason.BAD_EVENT),
        ({"cap_uri": ""}, Reason.BAD_EVENT),
        ({"cap_uri": "did:nuwa:cap:greeter@1.0", "semver": "1.0"}, Reason.BAD_EVENT),
        ({"cap_uri": "did:nuwa:cap:greeter@01.0.0", "semver": "01.0.0"}, Reason.BAD_EVENT),
        ({"cap_uri": "did:nuwa:cap:greeter@", "semver": ""}, Reason.BAD_EVENT),
        ({"cap_uri": "did:nuwa:CAP:greeter@1.0.0"}, Reason.BAD_EVENT),
        ({"semver": "1.0.1"}, Reason.VERSION_MISMATCH),
        ({"semver": "v1.0.0"}, Reason.VERSION_MISMATCH),
        ({"semver": ""}, Reason.VERSION_MISMATCH),
        ({"cid": ""}, Reason.BAD_CID),
        ({"cid": str(Cid.of(SIGNED)).upper()}, Reason.BAD_CID),
        ({"cid": f"/ipfs/{Cid.of(SIGNED)}"}, Reason.BAD_CID),
        ({"cid": str(Cid.of(b"other"))}, Reason.CID_MISMATCH),
        ({"sha256": bytes(32)}, Reason.CID_MISMATCH),
    ],
)
def test_an_announcement_that_contradicts_itself_is_refused_before_any_fetch(
    changes: dict[str, Any], reason: Reason
) -> None:
    announcement = announce(SIGNED, **changes)
    uri, early = claimed_uri(announcement)
    assert early is not None
    assert early == judge_announcement(announcement)
    assert (uri is None) == (reason is Reason.BAD_EVENT)
    assert (early.verdict, early.reason) == (Verdict.MISMATCH, reason)
    assert verdict(SIGNED, announcement) == (Verdict.MISMATCH, reason)


def test_a_sound_announcement_may_go_on() -> None:
    announcement = announce(SIGNED)
    assert judge_announcement(announcement) is None
    assert claimed_uri(announcement) == (CapabilityURI.exact(URI), None)


def test_a_file_of_several_blocks_is_left_to_who_fetches_it() -> None:
    announcement = announce(SIGNED, cid=Cid.from_bytes(b"\x01\x70\x12\x20" + bytes(32)).text)
    assert claimed_uri(announcement) == (CapabilityURI.exact(URI), None)


@pytest.mark.parametrize("data", [b"", b"other", SIGNED + b"\n", SIGNED[:-1], SIGNED[1:]])
def test_other_bytes_than_announced_are_a_mismatch(data: bytes) -> None:
    assert verdict(data, announce(SIGNED)) == (Verdict.MISMATCH, Reason.SHA256_MISMATCH)


@given(st.integers(0, len(SIGNED) - 1), st.integers(1, 255))
def test_no_byte_of_a_signed_package_can_change(index: int, flip: int) -> None:
    data = SIGNED[:index] + bytes([SIGNED[index] ^ flip]) + SIGNED[index + 1 :]
    assert verdict(data, announce(SIGNED)) == (Verdict.MISMATCH, Reason.SHA256_MISMATCH)
    # Whoever announces the changed bytes anew does not get them verified either.
    assert isinstance(judge(announce(data), data), RejectedPackage)


def test_a_comment_is_signed_too() -> None:
    changed = SIGNED.replace(b"# Greets.", b"# Greet!.")
    assert verdict(changed) == (Verdict.INVALID, Reason.BAD_SIGNATURE)


@pytest.mark.parametrize("uri", ["did:nuwa:cap:greeter@1.0.1", "did:nuwa:cap:other@1.0.0"])
def test_a_package_with_another_id_than_announced_is_a_mismatch(uri: str) -> None:
    data = signed(FILE.replace(URI, uri), uri=uri)
    assert verdict(data) == (Verdict.MISMATCH, Reason.ID_MISMATCH)


def test_an_unsigned_package_says_so() -> None:
    data = FILE.encode()
    judged = rejection(data)
    assert (judged.verdict, judged.reason) == (Verdict.UNSIGNED, Reason.UNSIGNED)
    assert judged.manifest is not None
    assert judged.signer is None


def test_a_signature_by_another_key_is_invalid() -> None:
    other = Ed25519PrivateKey.from_private_bytes(bytes(32))
    data = signing.prepare(FILE.encode(), author=AUTHOR, publisher=PUBLISHER)
    forged = signing.attach(data, signing.sign_ed25519(other, signing.signing_input(data, URI)))
    assert verdict(forged) == (Verdict.INVALID, Reason.BAD_SIGNATURE)


def test_a_signature_made_for_another_version_is_invalid() -> None:
    data = signing.prepare(FILE.encode(), author=AUTHOR, publisher=PUBLISHER)
    message = signing.signing_input(data, "did:nuwa:cap:greeter@1.0.1")
    moved = signing.attach(data, signing.sign_ed25519(PRIVATE, message))
    assert verdict(moved) == (Verdict.INVALID, Reason.BAD_SIGNATURE)


def test_a_signed_package_of_another_account_is_signed_and_not_verified() -> None:
    judged = rejection(SIGNED, announce(SIGNED, publisher=STRANGER.address))
    assert (judged.verdict, judged.reason) == (Verdict.SIGNED, Reason.NOT_BOUND)
    assert judged.signer == AUTHOR
    assert judged.manifest is not None


def test_a_package_that_names_no_account_is_signed_and_not_verified() -> None:
    assert verdict(signed(publisher=None)) == (Verdict.SIGNED, Reason.NOT_BOUND)


@pytest.mark.parametrize("author", [AUTHOR, PKH_AUTHOR])
def test_a_package_bound_on_another_chain_is_not_verified_here(author: str) -> None:
    data = signed(author=author)
    assert verdict(data, announce(data, chain_id=1)) == (Verdict.SIGNED, Reason.NOT_BOUND)


@pytest.mark.parametrize(
    "changes", [{"chain_id": 0}, {"publisher": "junk"}, {"publisher": "0x" + "zz" * 20}]
)
def test_an_announcement_by_no_account_binds_nothing_and_raises_nothing(
    changes: dict[str, Any],
) -> None:
    assert verdict(SIGNED, announce(SIGNED, **changes)) == (Verdict.SIGNED, Reason.NOT_BOUND)


def swap(old: str, new: str) -> bytes:
    assert old.encode() in SIGNED
    return SIGNED.replace(old.encode(), new.encode())


VALUE = SIGNED.split(b"signature: ")[1].split(b"\n")[0].decode()
MULTIBASE = AUTHOR.split("#")[1]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (swap(f"  author: {AUTHOR}\n", ""), Reason.MISSING_AUTHOR),
        (swap(f"#{MULTIBASE}", "#key-1"), Reason.BAD_AUTHOR),
        (swap(f"#{MULTIBASE}", ""), Reason.BAD_AUTHOR),
        (swap(VALUE, VALUE.replace("z", "m", 1)), Reason.SIGNATURE_ENCODING),
        (swap(VALUE, "z"), Reason.SIGNATURE_ENCODING),
        (swap(VALUE, VALUE + "2"), Reason.SIGNATURE_ENCODING),
        (swap(VALUE, f'"{VALUE}"'), Reason.SIGNATURE_ENCODING),
        (swap(VALUE, f"{VALUE}\n  signature: {VALUE}"), Reason.DUPLICATE_KEY),
        (swap("# Greets.", "# Gre\u202eets."), Reason.FORBIDDEN_CHARACTER),
        (swap("name: ", "name: &a "), Reason.YAML_FEATURE),
        (swap("metadata:", "metadata: ["), Reason.YAML_SYNTAX),
        (b"\xff" + SIGNED, Reason.NOT_UTF8),
        (SIGNED + b"#" * 256 * 1024, Reason.TOO_LARGE),
        (b"[" * 100_000, Reason.TOO_DEEP),
        (b"a: [" + b"1," * 20_000 + b"]", Reason.TOO_MANY),
        (swap(URI, "did:nuwa:cap:greeter"), Reason.BAD_ID),
        (swap('name: "Greeter"', "name: [1]"), Reason.WRONG_TYPE),
        (swap("type: keyword", "type: telepathy"), Reason.BAD_TRIGGER),
    ],
)  # fmt: skip
def test_an_invalid_package_says_why(data: bytes, expected: Reason) -> None:
    assert verdict(data) == (Verdict.INVALID, expected)


def test_an_author_of_another_did_method_is_unresolvable() -> None:
    data = swap(AUTHOR, "did:web:example.com#key-1")
    assert verdict(data) == (Verdict.UNRESOLVABLE, Reason.UNKNOWN_DID_METHOD)


def test_a_rejection_is_raised_with_its_verdict_and_its_reason() -> None:
    with pytest.raises(VerificationFailure) as caught:
        verify(announce(SIGNED), b"other")
    details = caught.value.details
    assert details is not None
    assert (details["verdict"], details["reason"]) == ("mismatch", "SHA256_MISMATCH")
    assert caught.value.why
    assert caught.value.fix


@given(st.binary(max_size=300))
def test_judging_never_raises_whatever_the_bytes(data: bytes) -> None:
    assert isinstance(judge(announce(data), data), RejectedPackage)


@given(st.text(max_size=60), st.text(max_size=20), st.text(max_size=70), st.binary(max_size=40))
def test_judging_never_raises_whatever_the_announcement(
    cap_uri: str, semver: str, cid: str, sha256: bytes
) -> None:
    event = Announcement(CHAIN_ID, ACCOUNT.address, cap_uri, semver, cid, sha256)
    assert isinstance(judge(event, SIGNED), RejectedPackage)
    assert judge_announcement(event) is not None
    assert claimed_uri(event)[1] == judge_announcement(event)


def test_a_check_is_shown_with_its_name_its_outcome_and_what_was_compared() -> None:
    data = signed()
    (first, *_) = verify(announce(data), data).checks
    assert first.to_json() == {"name": "event", "ok": True, "detail": URI}
    last = rejection(data, announce(data, cid="none")).checks[-1].to_json()
    assert (last["name"], last["ok"]) == ("cid", False)
    assert "none" in last["detail"]
