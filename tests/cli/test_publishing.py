"""From a new account to a package fetched again, on a chain of the test's own."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from capdex.net.blocks import BlockDirectory

OUTCOME = {
    "schema",
    "file",
    "dry_run",
    "chain_id",
    "registry",
    "cap_uri",
    "cid",
    "sha256",
    "already",
    "claims_name",
    "previous",
    "commitment",
    "transaction",
    "page",
}
SENT = {"tx_hash", "block_number", "gas_used", "fee_wei", "batch", "served_after_s"}


@pytest.fixture
def author(
    capdex: Any, anvil: Any, node: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """A person with an account that can pay, a registry, and a package to publish."""
    secret = folder / "pass"
    secret.write_text("correct horse", encoding="utf-8")
    secret.chmod(0o600)
    monkeypatch.setenv("CAPDEX_PASSPHRASE_FILE", str(secret))
    monkeypatch.setenv("CAPDEX_RPC_URL", anvil.url)
    monkeypatch.setenv("CAPDEX_CHAIN_ID", "31337")
    monkeypatch.setenv("CAPDEX_IPFS", f"dir:{folder / 'blocks'}")
    address = capdex.json("account", "new", "--light")["address"]
    rich(anvil.url, address)
    registry = capdex.json("deploy", "--yes")["registry"]
    monkeypatch.setenv("CAPDEX_REGISTRY", registry)
    capdex.json("init", "weather", "--description", "Tells the weather.")
    return {"address": address, "registry": registry}


def rich(url: str, address: str) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "anvil_setBalance"}
    body = json.dumps(call | {"params": [address, hex(10**18)]}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request) as reply:  # noqa: S310 - the chain of this test
        reply.read()


def serve(node: Any, folder: Path, value: dict[str, Any]) -> None:
    """Let the node answer the release that was just published, bytes and all."""
    node.answer("resolve_capability", {"cap_uri": value["cap_uri"], "sha256": value["sha256"]})
    found = [path for path in (folder / "blocks").rglob("*") if path.is_file()]
    (data,) = {path.read_bytes() for path in found}
    node.blocks[value["cid"]] = data


def test_publish_shows_its_plan_asks_sends_once_and_waits_until_served(
    capdex: Any, node: Any, folder: Path, author: dict[str, str]
) -> None:
    before = (folder / "weather.acp.yaml").read_bytes()
    dry = capdex("publish", "weather.acp.yaml", "--dry-run", "--json")
    plan = json.loads(dry.stdout)
    assert dry.exit_code == 0
    assert set(plan) == OUTCOME
    assert plan["transaction"]["to"] == author["registry"]
    assert (plan["claims_name"], plan["already"]) == (True, False)
    assert "would publish; nothing was sent" in dry.stderr
    assert (folder / "weather.acp.yaml").read_bytes() == before

    refused = capdex("publish", "weather.acp.yaml")
    assert refused.exit_code == 4
    assert "error[NO_CONSENT]" in refused.stderr
    assert not (folder / "blocks").exists()

    node.answer("resolve_capability", {"sha256": plan["sha256"]})
    done = capdex("publish", "weather.acp.yaml", "--yes", "--format", "human")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines() == [
        "did:nuwa:cap:weather@0.1.0",
        f"{node.url}/c/weather.json",
    ]
    for word in ("validated", "signed", "cost", "uploaded", "mined", "served"):
        assert word in done.stderr

    again = capdex.json("publish", "weather.acp.yaml", "--yes")
    assert set(again) == OUTCOME | SENT
    assert (again["already"], again["cid"]) == (True, plan["cid"])
    assert capdex("publish", "weather.acp.yaml", "--yes", "--plain").stdout == plan["cid"] + "\n"


def test_a_published_package_is_fetched_and_believed_only_if_the_chain_agrees(
    capdex: Any, node: Any, folder: Path, author: dict[str, str]
) -> None:
    node.answer("resolve_capability", {"code": "NOT_FOUND", "message": "no"}, failed=True)
    value = capdex.json("publish", "weather.acp.yaml", "--yes", "--config", "mcp-url=")
    signed = (folder / "weather.acp.yaml").read_bytes()
    serve(node, folder, value)

    got = capdex.json("get", "weather", "--output", "copy.yaml")
    assert (folder / "copy.yaml").read_bytes() == signed
    assert (got["verdict"], got["cid"]) == ("verified", value["cid"])
    assert capdex("get", "weather@0.1.0", "-o", "-").stdout_bytes == signed

    node.blocks[value["cid"]] = signed + b"# more\n"
    wrong = capdex("get", "weather@0.1.0", "-o", "wrong.yaml")
    assert wrong.exit_code == 3
    assert not (folder / "wrong.yaml").exists()
    assert capdex("get", "weather@9.9.9").exit_code == 1


def test_a_file_is_verified_against_the_chain_or_alone(
    capdex: Any, node: Any, folder: Path, author: dict[str, str]
) -> None:
    assert capdex("verify", "weather.acp.yaml").exit_code == 1  # announced by nobody
    capdex.json("publish", "weather.acp.yaml", "--yes", "--config", "mcp-url=")
    result = capdex("verify", "weather.acp.yaml", "--format", "human")
    assert (result.exit_code, "sha256" in result.stdout) == (0, True), result.stderr
    alone = capdex("verify", "--offline", "weather.acp.yaml", "--json")
    (value,) = json.loads(alone.stdout)["results"]
    assert (value["verdict"], value["against"]) == ("verified", "itself")
    assert [check["name"] for check in value["checks"]] == ["manifest", "signature", "binding"]

    file = folder / "weather.acp.yaml"
    file.write_bytes(file.read_bytes() + b"# more\n")
    changed = json.loads(capdex("verify", "weather.acp.yaml").stdout)
    assert (changed["verdict"], changed["reason"]) == ("mismatch", "SHA256_MISMATCH")
    changed = json.loads(capdex("verify", "--offline", "weather.acp.yaml").stdout)
    assert (changed["verdict"], changed["reason"]) == ("invalid", "BAD_SIGNATURE")


def test_yank_and_unyank_change_once(
    capdex: Any, node: Any, folder: Path, author: dict[str, str]
) -> None:
    options = (
        "--yes",
        *(x for key in ("mcp", "node", "gateway") for x in ("--config", f"{key}-url=")),
    )
    capdex.json("publish", "weather.acp.yaml", *options)
    plan = capdex.json("yank", "weather@0.1.0", "--dry-run", *options)
    assert (plan["dry_run"], plan["already"]) == (True, False)
    first = capdex.json("yank", "weather@0.1.0", "--reason", "wrong unit", *options)
    assert first["tx_hash"].startswith("0x")
    assert capdex.json("yank", "weather@0.1.0", *options)["already"] is True
    assert capdex.json("unyank", "weather@0.1.0", *options)["already"] is False
    assert capdex("yank", "weather@0.9.0", *options).exit_code == 1


def test_of_several_files_each_is_published_and_the_gravest_code_wins(
    capdex: Any, folder: Path, author: dict[str, str]
) -> None:
    (folder / "broken.acp.yaml").write_text("metadata: {}\n", encoding="utf-8")
    result = capdex(
        "publish", "broken.acp.yaml", "weather.acp.yaml", "--yes", "--config", "mcp-url="
    )
    assert result.exit_code == 1
    assert json.loads(result.stdout)["cap_uri"] == "did:nuwa:cap:weather@0.1.0"
    assert "error[INVALID_INPUT]" in result.stderr


def test_an_account_shows_its_balance(capdex: Any, author: dict[str, str]) -> None:
    document = capdex.json("account", "balance")
    assert set(document) == {"schema", "address", "chain_id", "wei", "ether"}
    assert 0 < int(document["wei"]) < 10**18


def test_the_blocks_of_a_publication_are_those_of_its_cid(
    capdex: Any, folder: Path, author: dict[str, str]
) -> None:
    from capdex.cid import Cid

    value = capdex.json("publish", "weather.acp.yaml", "--yes", "--config", "mcp-url=")
    stored = BlockDirectory(folder / "blocks").read(Cid.parse(value["cid"]))
    assert stored == (folder / "weather.acp.yaml").read_bytes()
