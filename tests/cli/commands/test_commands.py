"""What the other commands print: their key sets are golden, their texts escaped."""

from __future__ import annotations

import json
import os
import shlex
import stat
from pathlib import Path
from typing import Any

import pytest

from capdex.codes import error_codes, reason_codes

HOSTILE = "Tells\x1b[2J the \u202eweather\r of a city."
PASSPHRASE = "correct horse battery staple"  # noqa: S105 - of keys made in this test


def with_error(code: str, message: str = "no") -> dict[str, Any]:
    return {"code": code, "message": message, "retryable": False, "details": {"fix": "correct it"}}


@pytest.fixture
def passphrase_file(folder: Path) -> Path:
    path = folder / "pass"
    path.write_text(PASSPHRASE + "\n", encoding="utf-8")
    path.chmod(0o600)
    return path


# cid, explain, version ----------------------------------------------------------------------


def test_cid_of_a_file_and_of_its_text_agree(capdex: Any, folder: Path) -> None:
    (folder / "empty").write_bytes(b"")
    text = capdex("cid", "empty", "--plain").stdout.strip()
    assert text == "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"
    document = capdex.json("cid", text)
    assert set(document) == {"schema", "ok", "cid", "version", "codec", "hash", "digest"}
    assert capdex.json("cid", "-", stdin=b"") == document


@pytest.mark.parametrize("text", ["nonsense", "QmWrong", "bafkreiX"])
def test_what_is_no_cid_exits_with_1(capdex: Any, text: str) -> None:
    assert capdex("cid", text).exit_code == 1


def test_every_error_and_reason_code_is_explained(capdex: Any) -> None:
    rows = capdex.json("explain")["results"]
    assert len(rows) > 50
    for row in rows:
        one = capdex.json("explain", row["code"])
        assert set(one) <= {"schema", "code", "error", "reason", "help"}
        for kind in ("error", "reason"):
            assert kind not in one or all(one[kind][x] for x in ("cause", "remedy", "example"))
        assert len(one) >= 3


def test_an_explanation_is_wrapped_and_its_commands_stand_alone(capdex: Any) -> None:
    assert capdex("explain", "not-bound", "--format", "human").stdout.splitlines() == [
        "NOT_BOUND",
        "",
        "  in a package  the signature is valid, but the package does not name the account that",
        "                published it",
        "  cause         The signature is good, but the file names no account that may publish",
        "                it, or another one than published it. Without this, others could publish",
        "                a file that is not theirs.",
        "  remedy        Sign with the account that publishes named in the file.",
        "  example       capdex sign weather.acp.yaml --publisher "
        "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
    ]


@pytest.mark.parametrize(
    "example",
    sorted(
        command
        for examples in (
            *(entry.example for entry in error_codes().values()),
            *(entry.example for entry in reason_codes().values()),
        )
        for one in examples.split(";")
        if (command := one.strip()).startswith("capdex ")
    ),
)
def test_every_command_of_an_explanation_has_valid_options(capdex: Any, example: str) -> None:
    words = shlex.split(example)[1:]
    assert capdex(*words, "--help").exit_code == 0  # words before it are read first
    shown = capdex(*[x for x in words[:2] if not x.startswith("-")], "--help").stdout
    for option in (x for x in words if x.startswith("--")):
        assert option in shown or option in capdex("--help").stdout


# keys ---------------------------------------------------------------------------------------


