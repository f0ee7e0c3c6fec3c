"""Signing package files: deterministic, in place, byte for byte otherwise."""

from __future__ import annotations

import pytest
from eth_account import Account

from capdex import package
from capdex.errors import Code, InvalidInput, Refused, UsageError
from capdex.manifest.manifest import read
from capdex_publisher.authoring.scaffold import scaffold
from capdex_publisher.authoring.sign import sign, sign_file
from capdex_publisher.authoring.validate import PackageFile, announcement_of
from capdex_publisher.keys.keystore import create_did_key
from capdex_publisher.keys.secret import Secret
from capdex_publisher.keys.signer import LocalSigner

ACCOUNT = LocalSigner(Account.from_key(b"\x07" * 32).key)
ANVIL = LocalSigner(
    bytes.fromhex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
)


@pytest.fixture
def did_key(tmp_path):
    return create_did_key(tmp_path / "did.json", Secret("passphrase"), light=True)


@pytest.fixture
def source():
    return scaffold("note", version="1.0.0").encode()


def verified(data, chain_id=1):
    reading = read(data)
    announcement = announcement_of(reading, chain_id=chain_id, publisher=ACCOUNT.address)
    return package.verify(announcement, reading)


async def test_an_account_signs_for_itself(source):
    judged = verified(await sign(source, ACCOUNT, chain_id=1))
    assert judged.signer == f"did:pkh:eip155:1:{ACCOUNT.address}#blockchainAccountId"


async def test_a_did_key_names_the_account_that_will_publish(source, did_key):
    judged = verified(await sign(source, did_key, chain_id=1, publisher=ACCOUNT.address.lower()))
    assert judged.signer.startswith(did_key.did)
    assert judged.manifest.publisher == f"eip155:1:{ACCOUNT.address}"


async def test_a_did_key_without_an_account_to_name_is_a_usage_error(source, did_key):
    with pytest.raises(UsageError):
        await sign(source, did_key, chain_id=1)
    named = await sign(source, did_key, chain_id=1, publisher=ACCOUNT.address)
    assert await sign(named, did_key, chain_id=1) == named


async def test_signing_again_changes_nothing(source, did_key):
    for signer in (ACCOUNT, did_key):
        once = await sign(source, signer, chain_id=1, publisher=ACCOUNT.address)
        assert await sign(once, signer, chain_id=1, publisher=ACCOUNT.address) == once


async def test_a_changed_file_is_signed_anew(source, did_key):
    once = await sign(source, ACCOUNT, chain_id=1)
    changed = once.replace(b"one task", b"another task")
    assert verified(await sign(changed, ACCOUNT, chain_id=1)).data != once
    by_other = await sign(changed, did_key, chain_id=1, publisher=ACCOUNT.address)
    assert verified(by_other).signer.startswith("did:key:")


async def test_everything_but_the_signature_stays_as_it_was(source):
    signed = await sign(source, ACCOUNT, chain_id=1)
    kept = [
        line
        for line in signed.splitlines()
        if not line.strip().startswith((b"author:", b"signature:"))
    ]
    assert kept == source.splitlines()


async def test_windows_line_ends_become_unix_ones_before_signing(source):
    signed = await sign(source.replace(b"\n", b"\r\n"), ACCOUNT, chain_id=1)
    assert b"\r" not in signed
    assert signed == await sign(source, ACCOUNT, chain_id=1)


async def test_a_file_with_problems_is_refused_with_all_of_them(source):
    broken = source.replace(b"type: keyword", b"type: keywrod").replace(
        b"name: get_answer", b"name: 'get answer'"
    )
    with pytest.raises(InvalidInput) as refusal:
        await sign(broken, ACCOUNT, chain_id=1)
    assert refusal.value.details is not None
    assert len(refusal.value.details["problems"]) >= 2
    with pytest.raises(InvalidInput):
        await sign(b"[", ACCOUNT, chain_id=1)
    with pytest.raises(InvalidInput):
        await sign(b"", ACCOUNT, chain_id=1)


async def test_a_broken_signature_is_replaced(source):
    broken = source.replace(b"metadata:\n", b'metadata:\n  signature: "zzz"\n')
    assert verified(await sign(broken, ACCOUNT, chain_id=1))


async def test_a_test_account_signs_on_the_development_chain_alone(source, did_key):
    assert read(await sign(source, ANVIL, chain_id=31337)).manifest
    for signer in (ANVIL, did_key):
        with pytest.raises(Refused) as refusal:
            await sign(source, signer, chain_id=1, publisher=ANVIL.address)
        assert refusal.value.code is Code.KEY_EXPOSED


async def test_a_file_is_signed_in_place_and_keeps_its_mode(tmp_path, source):
    path = tmp_path / "note.acp.yaml"
    path.write_bytes(source)
    path.chmod(0o640)
    first = await sign_file(PackageFile.read(path), ACCOUNT, chain_id=1)
    assert path.read_bytes() == first.data
    assert str(verified(first.data).manifest.uri) == "did:nuwa:cap:note@1.0.0"
    assert path.stat().st_mode & 0o777 == 0o640
    assert await sign_file(PackageFile.read(path), ACCOUNT, chain_id=1) == first
    assert PackageFile.read(str(path)) == PackageFile.read(path)


async def test_a_file_that_cannot_be_read_or_is_too_large_is_left_alone(tmp_path):
    with pytest.raises(UsageError) as missing:
        PackageFile.read(tmp_path / "none.acp.yaml")
    assert missing.value.code is Code.UNREADABLE
    path = tmp_path / "large.acp.yaml"
    path.write_bytes(b"#" * 300_000)
    with pytest.raises(InvalidInput) as large:
        PackageFile.read(path)
    assert large.value.code is Code.TOO_LARGE
