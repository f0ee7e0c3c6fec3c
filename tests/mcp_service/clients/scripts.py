"""Runs an agent of a framework with a model by script, and tells what reached that model."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .model import LAST, Step, serving

AGENTS = Path(__file__).parent / "agents"
ENDS_WITHIN_S = 240


@dataclass(frozen=True)
class Heard:
    """What reached a model: its functions, and for each step of its script what was handed on.

    `handed` is shorter than the script where the framework ended the run; `errors` is what it
    printed then. `requests` are the characters of each request of the model.
    """

    functions: tuple[dict[str, Any], ...]
    handed: tuple[str, ...]
    requests: tuple[int, ...]
    answered: bool
    errors: str

    @property
    def definitions(self) -> str:
        """The functions as they stand in a request."""
        return json.dumps(self.functions, separators=(",", ":"), ensure_ascii=False)


class Again:
    """Runs agents of one framework as `run` does, in one process that imports it once.

    `errors` is a file for what the process prints beside its answers. End it with `end`.
    """

    def __init__(self, python: Path, errors: Path) -> None:
        self._errors = errors
        with errors.open("wb") as sink:
            self._process = subprocess.Popen(
                [python, AGENTS / "again.py"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                text=True,
            )

    async def __call__(
        self, agent: Path, server: Sequence[str], script: Sequence[Step], env: Mapping[str, str]
    ) -> Heard:
        """Run an agent to its end: `server` is a URL, or `--` and a command."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with serving(script) as model:
            environment = {**os.environ, "PYTHONPATH": str(AGENTS), **env}
            asked = {"argv": [str(agent), model.url, *server], "env": environment}
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()
            answer = asyncio.to_thread(self._process.stdout.readline)
            try:
                line = await asyncio.wait_for(asyncio.shield(answer), ENDS_WITHIN_S)
            except TimeoutError:
                self._process.kill()
                raise
        said = json.loads(line or '{"code": 1, "out": ""}')
        return Heard(
            tuple(model.functions),
            tuple(model.handed),
            tuple(model.requests),
            said["code"] == 0 and LAST in said["out"],
            self._errors.read_text("utf-8", "replace"),
        )

    def end(self) -> None:
        """End the process: it goes when its stdin does."""
        with self._process:
            pass


async def run(
    python: Path,
    agent: Path,
    server: Sequence[str],
    script: Sequence[Step],
    env: Mapping[str, str] | None = None,
    *,
    folder: Path | None = None,
    fills: bool = False,
) -> Heard:
    """Run an agent to its end: `server` is a URL, or `--` and a command that runs in `folder`."""
    with serving(script, fills=fills) as model:
        process = await asyncio.create_subprocess_exec(
            python,
            *(str(agent), model.url, *server),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(AGENTS), **(env or {})},
            cwd=folder,
        )
        try:
            out, errors = await asyncio.wait_for(process.communicate(), ENDS_WITHIN_S)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    return Heard(
        tuple(model.functions),
        tuple(model.handed),
        tuple(model.requests),
        process.returncode == 0 and LAST in out.decode(),
        errors.decode(errors="replace"),
    )
