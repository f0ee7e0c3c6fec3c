"""`examples/agent.py`: short, and run against an endpoint that speaks the real wire format."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

ROOT = Path(__file__).parents[2]
AGENT = ROOT / "examples/agent.py"
SKILL = "---\nname: plain\ndescription: Write plainly.\n---\nUse short words.\n"


@pytest.mark.parametrize("page", ["README.md", "docs/router.md"])
def test_pages_tell_the_length_of_the_example(page: str) -> None:
    lines = len(AGENT.read_text("utf-8").splitlines())
    assert f"{lines} lines" in (ROOT / page).read_text("utf-8")


def completion(message: dict[str, Any]) -> web.Response:
    """A response of the chat completions API."""
    reason = "tool_calls" if message.get("tool_calls") else "stop"
    return web.json_response(
        {
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [
                {"index": 0, "finish_reason": reason, "logprobs": None,
                 "message": {"role": "assistant", "content": None, **message}}
            ],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
    )  # fmt: skip


def call(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    """A message of the model that calls a tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"tool_calls": [{"id": f"call_{number}", "type": "function", "function": function}]}


FIND = (
    call(1, "find", want="write plainly"),
    call(2, "call", uri="skill:plain", input={}),
    {"content": "Short words it is."},
)
LEARN = (call(1, "manage", action="learn", target="sort"), {"content": "As you like."})


async def run(
    directory: Path, script: Sequence[dict[str, Any]], typed: str = ""
) -> tuple[bytes, list[dict[str, Any]]]:
    """Run the agent with a model that gives these messages; return its output and the requests."""
    (directory / "skills" / "plain").mkdir(parents=True)
    (directory / "skills" / "plain" / "SKILL.md").write_text(SKILL)
    capdex = directory / "capdex"
    capdex.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -c "from capdex_cli.main import main; main()" "$@"'
        f' --skills "{directory}/skills"\n'
    )
    capdex.chmod(0o700)
    asked: list[dict[str, Any]] = []

    async def answer(request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == "Bearer key"
        asked.append(await request.json())
        return completion(script[len(asked) - 1])

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    environ = {
        **os.environ, "CAPDEX": str(capdex), "CAPDEX_HOME": str(directory / "home"),
        "OPENAI_API_KEY": "key", "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(AGENT), f"http://127.0.0.1:{runner.addresses[0][1]}/v1", "m", "Write.",
        env=environ, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, cwd=directory,
    )  # fmt: skip
    out, _ = await process.communicate(typed.encode())
    await runner.cleanup()
    assert process.returncode == 0
    return out, asked


def results(request: dict[str, Any]) -> list[str]:
    """The results of tools that a request to the model has."""
    return [x["content"] for x in request["messages"] if x["role"] == "tool"]


async def test_an_agent_finds_and_calls_through_the_router(tmp_path: Path) -> None:
    out, asked = await run(tmp_path, FIND)
    assert out == b"Short words it is.\n"
    names = [tool["function"]["name"] for tool in asked[0]["tools"]]
    assert names == ["find", "describe", "call", "route", "manage"]
    found, called = results(asked[2])
    assert found.startswith("skill:plain Write plainly.")
    assert json.loads(called)["output"]["prompt"] == "Use short words."


async def test_without_its_arguments_the_example_says_how_it_is_called() -> None:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, str(AGENT), stderr=pipe)
    _, said = await process.communicate()
    assert process.returncode == 1
    assert b"python examples/agent.py https://" in said
    assert b"Traceback" not in said


async def test_only_a_typed_yes_of_its_person_is_a_yes(tmp_path: Path) -> None:
    typed = "no\n\ny\n"  # and then the end of stdin
    _, asked = await run(tmp_path, (*LEARN[:1] * 4, LEARN[1]), typed)
    said = results(asked[4])
    assert [re.findall("NO_CONSENT|learned", x)[:1] for x in said] == [["NO_CONSENT"]] * 4


async def test_a_typed_yes_is_a_yes(tmp_path: Path) -> None:
    _, asked = await run(tmp_path, LEARN, "yes\n")
    assert "learned" in results(asked[1])[0]
