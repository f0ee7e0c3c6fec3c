"""The router in the files of hosts: added, changed and taken out, with all else as it was."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from capdex.errors import CapdexError, Code, InvalidInput, Refused
from capdex_router.faces.hosts.edit import adding, removing, write
from capdex_router.faces.hosts.table import HOSTS

ENTRY = {"command": "/opt/capdex", "args": ["router"]}
CLAUDE = """{
  "numStartups": 7,
  "projects": {
    "/src/p": {
      "mcpServers": {}
    }
  },
  "mcpServers": {
    "other": {
      "type": "http",
      "url": "https://mcp.example.org"
    }
  },
  "userID": "x"
}
"""
VSCODE = """{
  // servers of mine
  "inputs": [],
  "servers": {
    "other": { "type": "stdio", "command": "x" }, // keep
  }
}
"""
CODEX = """\
model = "gpt" # the best

[mcp_servers.other] # mine
command = "x"
args = [
  "a", # first
]

# approvals
[profiles.careful]
approval_policy = "untrusted"
"""
GOOSE = """\
# mine
extensions:
  developer: # keep
    bundled: true
    type: builtin

GOOSE_MODEL: m
"""
JSON = {host: CLAUDE.replace("mcpServers", HOSTS[host].key) for host in HOSTS}
FILES = JSON | {
    "cursor": '{"mcpServers":{"other":{"command":"x"}}}',
    "vscode": VSCODE,
    "zed": VSCODE.replace("servers", "context_servers"),
    "opencode": VSCODE.replace("servers", "mcp"),
    "codex": CODEX,
    "gemini": CLAUDE.replace("\n", "\r\n"),
    "goose": GOOSE,
}
ENDINGS = {"codex": "config.toml", "goose": "config.yaml"}


def place(host: str, folder: Path, text: str | None) -> Path:
    file = folder / ENDINGS.get(host, "settings.json")
    if text is not None:
        file.write_text(text, encoding="utf-8", newline="")
    return file


@pytest.mark.parametrize("host", HOSTS)
def test_the_router_comes_and_goes_and_all_else_stays(host: str, tmp_path: Path) -> None:
    file = place(host, tmp_path, FILES[host])
    found = HOSTS[host]
    edit = adding(found, file, ENTRY)
    assert (edit.action, edit.known) == ("added", None)
    assert file.read_bytes() == FILES[host].encode()
    copy = write(edit, tmp_path / "backups")
    assert copy is not None
    assert copy.read_bytes() == FILES[host].encode()
    lines = file.read_text(encoding="utf-8").splitlines()
    if host not in ("cursor",):
        assert [line for line in FILES[host].splitlines() if line.rstrip(",") not in
                {one.rstrip(",") for one in lines}] == []  # fmt: skip
    assert adding(found, file, ENTRY).action == "unchanged"
    out = removing(found, file)
    assert out.action == "removed"
    write(out, tmp_path / "backups")
    assert file.read_bytes() == FILES[host].encode()
    assert removing(found, file).action == "unchanged"


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("text", [None, "", "\n"])
def test_a_file_that_is_not_there_or_empty_is_begun(
    host: str, text: str | None, tmp_path: Path
) -> None:
    file = place(host, tmp_path / "deep" / "down", None)
    if text is not None:
        file.parent.mkdir(parents=True)
        file.write_text(text)
    edit = adding(HOSTS[host], file, ENTRY)
    write(edit, tmp_path / "backups")
    known = adding(HOSTS[host], file, ENTRY)
    assert (known.action, known.known) == ("unchanged", HOSTS[host].shape(ENTRY))


@pytest.mark.parametrize("host", ["claude", "codex"])
def test_what_a_user_put_into_the_entry_stays(host: str, tmp_path: Path) -> None:
    file = place(host, tmp_path, None)
    write(adding(HOSTS[host], file, {**ENTRY, "timeout": 5, "env": {"A": "b"}}), tmp_path / "b")
    edit = adding(HOSTS[host], file, {**ENTRY, "command": "/new"})
    write(edit, tmp_path / "b")
    assert edit.action == "replaced"
    known = adding(HOSTS[host], file, {"command": "/new"}).known
    assert {**known, "type": ""} == {
        "command": "/new", "args": ["router"], "timeout": 5, "env": {"A": "b"}, "type": ""
    }  # fmt: skip
    write(removing(HOSTS[host], file), tmp_path / "b")
    assert "capdex" not in file.read_text()


@pytest.mark.parametrize(
    ("host", "text", "place_of_it"),
    [
        ("claude", '{\n  "a": 1,,\n}', "line 2, column 10"),
        ("zed", "{\n  // x\n  a: 1\n}", "line 3, column 3"),
        ("codex", 'a = 1\nb = "x\n', "line 2"),
        ("codex", "a = 1\na = 2\n", "line 2, column 6"),
        ("goose", "a: 1\n b: 2\n", "line 2, column 3"),
    ],
)
def test_a_broken_file_is_refused_with_line_and_column(
    host: str, text: str, place_of_it: str, tmp_path: Path
) -> None:
    file = place(host, tmp_path, text)
    for plan in (lambda: adding(HOSTS[host], file, ENTRY), lambda: removing(HOSTS[host], file)):
        with pytest.raises(InvalidInput) as refused:
            plan()
        assert place_of_it in refused.value.why
        assert str(file) in refused.value.message
    assert file.read_text() == text


@pytest.mark.parametrize(
    ("host", "text"),
    [
        ("claude", "[]"),
        ("claude", '{"mcpServers": []}'),
        ("codex", "mcp_servers = 7"),
        ("claude", b"\xff{}"),
        ("codex", b"\xff"),
        ("goose", "- a"),
        ("goose", "extensions: [a]"),
        ("goose", "a: &x 1\nb: *x\n"),
    ],
)
def test_a_file_of_another_shape_is_refused(host: str, text: str | bytes, tmp_path: Path) -> None:
    file = place(host, tmp_path, "")
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(CapdexError):
        adding(HOSTS[host], file, ENTRY)


def test_a_file_that_changed_since_the_plan_is_not_written(tmp_path: Path) -> None:
    file = place("claude", tmp_path, CLAUDE)
    edit = adding(HOSTS["claude"], file, ENTRY)
    file.write_text("{}")
    with pytest.raises(Refused, match="changed meanwhile"):
        write(edit, tmp_path / "backups")
    assert file.read_text() == "{}"
    assert not (tmp_path / "backups").exists()


def test_links_and_modes_stay(tmp_path: Path) -> None:
    file = place("claude", tmp_path, CLAUDE)
    file.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(file)
    copy = write(adding(HOSTS["claude"], link, ENTRY), tmp_path / "backups")
    assert link.is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert copy is not None
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert json.loads(file.read_text())["mcpServers"]["capdex"]["command"] == "/opt/capdex"


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CapdexError) as refused:
        adding(HOSTS["claude"], tmp_path / "file" / "x.json", ENTRY)
    assert refused.value.code == Code.UNREADABLE
    os.mkfifo(tmp_path / "pipe")
    for no_file in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(CapdexError):
            adding(HOSTS["claude"], no_file, ENTRY)
    edit = adding(HOSTS["claude"], tmp_path / "new.json", ENTRY)
    (tmp_path / "new.json").symlink_to(tmp_path / "file" / "x.json")
    with pytest.raises(CapdexError) as unwritten:
        write(edit, tmp_path / "backups")
    assert "its mode, and that the disk is not full" in unwritten.value.fix
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "new.json", "pipe"]


def test_other_forms_of_tables_in_toml_are_edited_too(tmp_path: Path) -> None:
    for text in (
        'mcp_servers = { other = { command = "x" } }\n',
        'mcp_servers.other.command = "x"\n[a]\nb = 1\n',
        '[mcp_servers]\nother = { command = "x" }\n\n[a]\n',
        '[mcp_servers.other]\ncommand = "x"',
        "[a]\n# end\n",
    ):
        file = place("codex", tmp_path, text)
        write(adding(HOSTS["codex"], file, ENTRY), tmp_path / "backups")
        assert adding(HOSTS["codex"], file, ENTRY).action == "unchanged"
        write(removing(HOSTS["codex"], file), tmp_path / "backups")
        assert "capdex" not in file.read_text()
        assert file.read_text().rstrip() == text.rstrip()


def test_comments_behind_the_table_of_the_router_stay(tmp_path: Path) -> None:
    file = place("codex", tmp_path, None)
    write(adding(HOSTS["codex"], file, ENTRY), tmp_path / "backups")
    with file.open("a") as stream:
        stream.write("\n# of the next\n[next]\na = 1\n")
    write(removing(HOSTS["codex"], file), tmp_path / "backups")
    assert "# of the next\n[next]\na = 1\n" in file.read_text()


def test_what_cannot_be_edited_is_refused_with_what_to_write(tmp_path: Path) -> None:
    file = place("goose", tmp_path, "a: &x 1\nb: *x\n")
    with pytest.raises(InvalidInput) as refused:
        adding(HOSTS["goose"], file, ENTRY)
    assert '"capdex": {"enabled": true, ' in refused.value.fix
    assert "by hand, under extensions" in refused.value.fix


@pytest.mark.parametrize("host", ["claude", "codex", "opencode", "goose"])
def test_variables_of_the_user_stay_and_owned_ones_are_of_the_last_time(
    host: str, tmp_path: Path
) -> None:
    file = place(host, tmp_path, None)
    first = {**ENTRY, "env": {"MINE": "1", "OURS": "2", "GONE": "3"}}
    write(adding(HOSTS[host], file, first), tmp_path / "b")
    second = {**ENTRY, "env": {"OURS": "4"}}
    edit = adding(HOSTS[host], file, second, owned=("OURS", "GONE"))
    write(edit, tmp_path / "b")
    expected = HOSTS[host].shape({**ENTRY, "env": {"MINE": "1", "OURS": "4"}})
    assert adding(HOSTS[host], file, second, owned=("OURS",)).known == expected
