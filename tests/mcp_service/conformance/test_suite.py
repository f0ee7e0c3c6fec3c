"""The official conformance suite against our own server and routes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from mcp_service.mcp import endpoint
from mcp_service.mcp.server import build_server
from mcp_service.mcp.subscriptions.methods import Subscriptions
from mcp_service.mcp.tools import Profile
from mcp_service.queries.reader import Reader

from .fixtures import with_fixtures

pytestmark = pytest.mark.real

HERE = Path(__file__).parent
SUITE = HERE.parents[2] / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
RUN_S = 300


@pytest.fixture(autouse=True)
def fixtures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the endpoint build our server with the fixtures beside its own features."""

    def build(reader: Reader, profile: Profile, subscriptions: Subscriptions) -> Any:
        return with_fixtures(build_server(reader, profile, subscriptions), subscriptions.feed)

    monkeypatch.setattr(endpoint, "build_server", build)


@pytest.mark.parametrize(
    "options",
    [("--requirements", "2026-07-28")],
    ids=lambda options: options[1],
)
async def test_every_scenario_passes_but_those_of_features_that_we_do_not_offer(
    options: tuple[str, str], fixtures: None, node_url: str, node_binary: str, tmp_path: Path
) -> None:
    process = await asyncio.create_subprocess_exec(
        *(node_binary, str(SUITE), "server", "--url", f"{node_url}/mcp", *options),
        *("--expected-failures", str(HERE / f"expected_failures_{options[1]}.yaml")),
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), RUN_S)
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode == 0, output.decode()
