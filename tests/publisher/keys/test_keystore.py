"""Key files: encrypted, private, never overwritten; passphrases from where they are safe."""

from __future__ import annotations

import json
import os
import pickle
import traceback

import pytest
from eth_account import Account
from hypothesis import given
from hypothesis import strategies as st

from capdex import signing
from capdex.errors import Code, Refused, UsageError
from capdex_publisher.keys import keystore as keys
from capdex_publisher.keys import public_accounts
from capdex_publisher.keys.secret import Secret, read_passphrase

PASSPHRASE = Secret("correct horse battery staple")
ORDER = signing.ORDERS[signing.Algorithm.SECP256K1]
MNEMONIC = "test test test test test test test test test test test junk"


def test_an_account_is_read_back_by_its_passphrase(tmp_path):
    path = tmp_path / "account.json"
    account = keys.create_account(path, PASSPHRASE, light=True)
    assert keys.load_account(path, PASSPHRASE).key == account.key
    assert keys.read_address(path) == account.address
    assert path.stat().st_mode & 0o777 == 0o600


def test_other_wallets_open_the_keystore(tmp_path):
    path = tmp_path / "account.json"
    account = keys.create_account(path, PASSPHRASE, light=True)
    assert Account.decrypt(json.loads(path.read_text()), PASSPHRASE.reveal()) == account.key


@pytest.mark.parametrize(("kdf", "work"), [("scrypt", 1024), ("pbkdf2", 1000)])
def test_keystores_of_other_wallets_are_opened(tmp_path, kdf, work):
    account, path = Account.create(), tmp_path / "theirs.json"
    keystore = Account.encrypt(account.key, PASSPHRASE.reveal(), kdf=kdf, iterations=work)
    for document in (keystore, {"Crypto" if x == "crypto" else x: y for x, y in keystore.items()}):
        path.write_text(json.dumps(document))
        path.chmod(0o600)
        assert keys.load_account(path, PASSPHRASE).key == account.key
        with pytest.raises(Refused) as refusal:
            keys.load_account(path, Secret("wrong"))
        assert refusal.value.code is Code.WRONG_PASSPHRASE


def test_a_did_key_is_read_back_and_names_itself(tmp_path):
    path = tmp_path / "did.json"
    made = keys.create_did_key(path, PASSPHRASE, light=True)
    read = keys.load_did_key(path, PASSPHRASE)
    assert read.did == made.did
    assert read.did.startswith("did:key:z6Mk")
    assert read.private.sign(b"x") == made.private.sign(b"x")
    document = json.loads(path.read_text())
    assert document["kind"] == keys.DID_KEY_KIND
    assert document["did"] == made.did


def test_the_full_work_factor_is_that_of_wallets():
    assert keys.SCRYPT_N == 2**18


@pytest.mark.parametrize("make", [keys.create_account, keys.create_did_key])
def test_a_light_key_takes_a_sixteenth_of_it(tmp_path, make):
    make(path := tmp_path / "key.json", PASSPHRASE, light=True)
    params = json.loads(path.read_text())["crypto"]["kdfparams"]
    assert (params["n"], params["r"], params["p"]) == (2**14, 8, 1)


@pytest.mark.parametrize("load", [keys.load_account, keys.load_did_key])
@pytest.mark.parametrize("make", [keys.create_account, keys.create_did_key])
def test_a_wrong_passphrase_is_refused_and_a_foreign_file_is_unreadable(tmp_path, load, make):
    path = tmp_path / "key.json"
    make(path, PASSPHRASE, light=True)
    with pytest.raises((Refused, UsageError)) as refusal:
        load(path, Secret("wrong"))
    same_kind = load.__name__.removeprefix("load") == make.__name__.removeprefix("create")
    # A DID key's crypto section is a keystore's, so there too the passphrase is what is wrong.
    expected = {Code.WRONG_PASSPHRASE} if same_kind else {Code.WRONG_PASSPHRASE, Code.UNREADABLE}
    assert refusal.value.code in expected


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o660, 0o644])
def test_a_key_file_that_others_can_touch_is_refused(tmp_path, mode):
    path = tmp_path / "account.json"
    keys.create_account(path, PASSPHRASE, light=True)
    path.chmod(mode)
    with pytest.raises(Refused) as refusal:
        keys.load_account(path, PASSPHRASE)
    assert refusal.value.code is Code.KEY_EXPOSED
    assert refusal.value.fix == f"chmod 600 {path}"