def test_keygen_writes_a_private_file_and_never_overwrites(
    capdex: Any, folder: Path, passphrase_file: Path
) -> None:
    args = ("keygen", "--light", "--passphrase-file", "pass")
    document = capdex.json(*args)
    assert set(document) == {"schema", "did", "file"}
    assert document["did"].startswith("did:key:z6Mk")
    path = Path(document["file"])
    assert path == folder / "home/data/keys/author.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = capdex(*args)
    assert again.exit_code == 2
    assert "exists already" in again.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("keygen", "--out", "-"),
        ("account", "new", "--out", "-"),
        ("init", "weather", "--out", "-"),
        ("sponsor", "sign", "x.acp.yaml", "--out", "-"),
        ("snapshot", "export", "--out", "-"),
        ("state", "export", "note", "-"),
    ],
)
def test_a_file_that_needs_a_name_is_not_written_to_one_called_dash(
    capdex: Any, folder: Path, words: tuple[str, ...]
) -> None:
    result = capdex(*words)
    assert result.exit_code == 2
    assert "a stream cannot be used here: give the name of a file" in result.stderr
    assert not (folder / "-").exists()


@pytest.mark.parametrize(
    ("accounts", "said"),
    [
        (b"0x" + b"11" * 20 + b" # the caf\xe9\n", "it is not UTF-8"),
        (b"# nobody yet\n", "a sponsor must know for whom it pays"),
        ((b"0x" + b"11" * 20 + b"\n") * 7000 + b"0x22\n", "0x22"),  # over a package's size
    ],
)
def test_a_sponsor_reads_its_list_of_accounts_whole(
    capdex: Any, folder: Path, accounts: bytes, said: str
) -> None:
    (folder / "authors.txt").write_bytes(accounts)
    result = capdex("sponsor", "serve", "--budget", "1", "--allow-file", "authors.txt")
    assert result.exit_code == 2
    assert said in result.stderr


def test_an_account_is_made_and_shown(capdex: Any, passphrase_file: Path) -> None:
    made = capdex.json("account", "new", "--light", "--passphrase-file", "pass")
    assert set(made) == {"schema", "address", "file"}
    assert capdex.json("account", "show") == made
    assert capdex("account", "show", "--plain").stdout.strip() == made["address"]


def test_a_passphrase_comes_from_a_descriptor(capdex: Any) -> None:
    read, write = os.pipe()
    os.write(write, PASSPHRASE.encode())
    os.close(write)
    try:
        assert capdex("keygen", "--light", "--passphrase-fd", str(read)).exit_code == 0
    finally:
        os.close(read)


