"""The official conformance suite against our own server and routes."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from capdex_indexer.query.index import Index
from capdex_service.mcp import endpoint
from capdex_service.mcp.server import build_server

from .fixtures import with_fixtures

pytestmark = pytest.mark.real

HERE = Path(__file__).parent
SUITE = HERE.parents[2] / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
RUN_S = 300


@pytest.fixture
async def url(growing: Any, serve: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """A node whose server has the fixtures beside its own features."""
    versions = itertools.count()

    def publish() -> None:
        growing.publish("note", f"1.{next(versions)}.0")
        growing.follow()

    def build(*args: Any, **options: Any) -> Any:
        return with_fixtures(build_server(*args, **options), publish)

    monkeypatch.setattr(endpoint, "build_server", build)
    publish()
    index = Index(growing.url)
    async with serve(index, blocks=growing.folder / "blocks") as address:
        yield address
    index.close()


@pytest.mark.parametrize(
    "options",
    [("--requirements", "2026-07-28"), ("--spec-version", "2025-11-25")],
    ids=lambda options: options[1],
)
async def test_every_scenario_passes_but_those_of_features_that_we_do_not_offer(
    options: tuple[str, str], url: str, node_binary: str, tmp_path: Path
) -> None:
    process = await asyncio.create_subprocess_exec(
        *(node_binary, str(SUITE), "server", "--url", f"{url}/mcp", *options),
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
