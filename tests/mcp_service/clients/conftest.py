"""Real MCP clients as processes: each takes commands as lines of JSON (see lines.mjs, lines.py)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.forks import Warm

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[2]
PYTHON_1 = REPOSITORY / ".tools" / "mcp1" / "bin" / "python"
LINE_BYTES = 4 << 20  # an answer is a line: a reply of 1 MiB, escaped
ANSWER_S = 60

# Name -> its command, without the server. Two eras: the handshake, and 2026-07-28.
COMMANDS = {
    "typescript-1": ("node", HERE / "typescript1.mjs"),
    "typescript-2-legacy": ("node", HERE / "typescript2.mjs", "legacy"),
    "typescript-2": ("node", HERE / "typescript2.mjs", "auto"),
    "python-1": (PYTHON_1, HERE / "python1.py"),
    "python-2-legacy": ("python", HERE / "python2.py", "legacy"),
    "python-2": ("python", HERE / "python2.py", "auto"),
}
MODERN = frozenset({"typescript-2", "python-2"})


class Thrown(Exception):
    """The SDK raised instead of giving its caller an answer; the text of what it raised."""


class Driver:
    """A client in a process of its own, connected to one server."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def __call__(self, action: str, **given: Any) -> Any:
        """Return the result of an action in the JSON of the protocol; raises Thrown."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps({"action": action, **given}).encode() + b"\n")
        line = await asyncio.wait_for(stdout.readline(), ANSWER_S)
        assert line, f"the client ended with {await self._process.wait()}"
        answer = json.loads(line)
        if "thrown" in answer:
            raise Thrown(answer["thrown"])
        return answer["result"]


@pytest.fixture(params=COMMANDS)
def client(request: pytest.FixtureRequest) -> str:
    """The name of each client in turn."""
    return str(request.param)


@pytest.fixture
def start(
    node_binary: str, warm: Warm, tmp_path: Path
) -> Callable[..., AbstractAsyncContextManager[Driver]]:
    """Start a client by its name, with a URL, or `--` and the command of a server on stdio."""

    if not PYTHON_1.exists():
        pytest.fail("the MCP SDK 1.x is missing: run `make mcp1`", pytrace=False)

    programs = {"node": node_binary, "python": warm.python}

    @asynccontextmanager
    async def start(name: str, *server: str) -> AsyncIterator[Driver]:
        program, *args = COMMANDS[name]
        errors = tmp_path / f"{name}.stderr"
        with errors.open("w") as sink:
            process = await asyncio.create_subprocess_exec(
                *(programs.get(str(program), str(program)), *args, *server),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=sink,
                limit=LINE_BYTES,
            )
        try:
            yield Driver(process)
            assert process.stdin is not None
            process.stdin.close()
            await asyncio.wait_for(process.wait(), ANSWER_S)
            assert process.returncode == 0, errors.read_text()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
            print(errors.read_text())  # noqa: T201 - pytest shows it with a failure

    return start


@pytest.fixture
def stdio(warm: Warm, database: str) -> tuple[str, ...]:
    """The command of a server on stdio over the usual index and its packages."""
    blocks = Path(database.removeprefix("sqlite:///")).parent / "blocks"
    return (warm.capdex, "mcp", "--db", database, "--blocks", str(blocks))
