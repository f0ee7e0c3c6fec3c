"""Secrets are bound, kept from others, and hidden."""

from __future__ import annotations

import json
import os
import stat
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import keyring
import keyring.backend
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import CapdexError, Code, ExecutionFailed, InvalidInput, Refused
from capdex_router.policy.secrets import HIDDEN, Keyring, SecretFile, Secrets, basic

VALUE = 'p4ss"w/rd + more'


# Chosen before the class below exists: the library would take that for the best one there is.
BEFORE = keyring.get_keyring()


class MemoryKeyring(keyring.backend.KeyringBackend):
    """A backend of the keyring library, for a session that has one."""

    priority = 1

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        assert isinstance(password, str)  # as each real one demands
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.kept.pop((service, username), None) is None:
            raise keyring.errors.PasswordDeleteError


@pytest.fixture(params=["file", "keyring"])
def secrets(request: Any, tmp_path: Path) -> Any:
    path = tmp_path / "new" / "secrets.json"
    if request.param == "file":
        yield Secrets(SecretFile(path))
        return
    keyring.set_keyring(MemoryKeyring())
    yield Secrets(path)
    keyring.set_keyring(BEFORE)
    assert not path.exists()


def test_a_secret_is_read_back_for_its_capability_and_host(secrets: Secrets) -> None:
    secrets.set("weather", "API.example.com", "KEY", VALUE)
    assert secrets.get("weather", "api.example.com", "KEY") == VALUE
    for binding in [
        ("other", "api.example.com", "KEY"),
        ("weather", "example.com", "KEY"),
        ("weather", "api.example.com", "OTHER"),
    ]:
        with pytest.raises(Refused) as missing:
            secrets.get(*binding)
        assert missing.value.code is Code.UNAUTHENTICATED


def test_a_removed_secret_is_gone(secrets: Secrets) -> None:
    secrets.set("weather", "a.b", "KEY", VALUE)
    secrets.get("weather", "a.b", "KEY")
    secrets.set("weather", "a.b", "KEY", None)
    with pytest.raises(Refused):
        secrets.get("weather", "a.b", "KEY")


def test_a_secret_that_is_not_there_cannot_be_removed(secrets: Secrets) -> None:
    secrets.set("weather", "a.b", "KEY", VALUE)
    for binding in (("weather", "a.b", "OTHER"), ("weather", "b.a", "KEY"), ("w", "a.b", "KEY")):
        with pytest.raises(InvalidInput, match="nothing was removed") as missing:
            secrets.set(*binding, None)
        assert missing.value.code is Code.NOT_FOUND
    assert secrets.get("weather", "a.b", "KEY") == VALUE


def test_a_session_without_a_keyring_uses_the_file(tmp_path: Path) -> None:
    keyring.set_keyring(keyring.backends.fail.Keyring())
    try:
        assert not Keyring.usable()
        Secrets(tmp_path / "s").set("w", "a.b", "KEY", VALUE)
    finally:
        keyring.set_keyring(BEFORE)
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o600


def test_what_another_process_changes_or_removes_holds_for_the_next_use(tmp_path: Path) -> None:
    router, terminal = (Secrets(SecretFile(tmp_path / "s")) for _ in range(2))
    terminal.set("w", "a.b", "KEY", VALUE)
    assert router.get("w", "a.b", "KEY") == VALUE
    terminal.set("w", "a.b", "KEY", "another value")
    assert router.get("w", "a.b", "KEY") == "another value"
    terminal.set("w", "a.b", "KEY", None)
    with pytest.raises(Refused):
        router.get("w", "a.b", "KEY")
    assert router.redact([VALUE, "another value"]) == [HIDDEN, HIDDEN]


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604], ids=oct)
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "s"
    Secrets(SecretFile(path)).set("w", "a.b", "KEY", VALUE)
    path.chmod(mode)
    with pytest.raises(Refused) as exposed:
        Secrets(SecretFile(path)).get("w", "a.b", "KEY")
    assert exposed.value.code is Code.KEY_EXPOSED


