"""`capdex deploy` as it is typed: addresses offline, plans without a key, and a real chain."""

from __future__ import annotations

import json
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from capdex_cli.config.settings import REGISTRY, VOTES
from capdex_publisher.deploy import create2
from capdex_publisher.keys import keystore as keys
from capdex_publisher.keys.secret import Secret

SOMEONE = "0x8ba1f109551bD432803012645Ac136ddd64DBA72"
SEPOLIA = pytest.mark.parametrize("anvil", [("--chain-id", "11155111")], indirect=True)


def call(url: str, method: str, *params: Any) -> Any:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=10) as reply:  # noqa: S310 - the test's chain
        return json.load(reply)["result"]


@pytest.fixture
def sepolia(anvil: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An Anvil that says it is sepolia, and an account on it; its address."""
    account = keys.create_account(folder / "account.json", Secret("a"), light=True)
    (folder / "phrase").touch(0o600)
    (folder / "phrase").write_text("a")
    call(anvil.url, "anvil_setBalance", str(account.address), hex(10**20))
    monkeypatch.setenv("CAPDEX_NETWORK", "sepolia")
    monkeypatch.setenv("CAPDEX_RPC_URL", anvil.url)
    monkeypatch.setenv("CAPDEX_PASSPHRASE_FILE", str(folder / "phrase"))
    monkeypatch.setenv("CAPDEX_CONFIRMATIONS", "1")
    return str(account.address)


def test_the_address_is_known_without_any_network(capdex: Any) -> None:
    for words in ((), ("--network", "base"), ("--network", "sepolia")):
        assert capdex("deploy", "--address", "--plain", *words).stdout == f"{REGISTRY}\n"
    assert capdex("deploy", "--address", "--votes", "--plain").stdout == f"{VOTES}\n"
    local = capdex("deploy", "--address", "--plain", "--config", "chain-id=31337").stdout
    assert local == f"{create2.registry(31337).address}\n"


def test_votes_are_for_the_registry_that_is_configured(capdex: Any) -> None:
    found = capdex.json(
        "deploy", "--address", "--votes", "--registry", SOMEONE, "--token", SOMEONE,
        "--timepoint", "7",
    )  # fmt: skip
    assert found["arguments"] == {"REGISTRY": SOMEONE, "TOKEN": SOMEONE, "TIMEPOINT": 7}


def test_other_ages_are_told_to_give_another_address(capdex: Any) -> None:
    result = capdex("deploy", "--address", "--plain", "--min-commitment-age", "10")
    assert result.stdout.strip() != REGISTRY
    assert f"the usual one is {REGISTRY}" in result.stderr
    assert capdex("deploy", "--address", "--min-commitment-age", "60").stderr == ""


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (("--token", SOMEONE), "add --votes"),
        (("--timepoint", "1"), "add --votes"),
        (("--votes", "--timepoint", "1"), "--token"),
        (("--votes", "--min-commitment-age", "1"), "leave the ages out"),
        (("--max-commitment-age", "1"), "--max-commitment-age"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(
    capdex: Any, words: tuple[str, ...], fix: str
) -> None:
    result = capdex("deploy", "--address", *words)
    assert result.exit_code == 2
    assert fix in result.stderr


@SEPOLIA
def test_a_dry_run_without_a_key_gives_the_transaction_for_another_wallet(
    capdex: Any, sepolia: str
) -> None:
    plan = capdex.json("deploy", "--dry-run")
    assert (plan["address"], plan["to"], plan["value"]) == (REGISTRY, create2.FACTORY, 0)
    assert plan["data"] == create2.registry(1).calldata
    assert plan["transaction"] is None
    priced = capdex.json("deploy", "--dry-run", "--keystore", "account.json")["transaction"]
    assert (priced["to"], priced["data"]) == (plan["to"], plan["data"])
    assert priced["sender"] == sepolia


@pytest.mark.parametrize(
    "anvil", [("--chain-id", "11155111", "--hardfork", "shanghai")], indirect=True
)
def test_a_dry_run_without_a_key_tells_of_a_chain_that_cannot_have_the_contract(
    capdex: Any, sepolia: str
) -> None:
    result = capdex("deploy", "--dry-run", "--json")
    assert result.exit_code == 2
    assert json.loads(result.stderr.splitlines()[-1])["code"] == "NO_CONTRACT"
    assert "MCOPY" in result.stderr


@pytest.mark.parametrize("anvil", [("--chain-id", "777")], indirect=True)
@pytest.mark.usefixtures("sepolia")
def test_a_network_of_ones_own_has_all_it_needs_after_the_line_that_a_deployment_ends_with(
    capdex: Any, anvil: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPDEX_NETWORK", "mine")
    table = f'[networks.mine]\nchain-id = 777\nrpc-url = "{anvil.url}"\n'
    (folder / "capdex.toml").write_text(table, encoding="utf-8")
    said = capdex("deploy", "--keystore", "account.json", "--yes").stderr.splitlines()[-1]
    settings = said.removeprefix("  to use it: ").removesuffix(" in [networks.mine]")
    table += settings.replace(" and ", "\n")
    (folder / "capdex.toml").write_text(table, encoding="utf-8")
    healthy = {x["name"]: x["status"] for x in capdex.json("doctor")["checks"]}
    assert healthy["registry"] == "ok"


@SEPOLIA
def test_a_public_chain_gets_the_registry_once_at_the_one_address(
    capdex: Any, sepolia: str, folder: Path
) -> None:
    result = capdex("deploy", "--keystore", "account.json")
    assert result.exit_code == 4  # nobody said yes
    made = capdex.json("deploy", "--keystore", "account.json", "--yes")
    assert (made["new"], made["address"], made["deployer"]) == (True, REGISTRY, sepolia)
    assert json.loads((folder / "deployments" / "11155111.json").read_text())["address"] == REGISTRY
    record = folder / "deployments" / "11155111.json"
    record.unlink()
    assert capdex.json("deploy", "--dry-run") == made | {"new": False}
    assert not record.exists()
    again = capdex("deploy", "--json")  # no key, no yes
    assert again.exit_code == 0
    assert json.loads(again.stdout) == json.loads(record.read_text()) | {
        "schema": made["schema"], "new": False,
    } == made | {"new": False}  # fmt: skip
    assert "unchanged" in again.stderr
    assert f"start-block = {made['block_number']} in [networks.sepolia]" in again.stderr
    votes = capdex.json("deploy", "--votes", "--keystore", "account.json", "--yes")
    assert (votes["address"], votes["registry"]) == (VOTES, REGISTRY)
    assert "to use it: start-block" in again.stderr  # the network names the registry already
    assert "to use it" not in capdex("deploy", "--votes", "--json").stderr
    healthy = {x["name"]: x["status"] for x in capdex.json("doctor")["checks"]}
    assert (healthy["registry"], healthy["votes"], healthy["chain id"]) == ("ok", "ok", "ok")


@SEPOLIA
def test_where_blocks_are_made_for_transactions_alone_one_more_is_asked_for(
    capdex: Any, sepolia: str, anvil: Any
) -> None:
    over = threading.Event()

    def mine_a_second_later() -> None:
        while not over.wait(1.0):
            if int(call(anvil.url, "eth_blockNumber"), 16):
                call(anvil.url, "evm_mine")

    miner = threading.Thread(target=mine_a_second_later)
    miner.start()
    words = ("--keystore", "account.json", "--yes", "--confirmations", "2")
    done = capdex("deploy", *words, "--format", "human")
    over.set()
    miner.join()
    assert done.exit_code == 0, done.stderr
    assert "in block 1, needs 1 more block" in done.stderr


def test_an_endpoint_of_another_chain_is_refused(
    capdex: Any, anvil: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPDEX_RPC_URL", anvil.url)
    result = capdex("deploy", "--network", "sepolia", "--dry-run", "--json")
    assert result.exit_code == 4
    assert json.loads(result.stderr.splitlines()[-1])["code"] == "WRONG_CHAIN"
