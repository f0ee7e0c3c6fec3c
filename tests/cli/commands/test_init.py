"""`capdex init` of what an author has: what it says, and when."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

SKILL = "---\nname: 2fa-helper\ndescription: Helps.\nlicense: UNLICENSED\n---\nDo.\n"


@pytest.fixture
def skill(folder: Path) -> str:
    (folder / "skill").mkdir()
    (folder / "skill/SKILL.md").write_text(SKILL)
    return "skill"


def test_the_report_is_shown_before_the_file_is_written(
    capdex: Any, folder: Path, skill: str
) -> None:
    (folder / "fa-helper.acp.yaml").write_text("of another")
    result = capdex("init", "--from-skill", skill, "--format", "human")
    assert result.exit_code == 2
    assert "2fa-helper" in result.stdout
    assert "UNLICENSED" in result.stdout
    written = capdex("init", "--from-skill", skill, "--format", "human", "--out", "own.acp.yaml")
    lines = written.stdout.splitlines()
    assert lines.index("✓ own.acp.yaml") > next(i for i, x in enumerate(lines) if "UNLICENSED" in x)


@pytest.mark.parametrize("place", ["skill", "skill/SKILL.md"])
def test_a_pipe_in_the_place_of_a_skill_is_not_waited_for(
    capdex: Any, folder: Path, skill: str, place: str
) -> None:
    (folder / "skill/SKILL.md").unlink()
    os.mkfifo(folder / "skill/SKILL.md")
    assert "cannot be read" in capdex("init", "tides", "--from-skill", place).stderr


def test_a_file_that_cannot_be_written_whole_is_not_left_behind(folder: Path) -> None:
    made = (sys.executable, "-m", "capdex", "init", "tides", "--kind", "prompt")
    done = subprocess.run(
        ["bash", "-c", 'ulimit -f 0; exec "$@"', "bash", *made],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "fix: check the path, and that the disk is not full" in done.stderr
    assert list(folder.glob("tides*")) == []


def test_the_next_command_can_be_pasted_whatever_the_file_is_called(
    capdex: Any, folder: Path
) -> None:
    more = ("--kind", "prompt", "--format", "human", "--out", "my tides.yaml")
    shown = capdex("init", "tides", *more).stdout
    assert "  edit it, then: capdex validate 'my tides.yaml'\n" in shown


@pytest.mark.parametrize("more", [(), ("--from-skill", "skill")])
def test_a_licence_that_is_no_expression_is_refused(
    capdex: Any, folder: Path, skill: str, more: tuple[str, ...]
) -> None:
    result = capdex("init", "tides", "--license", "Proprietary", *more)
    assert (result.exit_code, list(folder.glob("*.yaml"))) == (1, [])
    assert "SPDX" in result.stderr
    document = capdex.json("init", "tides", "--license", "mit", *more)
    assert "license: " in (text := Path(document["file"]).read_text())
    assert "MIT" in text


def test_the_files_of_a_skill_are_counted_and_their_folder_is_named(
    capdex: Any, folder: Path, skill: str
) -> None:
    (folder / "skill/a.md").write_text("A" * 2048)
    away = capdex("init", "--from-skill", skill, "--format", "human")
    assert "  1 file, 2.0 KiB, named with their hashes" in away.stdout
    assert "capdex validate fa-helper.acp.yaml --files skill" in away.stdout
    beside = capdex.json("init", "--from-skill", skill, "--out", "skill.acp.yaml")
    assert (beside["files"], beside["next"]) == (1, "capdex validate skill.acp.yaml")
    elsewhere = capdex("validate", "fa-helper.acp.yaml", "--format", "human").stdout
    assert "so they were not checked" in elsewhere
    assert "fix: name their folder with --files" in elsewhere
    checked = capdex.json("validate", "fa-helper.acp.yaml", "--files", skill)
    assert checked["ok"]
    (folder / "skill/a.md").write_text("B")
    assert capdex("validate", "fa-helper.acp.yaml", "--files", skill).exit_code == 1


@pytest.mark.parametrize("option", ["--from-openapi", "--from-openai", "--from-mcp"])
def test_a_file_of_another_form_is_told_its_option(
    capdex: Any, folder: Path, skill: str, option: str
) -> None:
    result = capdex("init", option, skill, "--format", "human")
    assert "it is an Agent Skill: capdex init --from-skill skill" in result.stderr
    (folder / "api.yaml").write_text("openapi: 3.1.0\npaths: {}\n")
    other = capdex("init", option, "api.yaml", "--format", "human")
    told = "it is an OpenAPI document: capdex init --from-openapi api.yaml" in other.stderr
    assert told == (option != "--from-openapi")


@pytest.mark.parametrize("option", ["--from-openapi", "--from-openai", "--from-mcp"])
def test_a_file_that_is_not_there_is_told_with_what_to_do(
    capdex: Any, folder: Path, option: str
) -> None:
    result = capdex("init", option, "no.json", "--format", "human")
    assert "no.json cannot be read" in result.stderr
    assert "fix: check the path, or give another file" in result.stderr


def test_a_kind_beside_a_source_is_refused(capdex: Any, folder: Path, skill: str) -> None:
    result = capdex("init", "--from-skill", skill, "--kind", "tool")
    assert (result.exit_code, list(folder.glob("*.yaml"))) == (2, [])
    assert "leave out --kind or --from-" in result.stderr


async def test_no_package_has_the_password_of_the_url_it_came_from(
    capdex: Any, folder: Path
) -> None:
    async def document(_: web.Request) -> web.Response:
        paths = {"/rain": {"get": {"operationId": "rain"}}}
        return web.json_response({"openapi": "3.1.0", "servers": [{"url": "/v1"}], "paths": paths})

    application = web.Application()
    application.router.add_get("/", document)
    async with TestServer(application) as server:
        url = f"http://user:hunter2@127.0.0.1:{server.port}?key=hunter2"
        made = await asyncio.to_thread(capdex, "init", "--from-openapi", url, "--json")
    assert made.exit_code == 0
    file = json.loads(made.stdout)["file"]
    text = await asyncio.to_thread((folder / file).read_text)
    assert "hunter2" not in made.stdout + made.stderr + text


def test_a_long_cell_of_the_report_leaves_the_others_near(capdex: Any, folder: Path) -> None:
    hooks: dict[str, Any] = {f"hook_number_{i}": {} for i in range(40)}
    document = {"openapi": "3.1.0", "info": {"title": "Rain"}, "webhooks": hooks}
    document |= {"paths": {"/rain": {"get": {"operationId": "rain", "deprecated": True}}}}
    (folder / "rain.json").write_text(json.dumps(document))
    shown = capdex("init", "--from-openapi", "rain.json", "--format", "human").stdout
    (line,) = [x for x in shown.splitlines() if "webhooks" in x]
    assert line.endswith("…  a package receives no calls")
    assert "--json has each row" in shown
    made = capdex.json("init", "--from-openapi", "rain.json", "--out", "own.acp.yaml")
    assert ["hook_number_9, " in x["before"] for x in made["notes"] if x["subject"] == "webhooks"]


def test_many_rows_that_differ_in_their_word_alone_are_one(capdex: Any, folder: Path) -> None:
    names = [f"set{i}" for i in range(9)]
    members = {x: {"type": "string", "readOnly": True} for x in names} | {"a": {"type": "string"}}
    content = {"application/json": {"schema": {"type": "object", "properties": members}}}
    body = {"required": True, "content": content}
    document: dict[str, Any] = {"openapi": "3.1.0", "info": {"title": "Rain"}}
    document |= {"paths": {"/rain": {"post": {"operationId": "rain", "requestBody": body}}}}
    (folder / "rain.json").write_text(json.dumps(document))
    shown = capdex("init", "--from-openapi", "rain.json", "--format", "human").stdout
    (row,) = [x.split() for x in shown.splitlines() if "readOnly" in x]
    assert " ".join(row) == "rain body set0 and 8 more left out readOnly the service sets it"
    made = capdex.json("init", "--from-openapi", "rain.json", "--out", "own.acp.yaml")
    subjects = [x["subject"] for x in made["notes"] if x["before"] == "readOnly"]
    assert subjects == [f"body {x}" for x in names]


def test_rows_that_differ_in_their_tool_alone_are_one(capdex: Any, folder: Path) -> None:
    texts = [{"name": f"tool{i}", "title": f"Tool {i}", "description": "Tells."} for i in range(4)]
    tools: list[dict[str, Any]] = [{**x, "inputSchema": {"type": "object", "of": 1}} for x in texts]
    tools[0]["icons"] = "rain"
    (folder / "tools.json").write_text(json.dumps(tools))
    shown = capdex("init", "--from-openai", "tools.json", "--format", "human").stdout
    rows = [x.split() for x in shown.splitlines() if x.startswith("    tool")]
    assert [x[:7] for x in rows] == [
        ["tool0", "and", "3", "more", "schema", "word", "of"],
        ["tool0", "and", "3", "more", "parameters", "changed", "any"],
        ["tool0", "and", "3", "more", "title", "left", "out"],
        ["tool0", "icons", "left", "out", "rain", "a", "package"],
    ]
    made = capdex.json("init", "--from-openai", "tools.json", "--out", "own.acp.yaml")
    assert [x["source"] for x in made["notes"] if x["subject"] == "title"] == [
        x["name"] for x in tools
    ]