@pytest.mark.parametrize("key", ["keystore", "author-key", "passphrase-file"])
def test_an_empty_path_is_refused_as_empty(
    capdex: Any, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    result = capdex("keygen", "--light", "--config", f"{key}=")
    assert result.exit_code == 2
    assert f"{key} is empty" in result.stderr
    name = f"CAPDEX_{key.upper().replace('-', '_')}"
    monkeypatch.setenv(name, "")
    result = capdex("keygen", "--light")
    assert (result.exit_code, "chmod" in result.stderr) == (2, False)
    assert f"{name} is empty" in result.stderr
    assert f"fix: unset {name}" in result.stderr


def test_the_author_key_may_have_a_passphrase_of_its_own(
    capdex: Any, folder: Path, passphrase_file: Path, package: Path
) -> None:
    other = folder / "author-pass"
    other.write_text("another one for the author\n", encoding="utf-8")
    other.chmod(0o600)
    (folder / package.name).write_bytes(package.read_bytes())
    capdex.json("keygen", "--light", "--out", "author.json", "--passphrase-file", "author-pass")
    capdex.json("account", "new", "--light", "--out", "account.json", "--passphrase-file", "pass")
    sign = ("sign", package.name, "--author-key", "author.json", "--keystore", "account.json")
    chain = ("--config", "chain-id=31337", "--passphrase-file", "pass")
    assert "WRONG_PASSPHRASE" in capdex(*sign, *chain).stderr
    capdex.json(*sign, *chain, "--author-passphrase-file", "author-pass")
    assert capdex.json("validate", package.name)["verdict"] == "verified"


def test_the_passphrase_of_a_local_network_is_for_its_own_keys_alone(
    capdex: Any, folder: Path, passphrase_file: Path
) -> None:
    """A key for another chain would be lost with the folder of the local network."""
    stack = {"chain_id": 31337, "rpc_url": "http://127.0.0.1:8545", "pid": os.getpid()}
    keys = folder / ".capdex" / "keys"
    keys.mkdir(parents=True)
    (keys.parent / "up.json").write_text(json.dumps(stack), encoding="utf-8")
    passphrase_file.rename(keys / "passphrase")
    for words in (("account", "new"), ("keygen",)):
        refused = capdex(*words, "--light")
        assert refused.exit_code == 4
        assert "--passphrase-file" in refused.stderr
    assert not (folder / "home/data/keys").exists()
    capdex.json("account", "new", "--light", "--out", ".capdex/keys/account.json")
    capdex.json("account", "new", "--light", "--passphrase-file", ".capdex/keys/passphrase")


def test_new_keys_end_with_the_next_command(capdex: Any, passphrase_file: Path) -> None:
    secret = ("--light", "--passphrase-file", "pass", "--format", "human")
    assert "next: capdex sign FILE\n" in capdex("keygen", *secret).stdout
    shown = capdex("account", "new", *secret, "--out", "a.json").stdout
    assert "next: send it ether, then: capdex account balance --keystore a.json\n" in shown
    local = ("--config", "chain-id=31337", "--out", "b.json")
    shown = capdex("account", "new", *secret, *local).stdout
    assert "next: capdex account fund --keystore b.json\n" in shown


def test_a_passphrase_in_the_environment_is_taken_with_a_warning(
    capdex: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPDEX_PASSPHRASE", PASSPHRASE)
    result = capdex("keygen", "--light")
    assert result.exit_code == 0
    assert "warning: CAPDEX_PASSPHRASE can be read" in result.stderr
    assert PASSPHRASE not in result.output


def test_without_a_terminal_the_options_that_would_have_answered_are_named(capdex: Any) -> None:
    result = capdex("keygen", "--light")
    assert result.exit_code == 4
    assert "--passphrase-file" in result.stderr
    assert capdex("init").exit_code == 4


@pytest.mark.parametrize(
    "args",
    [
        ("keygen", "--out", "taken"),
        ("account", "new", "--out", "taken"),
        ("account", "import", "--from", "absent"),
        ("sign", "taken", "--author-key", "absent", "--config", "chain-id=31337"),
    ],
)
def test_a_passphrase_is_asked_for_only_when_the_key_file_can_be_used(
    capdex: Any, folder: Path, args: tuple[str, ...]
) -> None:
    (folder / "taken").touch()
    result = capdex(*args)
    assert result.exit_code == 2
    assert "no passphrase" not in result.stderr


def test_a_directory_is_no_key_file_whatever_its_mode(capdex: Any, folder: Path) -> None:
    folder.chmod(0o755)
    result = capdex("account", "show", "--keystore", str(folder))
    assert result.exit_code == 2
    assert "Is a directory" in result.stderr
    assert "chmod" not in result.stderr


def test_a_passphrase_file_that_others_can_read_is_refused(
    capdex: Any, passphrase_file: Path
) -> None:
    passphrase_file.chmod(0o644)
    result = capdex("keygen", "--light", "--passphrase-file", "pass")
    assert result.exit_code == 4
    assert "KEY_EXPOSED" in result.stderr


def test_no_command_takes_a_passphrase_as_an_argument(commands: dict[str, Any]) -> None:
    names = {name for command in commands.values() for p in command.params for name in p.opts}
    assert {name for name in names if "passphrase" in name} == {
        "--passphrase-fd",
        "--passphrase-file",
        "--author-passphrase-file",
    }


def test_no_secret_is_ever_in_the_output(
    capdex: Any, folder: Path, passphrase_file: Path, package: Path
) -> None:
    (folder / "note.acp.yaml").write_bytes(package.read_bytes())
    secret = ("--passphrase-file", "pass", "-vv", "--debug")
    chain = ("--config", "chain-id=31337")
    said = [
        capdex("keygen", "--light", *secret),
        capdex("account", "new", "--light", *secret),
        capdex("sign", "note.acp.yaml", *secret, *chain),
        capdex("config"),
    ]
    assert [result.exit_code for result in said] == [0, 0, 0, 0]
    passphrase_file.write_text("wrong " + PASSPHRASE, encoding="utf-8")
    (folder / "note.acp.yaml").write_bytes(package.read_bytes())
    said.append(capdex("sign", "note.acp.yaml", *secret, *chain))
    assert said[-1].exit_code == 4
    text = "".join(result.output for result in said)
    assert PASSPHRASE not in text
    for key in (folder / "home/data/keys").iterdir():
        assert json.loads(key.read_text())["crypto"]["ciphertext"] not in text


# sign, init ---------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["sign", "verify"])
def test_of_several_files_each_that_is_wrong_is_named_and_the_others_are_done(
    capdex: Any, folder: Path, passphrase_file: Path, package: Path, command: str
) -> None:
    options = ("--passphrase-file", "pass", "--config", "chain-id=31337")
    capdex("account", "new", "--light", *options)
    (folder / "bad 1.acp.yaml").write_text("a: b\n", "utf-8")
    (folder / "note.acp.yaml").write_bytes(package.read_bytes())
    how = options if command == "sign" else ("--offline",)
    result = capdex(command, "bad 1.acp.yaml", "note.acp.yaml", "absent", *how, "--json")
    assert result.exit_code == 2
    (done,) = json.loads(result.stdout)["results"]
    assert done["cap_uri"] == "did:nuwa:cap:note@1.0.0"
    first, second = (
        json.loads(line)
        for line in result.stderr.splitlines()
        if '"schema": "capdex.error/1"' in line
    )
    assert first["message"].startswith("bad 1.acp.yaml: ")
    assert first["details"]["fix"].endswith("capdex validate 'bad 1.acp.yaml'")
    assert "absent" in second["message"]


def test_init_writes_a_package_that_validates_and_never_overwrites(capdex: Any) -> None:
    document = capdex.json("init", "weather", "--description", "Tells the weather.")
    assert document == {
        "schema": "capdex.package/1",
        "file": "weather.acp.yaml",
        "name": "weather",
    }
    assert capdex.json("validate", "weather.acp.yaml")["ok"] is True
    assert capdex("init", "weather").exit_code == 2
    assert capdex("init", "No Name").exit_code == 1


def test_sign_changes_the_file_once_and_a_dry_run_never(
    capdex: Any, folder: Path, passphrase_file: Path, package: Path
) -> None:
    path = folder / "note.acp.yaml"
    path.write_bytes(package.read_bytes())
    options = ("--passphrase-file", "pass", "--config", "chain-id=31337")
    capdex("account", "new", "--light", *options)
    dry = capdex.json("sign", path.name, "--dry-run", *options)["results"][0]
    assert (dry["changed"], path.read_bytes()) == (True, package.read_bytes())
    first = capdex.json("sign", path.name, *options)["results"][0]
    assert set(first) == {"path", "cap_uri", "author", "publisher", "changed", "dry_run"}
    signed = path.read_bytes()
    assert signed != package.read_bytes()
    assert capdex.json("sign", path.name, *options)["results"][0]["changed"] is False
    piped = capdex("sign", "-", *options, stdin=package.read_bytes())
    assert piped.stdout_bytes == signed


@pytest.mark.parametrize("args", [("publish", "x.yaml"), ("yank", "ab@1.0.0"), ("deploy",)])
def test_what_costs_money_needs_a_network_first(capdex: Any, args: tuple[str, ...]) -> None:
    result = capdex(*args)
    assert result.exit_code == 2
    assert "error[CONFIG]: no network is chosen" in result.stderr


# asking a node ------------------------------------------------------------------------------


def test_resolve_prints_the_nodes_answer_whole(
    capdex: Any, node: Any, release: dict[str, Any]
) -> None:
    node.answer("resolve_capability", release)
    assert capdex.json("resolve", "weather@^1") == {"schema": "capdex.resolution/1", **release}
    asked = {"cap_uri": "did:nuwa:cap:weather@^1", "detail": "full"}
    assert node.calls[-1] == ("resolve_capability", asked)
    assert capdex("resolve", "weather", "--plain").stdout.strip() == release["ipfs_cid"]


def test_resolve_names_what_where_verdict_and_freshness(
    capdex: Any, node: Any, release: dict[str, Any]
) -> None:
    node.answer("resolve_capability", release | {"warnings": ["yanked soon"]})
    lines = capdex("resolve", "weather", "--format", "human").stdout.splitlines()
    found = dict(line.split(None, 1) for line in lines if not line.startswith(" "))
    assert found["what"] == "did:nuwa:cap:weather@1.2.0"
    assert found["where"] == release["ipfs_cid"]
    assert found["verdict"] == "✓ verified"
    assert "block 7, 2 behind the head, release is head" in lines[-2]
    assert found["warning"] == "yanked soon"


@pytest.mark.parametrize(
    ("lint", "shown"),
    [
        ({"score": 0, "label": None, "codes": []}, "nothing found (score 0 of 100)"),
        (
            {"score": 85, "label": "high", "codes": ["LINT_HIDDEN_MARKDOWN", "LINT_OVERRIDE"]},
            "high, LINT_HIDDEN_MARKDOWN, LINT_OVERRIDE (score 85 of 100)",
        ),
        (None, None),
    ],
)
def test_resolve_and_show_say_what_the_lint_found(
    capdex: Any, node: Any, release: dict[str, Any], lint: Any, shown: str | None
) -> None:
    found = release | {"verification": release["verification"] | {"lint": lint}}
    node.answer("resolve_capability", found)
    as_of = release["as_of"]
    node.page("weather", {"name": "weather", "releases": [found], "as_of": as_of})
    for command in (("resolve", "weather"), ("show", "weather@1.2.0")):
        lines = capdex(*command, "--format", "human").stdout.splitlines()
        said = [line.split(None, 1)[1] for line in lines if line.startswith("lint ")]
        assert said == ([] if shown is None else [shown])
    (line,) = capdex("show", "weather", "--format", "human").stdout.splitlines()
    assert ("lint high" in line) == (lint is not None and lint["label"] == "high")


def test_search_sends_words_and_filters_and_prints_hits(
    capdex: Any, node: Any, release: dict[str, Any]
) -> None:
    hit = release | {"score": 1.5, "matched": ["summary"]}
    as_of = hit.pop("as_of")
    content = {"list_of_results": [hit], "total": 1, "next_cursor": None, "as_of": as_of}
    node.answer("search_capabilities", content)
    document = capdex.json("search", "rain", "today", "--tag", "weather", "--limit", "3")
    assert set(document) == {"schema", "results", "total", "next_cursor", "as_of"}
    assert document["results"] == [hit]
    assert node.calls[-1][1] == {
        "query_string": "rain today",
        "filters": {"tag": ["weather"]},
        "limit": 3,
        "detail": "full",
    }
    assert json.loads(capdex("search", "rain").stdout) == {"schema": "capdex.search/1", **hit}
    human = capdex("search", "rain", "--format", "human")
    assert human.stdout == "weather  1.2.0  ✓ verified  Tells the weather of a city.  summary\n"
    hit["why"] = {"tool": "get_forecast", "snippet": {"field": "tools", "text": "x"}}
    explained = capdex("search", "rain", "--format", "human").stdout
    assert explained.endswith("summary, tool get_forecast\n")
    assert human.stderr == "1 of 1 · block 7, 2 behind the head\n"
    assert capdex("search", "rain", "--plain").stdout.strip() == hit["cap_uri"]
    hit |= {"matched": [], "why": {"tool": None, "snippet": None, "similarity": 0.4}}
    assert capdex("search", "rain", "--format", "human").stdout.endswith("  meaning\n")


def test_each_filter_of_a_search_is_sent(capdex: Any, node: Any) -> None:
    node.answer("search_capabilities", {"list_of_results": [], "total": 0})
    words = ["--tag", "a", "--tag", "b", "--not", "model-family=gpt-4", "--not", "tag=c"]
    words += ["--no-prompt", "--since", "2026-01-01", "--context-window", "8000"]
    capdex("search", *words)
    assert node.calls[-1][1]["filters"] == {
        "tag": ["a", "b"],
        "has_prompt": False,
        "published_since": "2026-01-01",
        "context_window": 8000,
        "not": {"model_family": ["gpt-4"], "tag": ["c"]},
    }
    refused = capdex("search", "--not", "tags=c")
    assert (refused.exit_code, "is not FILTER=TEXT" in refused.stderr) == (2, True)


def test_show_lists_all_releases_with_the_reason_of_the_rejected(
    capdex: Any, node: Any, release: dict[str, Any]
) -> None:
    good = release | {"latest": True, "availability": "available", "reason": None, "message": ""}
    bad = good | {
        "cap_uri": "did:nuwa:cap:weather@1.1.0",
        "semver": "1.1.0",
        "latest": False,
        "reason": "NOT_BOUND",
        "message": "published by another",
        "verification": {"verdict": "signed", "signer": None, "checks": []},
    }
    node.page("weather", {"name": "weather", "releases": [good, bad], "as_of": release["as_of"]})
    document = capdex.json("show", "weather")
    assert set(document) == {"schema", "results", "name", "package", "standing", "as_of"}
    lines = capdex("show", "weather", "--format", "human").stdout.splitlines()
    assert [line for line in lines if line.startswith("1.")] == [
        "1.2.0  minor  1970-01-01  ✓ verified  available  latest",
        "1.1.0         1970-01-01  ! signed    available          NOT_BOUND: published by another",
    ]
    assert lines[-1] == "install it: capdex install weather"
    exact = capdex("show", "weather@1.2.0", "--format", "human").stdout
    assert "✓ sha256" in exact
    assert capdex("show", "weather@^1", "--plain").stdout.count("\n") == 2
    assert capdex("show", "weather@3.0.0").exit_code == 1


def test_show_says_what_the_nodes_operator_refuses(
    capdex: Any, node: Any, release: dict[str, Any]
) -> None:
    denied = {"reason": HOSTILE, "at": 1_700_000_000}
    hidden = release | {"acp_metadata": None, "availability": "available", "denied": denied}
    node.page("weather", {"name": "weather", "releases": [hidden], "as_of": release["as_of"]})
    [line] = capdex("show", "weather", "--format", "human").stdout.splitlines()
    assert "this node's operator refuses it: " in line
    assert line.isprintable()
    assert capdex.json("show", "weather")["results"][0]["denied"] == denied


@pytest.mark.parametrize("command", ["resolve", "search", "show"])
def test_what_a_stranger_wrote_is_never_printed_raw(
    capdex: Any, node: Any, release: dict[str, Any], command: str
) -> None:
    evil = release | {
        "acp_metadata": {"summary": HOSTILE},
        "warnings": [HOSTILE],
        "matched": [HOSTILE],
        "semver": HOSTILE,
        "ipfs_cid": HOSTILE,
        "cap_uri": HOSTILE,
        "reason": HOSTILE,
        "message": HOSTILE,
        "verification": {
            "verdict": HOSTILE,
            "signer": HOSTILE,
            "checks": HOSTILE,
            "lint": {"score": HOSTILE, "label": HOSTILE, "codes": [HOSTILE]},
        },
        "chain": HOSTILE,
        "as_of": HOSTILE,
        "status": HOSTILE,
    }
    node.answer("resolve_capability", evil)
    node.answer("search_capabilities", {"list_of_results": [evil], "next_cursor": HOSTILE})
    node.page("weather", {"releases": [evil, 3], "as_of": HOSTILE})
    for form in ("human", "json", "jsonl", "plain"):
        result = capdex(command, "weather", "--format", form)
        assert result.exit_code == 0, result.stderr
        for char in ("\x1b", "\u202e", "\r"):
            assert char not in result.output


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [("NOT_FOUND", 1), ("UNVERIFIED", 1), ("PENDING", 3), ("STALLED", 3), ("NEW_CODE", 3)],
)
def test_a_nodes_error_keeps_its_code(capdex: Any, node: Any, code: str, exit_code: int) -> None:
    node.answer("resolve_capability", with_error(code), failed=True)
    result = capdex("resolve", "weather", "--json")
    assert result.exit_code == exit_code
    error = json.loads(result.stderr)
    assert error["code"] == (code if code != "NEW_CODE" else "NODE_UNAVAILABLE")
    node.page("weather", with_error(code), status=404)
    assert capdex("show", "weather").exit_code == exit_code


@pytest.mark.parametrize("command", ["resolve", "search", "show"])
def test_where_no_node_runs_the_fix_is_to_start_one(
    capdex: Any, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("CAPDEX_MCP_URL", "http://127.0.0.1:1/mcp")
    monkeypatch.setenv("CAPDEX_NODE_URL", "http://127.0.0.1:1")
    result = capdex(command, "weather")
    assert result.exit_code == 3
    assert "error[NODE_UNAVAILABLE]" in result.stderr
    assert "does not answer as it should" in result.stderr
    assert "fix: see that it runs and is reachable (start one: capdex up)" in result.stderr


@pytest.mark.parametrize(
    "call",
    [
        *("search tea", "resolve tea", "resolve tea --proof", "show tea", "list", "get tea"),
        *("install tea --yes", "index digest", "publish tea.acp.yaml --yes", "claim tea --yes"),
        *("init cup", "add-to claude --dry-run", "config", "doctor", "sponsor send x --to URL"),
    ],
)
@pytest.mark.parametrize("url", ["http://me:KEY@127.0.0.1:1", "http://127.0.0.1:1/v3/KEY"])
def test_no_command_shows_or_writes_the_secret_of_a_url(
    capdex: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, url: str, call: str
) -> None:
    url = url.replace("KEY", "4fe1c0de4fe1c0de")
    monkeypatch.setenv("CAPDEX_CHAIN_ID", "1")
    monkeypatch.setenv("CAPDEX_REGISTRY", "0x622D9635044afa47502c16a33cb6E57927F6E3e9")
    for name in ("RPC_URL", "NODE_URL", "TRUST_RPC_URL", "NODES"):
        monkeypatch.setenv(f"CAPDEX_{name}", url)
    result = capdex(*call.replace("URL", url).split())
    written = [x.read_bytes() for x in folder.rglob("*") if x.is_file()]
    assert not [x for x in (result.output.encode(), *written) if b"c0de4fe1c0de" in x]


@pytest.mark.parametrize("content", [b"", b"[]", b"null", b'{"releases": 3}', b"\xff", b"[" * 9999])
def test_a_page_that_is_no_answer_is_the_nodes_fault(
    capdex: Any, node: Any, content: bytes
) -> None:
    node.pages["weather"] = (200, content)
    assert capdex("show", "weather").exit_code == 3


def test_get_does_not_believe_a_node_that_answers_another_capability(
    capdex: Any, node: Any, release: dict[str, Any]
) -> None:
    node.answer("resolve_capability", release | {"cap_uri": "did:nuwa:cap:other@1.2.0"})
    result = capdex("get", "weather")
    assert result.exit_code == 3
    assert (
        'answered "did:nuwa:cap:other@1.2.0" when asked for did:nuwa:cap:weather' in result.stderr
    )


def test_mcp_over_a_database_that_is_not_there_does_not_start(capdex: Any, folder: Path) -> None:
    result = capdex("mcp", "--db", f"sqlite:///{folder / 'missing.db'}")
    assert result.exit_code == 2
    assert result.stdout == ""