@pytest.mark.parametrize("make", [keys.create_account, keys.create_did_key])
def test_a_key_file_is_never_overwritten(tmp_path, make):
    path = tmp_path / "key.json"
    make(path, PASSPHRASE, light=True)
    before = path.read_bytes()
    with pytest.raises(UsageError, match="exists already"):
        make(path, PASSPHRASE, light=True)
    assert path.read_bytes() == before


def test_what_stands_where_a_folder_of_a_key_file_would_be_is_named(tmp_path):
    (tmp_path / "note").touch()
    with pytest.raises(UsageError, match="note exists already"):
        keys.create_did_key(tmp_path / "note" / "key.json", PASSPHRASE, light=True)


def test_an_empty_passphrase_protects_nothing_and_is_refused(tmp_path):
    with pytest.raises(UsageError):
        keys.create_account(tmp_path / "account.json", Secret(""), light=True)
    assert not (tmp_path / "account.json").exists()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        "{",
        "[" * 50_000,
        '{"crypto": 1, "version": 3}',
        '{"crypto": {"kdf": "scrypt", "kdfparams": {"n": "x"}}, "version": 3}',
        '{"crypto": {"kdf": "scrypt", "kdfparams": {"n": 1e99, "r": 8, "p": 1}}, "version": 3}',
        '{"crypto": {"kdf": "scrypt", "kdfparams": {"n": 4096}}, "version": 3}',
        '{"crypto": {"kdf": "pbkdf2", "kdfparams": {"c": 99999999999}}, "version": 3}',
        '{"crypto": {"kdf": "pbkdf2", "kdfparams": {"c": 1, "dklen": 65, "prf": "hmac-sha256", '
        '"salt": "00"}, "cipher": "aes-128-ctr", "cipherparams": {"iv": "00"}, "ciphertext": "00", '
        '"mac": "00"}, "version": 3}',  # each 32 bytes more take all rounds again
    ],
)
def test_what_is_no_keystore_is_unreadable(tmp_path, content):
    path = tmp_path / "key.json"
    path.write_text(content)
    path.chmod(0o600)
    for load in (keys.load_account, keys.load_did_key):
        with pytest.raises(UsageError) as refusal:
            load(path, PASSPHRASE)
        assert refusal.value.code is Code.UNREADABLE
        assert "restore" in refusal.value.fix


@pytest.mark.parametrize("load", [keys.load_account, keys.load_did_key])
def test_a_passphrase_of_the_wrong_type_is_not_blamed_on_the_file(tmp_path, load):
    path = tmp_path / "key.json"
    (keys.create_account if load is keys.load_account else keys.create_did_key)(
        path, PASSPHRASE, light=True
    )
    with pytest.raises(AttributeError, match="'str' object has no attribute 'reveal'"):
        load(path, PASSPHRASE.reveal())


def test_a_passphrase_that_a_terminal_sent_in_another_encoding_opens_its_key(tmp_path):
    path, typed = tmp_path / "key.json", Secret(b"caf\xe9".decode("utf-8", "surrogateescape"))
    made = keys.create_account(path, typed, light=True)
    assert keys.load_account(path, typed).address == made.address


def test_a_keystore_that_names_another_account_is_not_believed(tmp_path):
    path = tmp_path / "account.json"
    keys.create_account(path, PASSPHRASE, light=True)
    forged = json.loads(path.read_text()) | {"address": "00" * 20}
    path.write_text(json.dumps(forged))
    with pytest.raises(UsageError, match="not a key file"):
        keys.load_account(path, PASSPHRASE)


def test_a_missing_key_file_is_unreadable(tmp_path):
    with pytest.raises(UsageError) as refusal:
        keys.load_account(tmp_path / "none.json", PASSPHRASE)
    assert refusal.value.code is Code.UNREADABLE


def test_the_public_accounts_are_those_of_the_well_known_mnemonic():
    Account.enable_unaudited_hdwallet_features()
    derived = {
        Account.from_mnemonic(MNEMONIC, account_path=f"m/44'/60'/0'/0/{n}").address
        for n in range(10)
    }
    assert derived == public_accounts.PUBLIC_ACCOUNTS


def test_a_public_account_is_refused_but_on_the_development_chain():
    for address in public_accounts.PUBLIC_ACCOUNTS:
        public_accounts.check_account(address, 31337)
        with pytest.raises(Refused) as refusal:
            public_accounts.check_account(address, 1)
        assert refusal.value.code is Code.KEY_EXPOSED
    public_accounts.check_account(Account.create().address, 1)


