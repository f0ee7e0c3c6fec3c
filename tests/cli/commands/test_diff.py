"""`capdex diff`: what it shows, what it exits with, and whom it believes."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"
CONVERTER = [EXAMPLES / f"unit-converter-{x}.acp.yaml" for x in ("1.0.0", "1.1.0", "1.2.0")]
RED = "\x1b[31m"

KEYS = {
    *("schema", "old", "new", "changes", "required", "taken", "enough", "schema_conflict"),
    *("permissions_widened", "error", "text"),
}


def edited(folder: Path, name: str, *edits: tuple[str, str], source: Path = CONVERTER[1]) -> str:
    """A copy of an example with some of its text replaced."""
    text = source.read_text("utf-8")
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    (folder / name).write_text(text, encoding="utf-8")
    return name


BREAK = ('["metric", "us", "imperial"]', '["metric", "us"]')


def test_a_release_that_moves_as_far_as_it_owes_is_fine(capdex: Any) -> None:
    result = capdex("diff", *map(str, CONVERTER[:2]), "--format", "human")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[:5] == [
        "unit-converter 1.0.0 → unit-converter 1.1.0",
        "",
        "permissions",
        '  ! minor  asks for the permission "state.create"',
        '  ! minor  asks for the permission "state.query"',
    ]
    assert lines[-1] == "required: minor · taken: minor ✓"


def test_a_smaller_step_is_shown_refused_and_mended_in_words(capdex: Any, folder: Path) -> None:
    patch = edited(folder, "patch.acp.yaml", ("@1.1.0", "@1.0.1"))
    result = capdex("diff", str(CONVERTER[0]), patch, "--format", "human")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-3:] == [
        "required: minor · taken: patch ✗",
        "  1.0.1 is a patch of 1.0.0, and a patch never widens what a package may do",
        "  fix: raise metadata.id to 1.1.0, or insist with publish --allow widened-permission"
        " --allow smaller-step",
    ]
    assert result.stderr == ""


def test_json_says_all_of_it(capdex: Any, folder: Path) -> None:
    major = edited(folder, "next.acp.yaml", ("@1.1.0", "@2.0.0"), BREAK)
    result = capdex("diff", str(CONVERTER[1]), major, "--json")
    value = json.loads(result.stdout)
    assert result.exit_code == 1
    assert set(value) == KEYS
    assert value["schema"] == "capdex.diff/1"
    assert set(value["old"]) == {"source", "cap_uri", "cid", "sha256"}
    assert (value["required"], value["taken"], value["enough"]) == ("major", "major", False)
    assert (value["schema_conflict"], value["permissions_widened"]) == (True, False)
    assert value["error"]["code"] == "SCHEMA_CHANGED"
    assert value["changes"][0] == {
        "section": "schema",
        "path": "schema.system",
        "kind": "changed",
        "step": "major",
        "risk": False,
        "message": 'system takes "imperial" no longer',
        "old": '["imperial"]',
        "new": None,
    }
    assert value["text"] is None


def test_what_needs_a_second_look_is_red_and_marked(capdex: Any, folder: Path) -> None:
    new = edited(folder, "new.acp.yaml", ("@1.1.0", "@2.0.0"), BREAK)
    shown = capdex("diff", str(CONVERTER[0]), new, "--format", "human", "--color", "always").stdout
    red = [line for line in shown.splitlines() if f"  {RED}" in line]
    assert len(red) == 3
    assert "asks for the permission" in red[0]
    assert "✗" in red[2]
    assert "takes" in red[2]


def test_a_package_and_itself_owe_nothing(capdex: Any) -> None:
    same = str(CONVERTER[0])
    result = capdex("diff", same, same, "--format", "human")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[2:] == [
        "no changes of meaning",
        "",
        "required: none · taken: none ✓",
    ]
    assert capdex("diff", same, same, "--plain").stdout == "none\n"


def test_a_draft_that_still_has_the_old_version_is_told_the_next_one(
    capdex: Any, folder: Path
) -> None:
    draft = edited(folder, "draft.acp.yaml", ("@1.1.0", "@1.0.0"))
    result = capdex("diff", str(CONVERTER[0]), draft, "--format", "human")
    assert result.exit_code == 1
    assert "required: minor · taken: none ✗" in result.stdout
    assert "1.0.0 is the same version as before" in result.stdout
    assert "1.1.0" in result.stdout.splitlines()[-1]


def test_the_wrong_way_round_is_refused(capdex: Any) -> None:
    result = capdex("diff", *map(str, CONVERTER[1::-1]), "--format", "human")
    assert result.exit_code == 1
    assert "1.0.0 is lower than 1.1.0" in result.stdout


def test_two_capabilities_owe_each_other_nothing(capdex: Any) -> None:
    result = capdex("diff", str(CONVERTER[0]), str(EXAMPLES / "note.acp.yaml"), "--plain")
    assert (result.exit_code, result.stdout) == (0, "none\n")
    assert "two capabilities" in result.stderr


def test_text_shows_the_lines_with_nothing_a_terminal_obeys(capdex: Any, folder: Path) -> None:
    new = edited(folder, "new.acp.yaml", ("Answer in one line", "Answer\tin two lines"))
    result = capdex("diff", str(CONVERTER[1]), new, "--text", "--format", "human")
    assert "+  Answer\\tin two lines:" in result.stdout
    assert "--- did:nuwa:cap:unit-converter@1.1.0" in result.stdout
    value = json.loads(capdex("diff", str(CONVERTER[1]), new, "--text", "--json").stdout)
    assert [line for line in value["text"] if line.startswith("-  Answer")]


def test_texts_too_long_to_line_up_are_refused(capdex: Any, folder: Path) -> None:
    long = edited(folder, "long.acp.yaml", ("\ntools:", "\n" * 11_000 + "tools:"))
    assert capdex("diff", long, str(CONVERTER[2])).exit_code == 0
    result = capdex("diff", long, str(CONVERTER[2]), "--text")
    assert result.exit_code == 1
    assert "leave out --text" in result.stderr


def test_stdin_is_one_of_the_two(capdex: Any) -> None:
    text = CONVERTER[1].read_text("utf-8")
    assert capdex("diff", str(CONVERTER[0]), "-", "--plain", stdin=text).stdout == "minor\n"
    result = capdex("diff", "-", "-", stdin=text)
    assert result.exit_code == 2
    assert "only one of the two" in result.stderr


def test_what_is_no_package_is_told_with_its_first_problem(capdex: Any, folder: Path) -> None:
    (folder / "bad.acp.yaml").write_text("metadata: {id: x}\n", encoding="utf-8")
    result = capdex("diff", "bad.acp.yaml", str(CONVERTER[0]))
    assert result.exit_code == 1
    assert "bad.acp.yaml is not a valid package" in result.stderr
    assert "fix: capdex validate bad.acp.yaml" in result.stderr
    (folder / "bad.acp.yaml").write_bytes(b"\xff")
    assert "why: byte 0" in capdex("diff", "bad.acp.yaml", str(CONVERTER[0])).stderr
    assert capdex("diff", "gone.acp.yaml", str(CONVERTER[0])).exit_code == 2


@pytest.mark.parametrize("code", ["STEP_TOO_SMALL", "SCHEMA_CHANGED"])
def test_explain_teaches_the_table(capdex: Any, code: str) -> None:
    shown = capdex("explain", code, "--format", "human").stdout
    assert "a permission is added" in shown
    assert "capdex diff OLD NEW" in shown
    assert shown.endswith(capdex("help", "steps").stdout)


# from the chain ---------------------------------------------------------------------------------


@pytest.fixture
def published(capdex: Any, anvil: Any, node: Any, folder: Path, monkeypatch: Any) -> str:
    """The file of weather 0.1.0, which is on a chain of this test's own, and at the gateway."""
    secret = folder / "pass"
    secret.write_text("correct horse", encoding="utf-8")
    secret.chmod(0o600)
    monkeypatch.setenv("CAPDEX_PASSPHRASE_FILE", str(secret))
    monkeypatch.setenv("CAPDEX_RPC_URL", anvil.url)
    monkeypatch.setenv("CAPDEX_CHAIN_ID", "31337")
    monkeypatch.setenv("CAPDEX_IPFS", f"dir:{folder / 'blocks'}")
    address = capdex.json("account", "new", "--light")["address"]
    call = {"jsonrpc": "2.0", "id": 1, "method": "anvil_setBalance"}
    body = json.dumps(call | {"params": [address, hex(10**18)]}).encode()
    request = urllib.request.Request(anvil.url, body, {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request) as reply:  # noqa: S310 - the chain of this test
        reply.read()
    monkeypatch.setenv("CAPDEX_REGISTRY", capdex.json("deploy", "--yes")["registry"])
    capdex.json("init", "weather", "--kind", "prompt", "--description", "Tells the weather.")
    urls = (x for key in ("mcp", "node", "gateway") for x in ("--config", f"{key}-url="))
    value = capdex.json("publish", "weather.acp.yaml", "--yes", *urls)
    data = (folder / "weather.acp.yaml").read_bytes()
    node.blocks[value["cid"]] = data
    node.answer("resolve_capability", {"cap_uri": value["cap_uri"], "sha256": value["sha256"]})
    return "weather.acp.yaml"


def test_a_release_is_fetched_and_verified_before_it_is_compared(
    capdex: Any, node: Any, folder: Path, published: str
) -> None:
    next_one = edited(
        folder,
        "next.acp.yaml",
        ("@0.1.0", "@0.1.1"),
        ("Tells the weather.", "Tells the weather of a city."),
        source=folder / published,
    )
    for name in ("weather", "weather@0.1.0", "did:nuwa:cap:weather@^0.1"):
        value = capdex.json("diff", name, next_one)
        assert (value["old"]["source"], value["taken"]) == (name, "patch")
        assert [x["path"] for x in value["changes"]] == ["metadata.description"]
    (cid,) = node.blocks
    node.blocks[cid] += b"# more\n"
    result = capdex("diff", "weather@0.1.0", next_one)
    assert (result.exit_code, result.stdout) == (3, "")
    assert capdex("diff", "weather@9.9.9", next_one).exit_code == 1


def test_the_rule_below_1_0_0_is_said_in_words(capdex: Any, folder: Path) -> None:
    old = edited(folder, "old.acp.yaml", ("@1.0.0", "@0.1.0"), source=CONVERTER[0])
    new = edited(folder, "new.acp.yaml", ("@1.1.0", "@0.2.0"))
    shown = capdex("diff", old, new, "--format", "human").stdout.splitlines()
    assert shown[-2:] == [
        "required: minor · taken: minor ✓",
        "  below 1.0.0: what breaks callers requires a minor step (0.0.z: a patch), "
        "what widens rights a minor step, all else a patch",
    ]