def test_a_file_is_born_with_its_mode_and_leaves_nothing_behind(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Secrets(SecretFile(tmp_path / "s")).set("w", "a.b", "KEY", VALUE)
    finally:
        os.umask(before)
    assert sorted(x.name for x in tmp_path.iterdir()) == ["s", "s.lock"]
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"[]", b'{"a": 1}', b"\xff", b"[" * 100_000])
def test_a_damaged_file_is_an_error_and_is_kept(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(CapdexError) as damaged:
        Secrets(SecretFile(path)).set("w", "a.b", "KEY", VALUE)
    assert damaged.value.code is Code.UNREADABLE
    assert path.read_bytes() == content


@pytest.mark.parametrize("value", ["", "short", "x" * 9000, "line\nbreak", "ünicode!"])
def test_a_value_that_could_not_be_hidden_or_sent_is_refused(value: str, secrets: Secrets) -> None:
    with pytest.raises(InvalidInput):
        secrets.set("w", "a.b", "KEY", value)


@pytest.mark.parametrize("part", ["", "a b", " a", "a\n"])
def test_a_binding_has_no_spaces(part: str, secrets: Secrets) -> None:
    for binding in ((part, "a.b", "K"), ("w", part, "K"), ("w", "a.b", part)):
        with pytest.raises(InvalidInput):
            secrets.set(*binding, VALUE)


def test_every_form_of_a_secret_is_hidden(secrets: Secrets) -> None:
    secrets.set("w", "a.b", "KEY", VALUE)
    assert secrets.redact({"a": VALUE}) == {"a": VALUE}  # not read yet, so it cannot have been sent
    secrets.get("w", "a.b", "KEY")
    said = {
        VALUE: [f"Bearer {VALUE}", 1, None, True],
        "url": "https://a.b/?k=p4ss%22w%2Frd%20%2B%20more&l=p4ss%22w%2Frd+%2B+more",
        "json": json.dumps({"a": VALUE}),
        "basic": basic(VALUE),
    }
    assert secrets.redact(said) == {
        HIDDEN: [f"Bearer {HIDDEN}", 1, None, True],
        "url": f"https://a.b/?k={HIDDEN}&l={HIDDEN}",
        "json": f'{{"a": "{HIDDEN}"}}',
        "basic": HIDDEN,
    }


def test_secrets_that_are_read_at_once_are_all_hidden(tmp_path: Path) -> None:
    values = [f"{number}-" + "x.y/" * 2 for number in range(8)]
    vault = SecretFile(tmp_path / "secrets.json")
    for value in values:
        Secrets(vault).set("w", "a.b", f"KEY{value[0]}", value)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(8) as pool:
            for _ in range(40):
                secrets, start = Secrets(vault), threading.Barrier(8)

                def read(name: str, of: Secrets = secrets, start: Any = start) -> str:
                    start.wait()
                    return of.get("w", "a.b", name)

                read_values = list(pool.map(read, (f"KEY{number}" for number in range(8))))
                assert secrets.redact(read_values) == [HIDDEN] * 8
    finally:
        sys.setswitchinterval(before)


def test_a_secret_of_digits_is_hidden_as_a_number(secrets: Secrets) -> None:
    secrets.set("w", "a.b", "PIN", "8812345678")
    secrets.get("w", "a.b", "PIN")
    assert secrets.redact({"pin": 8812345678, "n": 88123}) == {"pin": HIDDEN, "n": 88123}


def test_two_names_that_are_one_without_their_secrets_stay_two(secrets: Secrets) -> None:
    secrets.set("w", "a.b", "KEY", "DEMO_KEY")
    secrets.get("w", "a.b", "KEY")
    shown = secrets.redact({"DEMO_KEY": "pay them", HIDDEN: "pay nobody", "x": {"DEMO_KEY=": 1}})
    assert sorted(map(str, shown.values())) == ["pay nobody", "pay them", str({f"{HIDDEN}=": 1})]
    assert "DEMO_KEY" not in str(shown)


def test_names_that_are_one_without_their_secrets_stay_as_short_as_they_are(
    secrets: Secrets,
) -> None:
    secrets.set("w", "a.b", "KEY", "DEMO-KEY")
    secrets.get("w", "a.b", "KEY")
    shown = secrets.redact({f"DEMO&#x{'0' * zeros}2d;KEY": zeros for zeros in range(300)})
    assert list(shown.values()) == list(range(300))
    assert max(map(len, shown)) < 2 * len(HIDDEN)


@pytest.mark.parametrize(
    "said",
    ["aB3\\/xY+z=&q<", "aB3/xY+z=&amp;q&lt;", "aB3%2fxY%2bz%3d%26q%3c",
     "aB3/xY\\u002Bz=\\u0026q\\u003C", "aB3&#x2F;xY&#43;z&#x3D;&amp;q<", "aB3/xY+z=%26q%3C",
     "aB3\\\\/xY+z=\\\\u0026q<"],
)  # fmt: skip
def test_a_secret_is_hidden_as_other_languages_write_it_in_json_html_and_urls(
    said: str, secrets: Secrets
) -> None:
    secrets.set("w", "a.b", "KEY", "aB3/xY+z=&q<")
    secrets.get("w", "a.b", "KEY")
    assert secrets.redact(f"bad key: {said}!") == f"bad key: {HIDDEN}!"


@pytest.mark.parametrize("value", ["user:longpassword", "Token longpassword"])
def test_the_password_within_a_secret_is_hidden_alone_as_well(value: str, secrets: Secrets) -> None:
    secrets.set("w", "a.b", "KEY", value)
    secrets.get("w", "a.b", "KEY")
    assert secrets.redact("user has longpassword") == f"user has {HIDDEN}"


def test_of_two_secrets_that_begin_alike_the_longer_one_is_hidden_whole(secrets: Secrets) -> None:
    for name, value in (("OLD", "hunter22"), ("NEW", "hunter22-2026")):
        secrets.set("w", "a.b", name, value)
        secrets.get("w", "a.b", name)
    assert secrets.redact("hunter22-2026, hunter22") == f"{HIDDEN}, {HIDDEN}"


def test_an_error_is_redacted_in_all_its_texts(secrets: Secrets) -> None:
    secrets.set("w", "a.b", "KEY", VALUE)
    secrets.get("w", "a.b", "KEY")
    error = ExecutionFailed(VALUE, why=VALUE, fix=VALUE, details={"a": [VALUE]})
    redacted = secrets.redact_error(error)
    assert VALUE not in repr(redacted) + str(redacted) + repr(redacted.args)
    assert redacted.to_json()["details"]["a"] == [HIDDEN]


@given(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=8), st.text())
def test_no_text_keeps_a_secret(value: str, around: str) -> None:
    class Fixed:
        def read(self, key: str) -> str:
            return value

        def write(self, key: str, value: str | None) -> None:
            raise AssertionError

    secrets = Secrets(Fixed())
    secrets.get("w", "a.b", "KEY")
    assert value not in secrets.redact(around + value + around).replace(HIDDEN, "")
