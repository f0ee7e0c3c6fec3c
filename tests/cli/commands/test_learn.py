"""`capdex learn`: the plan, the question, what is kept, and an agent that uses it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands.test_use import called, router
from tests.e2e.forks import Warm
from tests.router.commands.programs import HERE, MANIFEST, emails, write_inbox


@pytest.fixture
def inbox(tmp_path: Path) -> list[str]:
    """The words that learn the mail program."""
    write_inbox(tmp_path)
    files = tmp_path / "cmp"
    files.mkdir()
    (files / "manifest.json").write_text(json.dumps(MANIFEST))
    (files / "capability.json").write_bytes((HERE / "data/inboxd.json").read_bytes())
    base = sys.base_prefix
    return [str(tmp_path / "inbox"), "--intents", str(files), "--writable", "--read", base]


def test_a_program_is_learned_listed_and_forgotten(capdex: Any) -> None:
    plan = capdex("learn", "wc")
    assert plan.exit_code == 4
    assert '"count lines": "wc --lines {file}"' in plan.stderr
    assert capdex.json("learn", "wc", "--dry-run")["action"] == "planned"
    assert capdex.json("learn")["results"] == []
    learned = capdex.json("learn", "wc", "--yes")
    assert (learned["action"], learned["tool"]) == ("learned", "wc")
    assert [one["capability_id"] for one in learned["calls"]] == [
        "learned:wc#count-lines",
        "learned:wc#count-words",
    ]
    assert capdex.json("learn", "wc")["action"] == "unchanged"
    (listed,) = capdex.json("learn")["results"]
    assert {**listed, "action": "", "schema": ""} == {**learned, "action": "", "schema": ""}
    assert [one["capability"] for one in capdex.json("grant")["results"]] == ["learned:wc"]
    assert capdex.json("learn", "wc", "--remove")["action"] == "removed"
    assert capdex.json("learn")["results"] == capdex.json("grant")["results"] == []
    log = Path(os.environ["CAPDEX_HOME"]) / "data/router/audit.jsonl"
    events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert events == ["learn", "forget"]


def test_plain_names_the_program_that_is_learned_and_whose_rights_these_are(capdex: Any) -> None:
    for words in (("learn", "wc", "--dry-run"), ("learn", "wc"), ("learn", "wc"), ("learn",)):
        assert capdex("--yes", *words, "--plain").stdout == "wc\n", words
    assert capdex("grant", "--plain").stdout == "learned:wc\n"
    assert capdex("learn", "wc", "--remove", "--plain").stdout == "wc\n"
    assert capdex("learn", "--plain").stdout == capdex("grant", "--plain").stdout == ""


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["no-such-program"], 1),
        (["wc", "--remove"], 1),
        (["--remove"], 2),
        (["wc", "--intents", "nothing.json"], 2),
    ],
)
def test_what_cannot_be_learned_is_told(capdex: Any, words: list[str], code: int) -> None:
    assert capdex("learn", *words, "--yes").exit_code == code


def test_a_program_is_learned_by_its_help_and_called(
    capdex: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    (tmp_path / "work/notes.txt").write_text("9\n10\n")
    learned = capdex.json("learn", "sort", "--yes")
    (call,) = learned["calls"]
    assert (call["capability_id"], call["asks"]) == ("learned:sort#run", True)
    assert call["command"] == "sort [options] {file}"
    words = ("call", "learned:sort#run", '{"numeric_sort": true, "file": ["notes.txt"]}')
    refused = capdex(*words)
    assert refused.exit_code != 0
    assert '"--numeric-sort" "notes.txt"' in refused.stderr
    assert capdex.json(*words, "--yes")["output"] == {"lines": ["9", "10"]}


async def test_an_agent_uses_what_is_learned_and_a_person_agrees_to_what_destroys(
    tmp_path: Path, capdex: Any, inbox: list[str], warm: Warm
) -> None:
    learned = await asyncio.to_thread(lambda: capdex("learn", *inbox, "--yes"))
    assert learned.exit_code == 0
    wish = {"want": "delete these emails", "input": {"ids": ["abc123"]}, "confirm": True}
    async with router(warm, tmp_path, "--work", str(tmp_path / "work")) as client:
        found = await called(client, {"want": "unread count"})
        assert found["output"] == {
            "called": {"uri": "learned:inboxd#check-email", "input": {}},
            "result": [{"name": "work", "unread": 3}],
        }
        error = (await called(client, wish))["error"]
        assert error["reason"] == "CONFIRM_NEEDED"
        assert emails(tmp_path) == ["abc123", "def456", "ghi789"]
        words = (
            error["details"]["fix"]
            .removeprefix("a person can run: capdex ")
            .replace("'", "")
            .split()
        )
        assert capdex(*words, "--yes").exit_code == 0
        assert (await called(client, wish))["output"]["deleted"] == 1
    assert emails(tmp_path) == ["def456", "ghi789"]


async def test_an_agent_without_a_person_learns_nothing(
    tmp_path: Path, capdex: Any, warm: Warm
) -> None:
    async with router(warm, tmp_path) as client:
        found = await client.call_tool("manage", {"action": "learn", "target": "wc"})
        assert found.is_error
        assert "capdex learn wc" in str(found.structured_content)
        learned = await asyncio.to_thread(capdex, "learn", "wc", "--yes")
        assert learned.exit_code == 0
        listed = await client.call_tool("manage", {"action": "list"})
        assert "learned:wc#count-lines" in listed.content[0].text
