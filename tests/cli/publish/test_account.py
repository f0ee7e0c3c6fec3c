"""Which account signs: what is typed, then the environment, then what is configured."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account

from capdex_cli.config.settings import user_directories
from capdex_publisher.keys.keystore import store_account
from capdex_publisher.keys.secret import Secret

TYPED, VARIABLE, CONFIGURED, IN_ENVIRONMENT = (
    Account.from_key(bytes([number]) * 32) for number in (1, 2, 3, 4)
)
SIGNER = 'import json; print(json.dumps({{"result": ["{}"]}}))'


def key_file(path: Path, account: Any) -> str:
    store_account(path, account, Secret("passphrase"), light=True)
    return str(path)


def signer(account: Any) -> str:
    """A command that offers one account."""
    return shlex.join([sys.executable, "-c", SIGNER.format(account.address)])


def shown(capdex: Any, *words: str) -> str:
    return str(capdex.json("account", "show", *words)["address"])


def test_what_is_typed_goes_before_the_environment_and_that_before_files(
    capdex: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = user_directories().config_file
    config.parent.mkdir(parents=True, exist_ok=True)
    usual = key_file(folder / "usual.json", CONFIGURED)
    config.write_text(f'keystore = "{usual}"\n', encoding="utf-8")
    assert shown(capdex) == CONFIGURED.address
    other = signer(VARIABLE).replace("\\", "\\\\").replace('"', '\\"')
    config.write_text(f'keystore = "{usual}"\nsigner = "{other}"\n', encoding="utf-8")
    assert shown(capdex) == VARIABLE.address
    monkeypatch.setenv("CAPDEX_KEYSTORE", usual)
    assert shown(capdex) == CONFIGURED.address
    monkeypatch.setenv("CAPDEX_SIGNER", signer(VARIABLE))
    assert shown(capdex) == VARIABLE.address
    monkeypatch.setenv("CAPDEX_PRIVATE_KEY", "0x" + IN_ENVIRONMENT.key.hex())
    assert shown(capdex) == IN_ENVIRONMENT.address
    assert shown(capdex, "--keystore", usual) == CONFIGURED.address
    assert shown(capdex, "--signer", signer(TYPED)) == TYPED.address
    both = capdex("account", "show", "--signer", signer(TYPED), "--keystore", usual)
    assert both.exit_code == 2
    assert "two accounts" in both.stderr


def test_a_named_address_is_not_asked_for(capdex: Any) -> None:
    """No signer runs, so none can fail."""
    words = ("--signer", "/nowhere/signer", "--signer-address", TYPED.address.lower())
    assert shown(capdex, *words) == TYPED.address
    missing = capdex("account", "show", "--signer", "/nowhere/signer")
    assert missing.exit_code == 2
    assert "cannot be started" in missing.stderr


def test_the_address_of_a_signer_that_is_not_named_is_no_other_account(
    capdex: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPDEX_SIGNER_ADDRESS", TYPED.address)
    told = capdex("account", "show", "--keystore", key_file(folder / "k.json", CONFIGURED))
    assert told.exit_code == 2
    assert "signer-address is set, and no signer is" in told.stderr
    assert "set by environment" in told.stderr


def test_a_project_may_name_no_signer(capdex: Any, folder: Path) -> None:
    (folder / "capdex.toml").write_text('signer = "touch made"\n', encoding="utf-8")
    refused = capdex("account", "show")
    assert refused.exit_code == 2
    assert "may not set signer" in refused.stderr
    assert not (folder / "made").exists()


def test_a_key_in_the_environment_is_warned_of_each_time(
    capdex: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPDEX_PRIVATE_KEY", IN_ENVIRONMENT.key.hex())
    for _ in range(2):
        said = capdex("account", "show")
        assert "CAPDEX_PRIVATE_KEY can be read by other programs" in said.stderr
        assert IN_ENVIRONMENT.key.hex() not in said.stdout + said.stderr


@pytest.mark.parametrize("option", ["--keystore", "--signer"])
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_key_in_place_of_its_file_is_not_repeated(
    capdex: Any, option: str, more: tuple[str, ...]
) -> None:
    key = "0x" + "ab" * 32
    refused = capdex(*more, "account", "show", option, key)
    assert refused.exit_code == 2
    assert "64 digits, as of a private key" in refused.stderr
    assert key[2:] not in refused.stderr + refused.stdout


def test_a_key_is_imported_from_stdin_once(capdex: Any, folder: Path) -> None:
    (folder / "pass").write_text("passphrase", encoding="utf-8")
    (folder / "pass").chmod(0o600)
    words = ("account", "import", "--out", "mine.json", "--light", "--passphrase-file", "pass")
    nothing = capdex(*words)
    assert nothing.exit_code == 2
    assert "no private key" in nothing.stderr
    words_of_a_wallet = capdex(*words, stdin="test test test test junk\n")
    assert "the key of one account" in words_of_a_wallet.stderr
    key = "ab" * 32
    for typed in ([key], ["0x" + key], ["--key-fd", key]):
        refused = capdex(*words, *typed)
        assert refused.exit_code == 2
        assert "64 digits" in refused.stderr
        assert key not in refused.stderr
    assert "so high a number" in capdex(*words, "--key-fd", "9" * 11).stderr
    done = capdex(*words, "--json", stdin=TYPED.key.hex() + "\n")
    assert done.exit_code == 0, done.stderr
    assert (folder / "mine.json").stat().st_mode & 0o777 == 0o600
    assert shown(capdex, "--keystore", "mine.json") == TYPED.address
    copy = ("account", "import", "--from", "mine.json", "--passphrase-file", "pass", "--light")
    assert capdex.json(*copy, "--out", "copy.json")["address"] == TYPED.address
    assert capdex(*copy, "--out", "copy.json").exit_code == 2
