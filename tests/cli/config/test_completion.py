"""What TAB offers: commands, options, networks, and capabilities that were answered lately."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pexpect
import pytest

from capdex_cli.config import completion_cache as cache
from capdex_cli.config.settings import TEMPLATES, user_directories

# What a TAB must not wait for; see test_process.py for --help.
SLOW = {"aiohttp", "asyncio", "cryptography", "eth_account", "mcp", "orjson", "sqlmodel", "web3"}


@pytest.fixture
def tab(monkeypatch: pytest.MonkeyPatch, capdex: Any) -> Any:
    """`tab("capdex config sh")` gives the words that bash would offer."""

    def press(line: str) -> list[str]:
        monkeypatch.setenv("_CAPDEX_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        found = [row.split(",", 1)[1] for row in capdex().stdout.splitlines() if row]
        monkeypatch.delenv("_CAPDEX_COMPLETE")
        return found

    return press


def test_commands_subcommands_options_and_choices_are_offered(tab: Any) -> None:
    assert tab("capdex doc") == ["doctor"]
    assert tab("capdex config ") == ["show", "path", "networks"]
    assert tab("capdex deploy --vo") == ["--votes"]
    assert tab("capdex completion ") == ["bash", "zsh", "fish"]


@pytest.mark.parametrize(
    "words", ["validate", "sign", "verify", "publish", "sponsor sign", "sponsor send", "car"]
)
def test_shells_offer_their_files_where_a_file_is_meant(tab: Any, words: str) -> None:
    assert tab(f"capdex {words} weather") == ["weather"]  # a row of the type `file`


def test_codes_are_offered_to_explain(tab: Any) -> None:
    assert tab("capdex explain SIGNER_") == [
        "SIGNER_CHANGED",
        "SIGNER_REFUSED",
        "SIGNER_UNAVAILABLE",
    ]
    assert "BAD_PROOF" in tab("capdex explain ")


def test_networks_are_offered_built_in_and_ones_own(tab: Any, folder: Path) -> None:
    assert tab("capdex doctor --network ") == list(TEMPLATES)
    assert tab("capdex doctor --network base") == ["base", "base-sepolia"]
    (folder / "capdex.toml").write_text("[networks.basement]\n", encoding="utf-8")
    assert tab("capdex --network base") == ["basement", "base", "base-sepolia"]
    (folder / "capdex.toml").write_text("[networks.", encoding="utf-8")  # half written
    assert tab("capdex --network base") == ["base", "base-sepolia"]


def test_capabilities_that_were_answered_are_offered(tab: Any) -> None:
    assert tab("capdex get ") == []
    cache.remember(["did:nuwa:cap:weather@1.0.0", "did:nuwa:cap:weather@1.1.0", "tea@0.1.0"])
    assert tab("capdex get ") == ["tea", "weather"]
    assert tab("capdex show we") == ["weather"]
    assert tab("capdex resolve weather@") == ["weather@1.1.0", "weather@1.0.0"]
    assert tab("capdex resolve weather@1.0") == ["weather@1.0.0"]
    context: Any = None
    typed = "did:nuwa:cap:weather@1.1"
    assert cache.complete(context, context, typed) == ["did:nuwa:cap:weather@1.1.0"]


@pytest.mark.parametrize(
    "words", ["install", "upgrade", "remove", "call", "show", "yank", "deprecate", "install tea"]
)
def test_names_are_offered_wherever_a_capability_is_named(tab: Any, words: str) -> None:
    cache.remember(["weather@1.1.0"])
    assert tab(f"capdex {words} we") == ["weather"]


def test_what_search_answers_is_remembered(capdex: Any, node: Any, tab: Any) -> None:
    hit = {"cap_uri": "did:nuwa:cap:weather@2.0.0"}
    node.answer("search_capabilities", {"list_of_results": [hit, {"cap_uri": 3}], "total": 2})
    assert capdex("search", "rain", "--json").exit_code == 0
    assert tab("capdex get w") == ["weather"]


@pytest.mark.parametrize(
    "uri",
    [
        "did:nuwa:cap:weather@$(touch x)",
        "did:nuwa:cap:weather@1.0.0;reboot",
        "did:nuwa:cap:we ather@1.0.0",
        "did:nuwa:cap:weather@1.0.0\n",
        "did:nuwa:cap:" + "a" * 65 + "@1.0.0",
        "did:nuwa:cap:\u0430bc@1.0.0",
        "did:nuwa:cap:weather",
        None,
        3,
    ],
)
def test_nothing_that_is_no_exact_uri_reaches_a_shell(tab: Any, uri: object) -> None:
    cache.remember([uri])
    assert tab("capdex get ") == []


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff\n\0",
        b"weather@1.0.0;reboot\n",
        b"We*ther@1.0.0\n$(x)@1.0.0\n-x@1.0.0\n",
        b"weather" * cache.MAX_BYTES,
        b"\n" * cache.MAX_BYTES,
    ],
)
def test_a_cache_that_is_not_ours_offers_nothing_and_is_replaced(tab: Any, text: bytes) -> None:
    path = user_directories().cache / "names"
    path.parent.mkdir(parents=True)
    path.write_bytes(text)
    assert tab("capdex get ") == []
    cache.remember(["tea@0.1.0"])
    assert path.read_bytes() == b"tea@0.1.0\n"


def test_without_a_known_home_directory_nothing_is_offered(
    tab: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unlisted(_: int) -> object:
        raise KeyError("no such user")

    cache.remember(["tea-timer@1.0.0"])
    assert tab("capdex show tea") == ["tea-timer"]
    monkeypatch.setattr("pwd.getpwuid", unlisted)
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("CAPDEX_HOME")
    assert tab("capdex show tea") == []


def test_the_cache_is_bounded_and_keeps_the_newest() -> None:
    cache.remember(f"name-{i}@1.0.0" for i in range(cache.MAX_URIS))
    cache.remember(["many@1.0.0", "many@1.1.0"])
    lines = (user_directories().cache / "names").read_text("ascii").splitlines()
    assert len(lines) == cache.MAX_URIS
    assert lines[:3] == ["many@1.1.0", "many@1.0.0", f"name-{cache.MAX_URIS - 1}@1.0.0"]
    assert "name-0@1.0.0" not in lines


def test_a_cache_that_cannot_be_written_is_no_error(folder: Path) -> None:
    (folder / "home").write_text("in the way")
    cache.remember(["tea@0.1.0"])


@pytest.mark.parametrize("line", ["capdex get ", "capdex doctor --network b", "capdex explain S"])
def test_a_tab_waits_for_nothing_slow(line: str) -> None:
    cache.remember(["tea@0.1.0"])
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "capdex"],
        env={
            **os.environ,
            "_CAPDEX_COMPLETE": "bash_complete",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(line.split(" ")) - 1),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    names = re.findall(r"^import time:[^|]*\|[^|]*\| *(\S+)$", done.stderr, re.MULTILINE)
    assert {name.split(".")[0] for name in names} & SLOW == set()
    assert done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_asks_the_program(capdex: Any, shell: str) -> None:
    script = capdex("completion", shell).stdout
    assert f"_CAPDEX_COMPLETE={shell}_complete" in script


def test_fish_shows_a_description_beyond_its_first_comma(capdex: Any) -> None:
    assert 'string split -m 1 "," $completion' in capdex("completion", "fish").stdout


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("config net", "config networks "),
        ("--network eth", "--network ethereum "),
        ("--network=gno", "--network=gnosis "),
        ("show did:nuwa:cap:tea", "show did:nuwa:cap:tea-timer "),
        ("show did:nuwa:cap:tea-timer@", "show did:nuwa:cap:tea-timer@1.0.0 "),
        ("install a@1.0.0 tea-timer@1", "install a@1.0.0 tea-timer@1.0.0 "),
        ("validate my", r"validate my\ tea.acp.yaml "),
    ],
)
def test_bash_completes_on_a_terminal(tmp_path: Path, typed: str, shown: str) -> None:
    program = Path(sys.executable).parent / "capdex"
    cache.remember(["tea-timer@1.0.0"])
    (tmp_path / "my tea.acp.yaml").write_text("")
    bash = pexpect.spawn(
        "bash",
        ["--norc", "--noprofile", "-i"],
        cwd=tmp_path,
        env=os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}", "TERM": "dumb"},
        encoding="utf-8",
        dimensions=(40, 200),
    )
    try:
        bash.sendline("PS1='> '; eval \"$(capdex completion bash)\"; echo $((6 * 7))")
        bash.expect("42\r\n")
        bash.send(f"capdex {typed}\t")
        bash.expect_exact(f"capdex {shown}")
    finally:
        bash.close(force=True)
