"""How soon a published package is resolvable: within a second of its receipt, acceptance says."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from mcp import Client

from capdex.net.ipfs.block_store import BlockDirectory

WITHIN_S = 1.0
PUBLICATIONS = 5


@pytest.mark.load
async def test_a_published_package_is_resolvable_within_a_second_of_its_receipt(
    shell: Any, chains: Any, making: Any
) -> None:
    (shell / "none").mkdir()
    up = shell.start("up", "--ipfs", "dir", "--examples", "none", "--port", "0", "--rpc-port", "0")
    info = json.loads(up.wait_for(lambda: up.stdout.endswith("}\n") and up.stdout, "ready"))
    registry = chains.Registry(info["rpc_url"], info["registry"])
    registry.account = registry.call("eth_accounts")[0]
    blocks = BlockDirectory(shell / ".capdex" / "blocks")

    delays_ms = []
    async with Client(info["mcp_url"]) as client:
        for number in range(PUBLICATIONS):
            name = f"fresh-{number}"
            data = making.package_bytes(name, publisher=registry.publisher)
            blocks.write(data)
            registry.publish_now(name, "1.0.0", data)
            mined = time.monotonic()
            arguments = {"cap_uri": f"did:nuwa:cap:{name}"}
            while (await client.call_tool("resolve_capability", arguments)).is_error:
                assert time.monotonic() < mined + 30, f"{name} is never served"
            delays_ms.append(round((time.monotonic() - mined) * 1000))
    assert max(delays_ms) <= WITHIN_S * 1000, f"resolvable {delays_ms} ms after their receipts"