# ------------------------------------------------------------------------------- passphrases


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"abc", "abc"),
        (b"abc\n", "abc"),
        (b"abc\r\n", "abc"),
        (b"abc\n\n", "abc\n"),
        (b" a ", " a "),
    ],
)
def test_one_line_end_is_not_part_of_a_passphrase(tmp_path, raw, expected):
    path = tmp_path / "passphrase"
    path.write_bytes(raw)
    path.chmod(0o600)
    assert read_passphrase(file=path).reveal() == expected


def test_a_passphrase_comes_from_a_descriptor():
    reader, writer = os.pipe()
    os.write(writer, "pässwörd\n".encode())
    os.close(writer)
    assert read_passphrase(fd=reader).reveal() == "pässwörd"
    os.close(reader)
    with pytest.raises(UsageError):
        read_passphrase(fd=reader)


def test_a_passphrase_file_that_others_can_read_is_refused(tmp_path):
    path = tmp_path / "passphrase"
    path.write_bytes(b"abc")
    path.chmod(0o644)
    with pytest.raises(Refused) as refusal:
        read_passphrase(file=path)
    assert refusal.value.code is Code.KEY_EXPOSED


@pytest.mark.parametrize("raw", [b"\xff\xfe", b"x" * 5000])
def test_what_is_no_passphrase_is_unreadable(tmp_path, raw):
    path = tmp_path / "passphrase"
    path.write_bytes(raw)
    path.chmod(0o600)
    with pytest.raises(UsageError) as refusal:
        read_passphrase(file=path)
    assert refusal.value.code is Code.UNREADABLE
    reader, writer = os.pipe()
    os.write(writer, raw)
    os.close(writer)
    with pytest.raises(UsageError):
        read_passphrase(fd=reader)
    os.close(reader)


def test_without_a_way_to_ask_nobody_consents():
    assert read_passphrase(prompt=lambda: "asked").reveal() == "asked"
    with pytest.raises(Refused) as refusal:
        read_passphrase()
    assert refusal.value.code is Code.NO_CONSENT


def test_secrets_do_not_show_themselves(tmp_path):
    secret = Secret("hunter2")
    key = keys.create_did_key(tmp_path / "did.json", secret, light=True)
    account = keys.create_account(tmp_path / "account.json", secret, light=True)
    shown = f"{secret} {secret!r} {[secret]} {key!r} {account!r}"
    assert "hunter2" not in shown
    assert account.key.hex() not in shown
    assert key.private.private_bytes_raw().hex() not in shown
    with pytest.raises(TypeError):
        pickle.dumps(secret)


def test_a_failing_load_shows_no_secret(tmp_path):
    path = tmp_path / "account.json"
    account = keys.create_account(path, PASSPHRASE, light=True)
    wrong = Secret("".join(["hun", "ter2"]))  # not in a source line that a traceback quotes
    try:
        keys.load_account(path, wrong)
    except Refused as error:
        text = "".join(traceback.format_exception(error)) + repr(error) + str(error.to_json())
        assert wrong.reveal() not in text
        assert account.key.hex() not in text
    else:
        pytest.fail("a wrong passphrase opened the file")


@given(st.binary(min_size=32, max_size=32).filter(lambda raw: 0 < int.from_bytes(raw) < 2**255))
def test_a_private_key_is_read_in_any_usual_form(raw):
    account = Account.from_key(raw)
    for text in (raw.hex(), "0x" + raw.hex().upper(), f"  {raw.hex()}\n"):
        assert keys.parse_private_key(Secret(text), "here").address == account.address


@given(st.one_of(st.text(), st.binary(max_size=40).map(bytes.hex).filter(lambda x: len(x) != 64)))
def test_what_is_no_private_key_is_not_shown(text):
    with pytest.raises(UsageError) as refusal:
        keys.parse_private_key(Secret(text), "stdin")
    assert refusal.value.code is Code.UNREADABLE
    assert str(refusal.value.to_json()).count(text) == 0 or len(text) < 8


@pytest.mark.parametrize("number", [0, ORDER, 2**256 - 1])
def test_a_number_outside_the_curve_is_no_key(number):
    with pytest.raises(UsageError) as refusal:
        keys.parse_private_key(Secret(f"{number:064x}"), "stdin")
    assert f"{number:x}" not in str(refusal.value.to_json()) or not number


def test_what_a_job_of_ci_does_not_get_is_told_as_empty(tmp_path):
    path = tmp_path / "account.json"
    keys.create_account(path, PASSPHRASE, light=True)
    with pytest.raises(Refused) as refusal:
        keys.load_account(path, Secret(""))
    assert "empty" in refusal.value.why
    path.write_bytes(b"")
    with pytest.raises(UsageError) as unread:
        keys.read_address(path)
    assert unread.value.why == "it is empty"
