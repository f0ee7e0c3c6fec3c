"""`examples/agent.py`: short, and run against an endpoint that speaks the real wire format."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from aiohttp import web

ROOT = Path(__file__).parents[2]
AGENT = ROOT / "examples/agent.py"
SKILL = "---\nname: plain\ndescription: Write plainly.\n---\nUse short words.\n"


def test_the_example_is_short() -> None:
    assert len(AGENT.read_text("utf-8").splitlines()) <= 80


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


SCRIPT = (
    call(1, "find", want="write plainly"),
    call(2, "call", uri="skill:plain", input={}),
    {"content": "Short words it is."},
)


async def test_an_agent_finds_and_calls_through_the_router(tmp_path: Path) -> None:
    (tmp_path / "skills" / "plain").mkdir(parents=True)
    (tmp_path / "skills" / "plain" / "SKILL.md").write_text(SKILL)
    capdex = tmp_path / "capdex"
    capdex.write_text(
        f"#!/bin/sh\nexec {sys.executable} -c 'from capdex_cli.main import main; main()' \"$@\""
        f" --skills {tmp_path / 'skills'}\n"
    )
    capdex.chmod(0o700)
    asked: list[dict[str, Any]] = []

    async def answer(request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == "Bearer key"
        asked.append(await request.json())
        return completion(SCRIPT[len(asked) - 1])

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    environ = {
        **os.environ, "CAPDEX": str(capdex), "CAPDEX_HOME": str(tmp_path / "home"),
        "OPENAI_API_KEY": "key", "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(AGENT), f"http://127.0.0.1:{runner.addresses[0][1]}/v1", "m", "Write.",
        env=environ, stdout=asyncio.subprocess.PIPE, cwd=tmp_path,
    )  # fmt: skip
    out, _ = await process.communicate()
    await runner.cleanup()
    assert (process.returncode, out) == (0, b"Short words it is.\n")
    names = [tool["function"]["name"] for tool in asked[0]["tools"]]
    assert names == ["find", "describe", "call", "route", "manage"]
    results = [x["content"] for x in asked[2]["messages"] if x["role"] == "tool"]
    assert results[0].startswith("skill:plain Write plainly.")
    assert json.loads(results[1])["output"]["prompt"] == "Use short words."
