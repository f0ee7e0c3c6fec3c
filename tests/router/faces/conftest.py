"""Clients of the demo router, over real stdio or in memory, in both revisions of the protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mcp_types as types
import orjson
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from capdex_router.faces.server import build_server
from tests.e2e.forks import Warm
from tests.router.faces.demo import actions

ROOT = Path(__file__).parents[3]
ERAS = {"handshake": "legacy", "stateless": "auto"}  # up to 2025-11-25, from 2026-07-28 on

Connect = Callable[..., AbstractAsyncContextManager[Client]]


@dataclass
class User:
    """Answers what the host asks; the question has no fields, so hosts send any content or none."""

    action: str = "accept"
    content: Any = None
    asked: list[str] = field(default_factory=list)

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        self.asked.append(params.message)
        answer = {"action": self.action, "content": self.content}
        return types.ElicitResult.model_validate(answer)


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def connect(tmp_path: Path, warm: Warm) -> Connect:
    """Open a client of a demo router whose directory is `tmp_path`, with `stdio` in a process."""

    @asynccontextmanager
    async def opened(
        era: str, user: User | None = None, count: int = 0, *, stdio: bool = False
    ) -> AsyncIterator[Client]:
        if not stdio:
            server = build_server(actions(tmp_path, count))
            async with Client(server, mode=ERAS[era], elicitation_callback=user) as client:
                yield client
            return
        process = StdioServerParameters(
            command=warm.python,
            args=[str(Path(__file__).with_name("demo.py")), str(tmp_path), str(count)],
            cwd=ROOT,
            env={"PYTHONPATH": str(ROOT)},
        )
        async with Client(process, mode=ERAS[era], elicitation_callback=user) as client:
            yield client

    return opened


def said(result: Any) -> str:
    """The text of a result."""
    return "".join(block.text for block in result.content)


def audit(path: Path) -> list[dict[str, Any]]:
    """The lines of the audit log of the demo router in a directory."""
    return [orjson.loads(line) for line in (path / "audit.jsonl").read_bytes().splitlines()]
