"""From a new account to a package fetched again, on a chain of the test's own."""

from __future__ import annotations

import json
import os
import threading
import urllib.request
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pexpect
import pytest

from capdex.encoding.keccak import fastest
from capdex.net.ipfs.block_store import BlockDirectory

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
    capdex.json("init", "weather", "--kind", "prompt", "--description", "Tells the weather.")
    return {"address": address, "registry": registry}


def call(url: str, method: str, *params: Any) -> Any:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request) as reply:  # noqa: S310 - the chain of this test
        return json.load(reply)["result"]


def rich(url: str, address: str) -> None:
    call(url, "anvil_setBalance", address, hex(10**18))


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for a node, nor fetches back through its gateway."""
    for name in ("CAPDEX_MCP_URL", "CAPDEX_NODE_URL", "CAPDEX_GATEWAY_URL"):
        monkeypatch.delenv(name)


@pytest.fixture
def guarded(
    capdex: Any, author: dict[str, str], alone: None, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """The author with a registry that wants commitments, as those of public chains do."""
    ages = ("--min-commitment-age", "60", "--max-commitment-age", "86400")
    registry = capdex.json("deploy", "--yes", "--dir", "guarded", *ages)["registry"]
    monkeypatch.setenv("CAPDEX_REGISTRY", registry)
    return author | {"registry": registry}


@pytest.fixture
def minutes(anvil: Any) -> Iterator[Callable[[str], None]]:
    """`minutes(registry)`: on its chain a minute passes after each event of the registry."""
    over = threading.Event()
    threads: list[threading.Thread] = []

    def watch(registry: str) -> None:
        passed = 0
        while not over.wait(0.05):
            logs = call(anvil.url, "eth_getLogs", {"address": registry, "fromBlock": "0x0"})
            if len(logs) > passed:
                passed = len(logs)
                call(anvil.url, "evm_increaseTime", 60)
                call(anvil.url, "evm_mine")

    def start(registry: str) -> None:
        threads.append(threading.Thread(target=watch, args=[registry]))
        threads[-1].start()

    yield start
    over.set()
    for thread in threads:
        thread.join()


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
        f"{node.url}/c/weather",
    ]
    for word in ("validated", "signed", "cost", "uploaded", "mined", "served"):
        assert word in done.stderr

    again = capdex.json("publish", "weather.acp.yaml", "--yes")
    assert set(again) == OUTCOME | SENT
    assert (again["already"], again["cid"]) == (True, plan["cid"])
    assert capdex("publish", "weather.acp.yaml", "--yes", "--plain").stdout == plan["cid"] + "\n"


def test_publish_ends_with_6_where_the_node_does_not_serve_it_in_time(
    capdex: Any, node: Any, author: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CAPDEX_MCP_URL")  # node-url alone is asked
    monkeypatch.setenv("CAPDEX_GATEWAY_URL", "")
    node.answer("resolve_capability", {"code": "NOT_FOUND", "message": "no"}, failed=True)
    publish = ("publish", "weather.acp.yaml", "--yes", "--json", "--wait")
    late = capdex(*publish, "0.1")
    value, error = json.loads(late.stdout), json.loads(late.stderr.splitlines()[-1])
    assert (late.exit_code, value["served_after_s"], value["already"]) == (6, None, False)
    assert (error["code"], error["exit"], error["retryable"]) == ("NOT_SERVED", 6, True)
    assert error["message"] == f"not served yet by {node.url}: did:nuwa:cap:weather@0.1.0"
    assert "does not know it yet" in error["details"]["why"]

    down = capdex(*publish, "0.1", "--config", "node-url=http://127.0.0.1:1")
    assert down.exit_code == 6
    said = json.loads(down.stderr.splitlines()[-1])
    assert "the node at http://127.0.0.1:1/…" in said["details"]["why"]

    node.answer("resolve_capability", {"sha256": value["sha256"]})
    served = capdex(*publish, "30")
    assert (served.exit_code, json.loads(served.stdout)["already"]) == (0, True)
    assert json.loads(served.stdout)["served_after_s"] is not None
    alone = capdex(*publish[:-2], "--config", "node-url=", "--format", "human")
    assert alone.exit_code == 0
    assert "no node-url is set" in alone.stderr


def test_a_published_package_is_fetched_and_believed_only_if_the_chain_agrees(
    capdex: Any, node: Any, folder: Path, author: dict[str, str]
) -> None:
    node.answer("resolve_capability", {"code": "NOT_FOUND", "message": "no"}, failed=True)
    value = capdex.json("publish", "weather.acp.yaml", "--yes", "--wait", "0")
    signed = (folder / "weather.acp.yaml").read_bytes()
    serve(node, folder, value)

    got = capdex.json("get", "weather", "--output", "copy.yaml")
    assert (folder / "copy.yaml").read_bytes() == signed
    assert (got["verdict"], got["cid"]) == ("verified", value["cid"])
    assert capdex("get", "weather@0.1.0", "-o", "-").stdout_bytes == signed

    usual = folder / "weather-0.1.0.acp.yaml"
    assert capdex("get", "weather").exit_code == 0
    assert capdex("get", "weather").exit_code == 0  # the same bytes
    usual.write_text("mine")
    taken = capdex("get", "weather")
    assert (taken.exit_code, usual.read_text()) == (2, "mine")
    assert "--force" in taken.stderr
    assert capdex("get", "weather", "--force").exit_code == 0
    assert usual.read_bytes() == signed
    usual.unlink()
    usual.symlink_to(folder / "planted")
    for more in ((), ("--force",), ("--output", usual.name)):
        assert capdex("get", "weather", *more).exit_code == 2
    assert not (folder / "planted").exists()

    (folder / "empty").mkdir()
    assert capdex.json("get", "weather", "--output", "empty")["file"] == "empty/"
    assert (folder / "empty" / "weather.acp.yaml").read_bytes() == signed
    (folder / "away").symlink_to(folder.parent)
    for full in ("empty", "away"):
        assert "it is no empty folder" in capdex("get", "weather", "--output", full).stderr

    node.blocks[value["cid"]] = signed + b"# more\n"
    wrong = capdex("get", "weather@0.1.0", "-o", "wrong.yaml")
    assert wrong.exit_code == 3
    assert not (folder / "wrong.yaml").exists()
    assert capdex("get", "weather@9.9.9").exit_code == 1


def test_a_node_that_answers_an_older_release_is_told_of(
    capdex: Any, node: Any, folder: Path, author: dict[str, str]
) -> None:
    node.answer("resolve_capability", {"code": "NOT_FOUND", "message": "no"}, failed=True)
    file = folder / "weather.acp.yaml"
    first = capdex.json("publish", file.name, "--yes", "--wait", "0")
    serve(node, folder, first)
    assert "warning" not in capdex("get", "weather", "--format", "human").stderr
    file.write_bytes(file.read_bytes().replace(b"weather@0.1.0", b"weather@0.2.0"))
    alone = ("--config", "node-url=", "--config", "gateway-url=")
    capdex.json("publish", file.name, "--yes", *alone)
    for asked, warns in (("weather", True), ("weather@<1", True), ("weather@0.1.0", False)):
        got = capdex("get", asked, "--format", "human")
        assert got.exit_code == 0, got.stderr
        told = "warning: the node did not choose did:nuwa:cap:weather@0.2.0"
        assert (told in got.stderr) is warns


def test_a_file_is_verified_against_the_chain_or_alone(
    capdex: Any, node: Any, folder: Path, author: dict[str, str]
) -> None:
    assert capdex("verify", "weather.acp.yaml").exit_code == 1  # announced by nobody
    capdex.json("publish", "weather.acp.yaml", "--yes", "--wait", "0")
    result = capdex("verify", "weather.acp.yaml", "--format", "human")
    assert (result.exit_code, "sha256" in result.stdout) == (0, True), result.stderr
    alone = capdex("verify", "--offline", "weather.acp.yaml", "--json")
    (value,) = json.loads(alone.stdout)["results"]
    assert (value["verdict"], value["against"]) == ("verified", "itself")
    assert [check["name"] for check in value["checks"]] == ["manifest", "signature", "binding"]
    assert "homepage" not in value
    asked = capdex("verify", "--offline", "--homepage", "weather.acp.yaml", "--json")
    (value,) = json.loads(asked.stdout)["results"]
    assert (asked.exit_code, value["homepage"]["names_publisher"]) == (0, None)
    assert value["homepage"]["detail"] == "the package names no proof (metadata.proof)"

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
    capdex: Any, folder: Path, author: dict[str, str], alone: None
) -> None:
    broken = "metadata:\n  id: did:nuwa:cap:Bad@1\n  triggers: 7\n"
    (folder / "broken.acp.yaml").write_text(broken, encoding="utf-8")
    capdex.json("init", "tides", "--kind", "prompt", "--description", "Tells the tides.")
    files = ("broken.acp.yaml", "weather.acp.yaml", "tides.acp.yaml", "absent.acp.yaml")
    result = capdex("publish", *files, "--yes", "--json")
    assert result.exit_code == 2
    document = json.loads(result.stdout)
    assert [(x["file"], x["cap_uri"]) for x in document["results"]] == [
        ("weather.acp.yaml", "did:nuwa:cap:weather@0.1.0"),
        ("tides.acp.yaml", "did:nuwa:cap:tides@0.1.0"),
    ]
    assert {x["batch"] for x in document["results"]} == {2}
    assert len({x["tx_hash"] for x in document["results"]}) == 1
    errors = [json.loads(line) for line in result.stderr.splitlines() if line.startswith("{")]
    assert [(x["code"], x["details"]["file"]) for x in errors] == [
        ("UNREADABLE", "absent.acp.yaml"),  # files are read first
        ("INVALID_INPUT", "broken.acp.yaml"),
    ]
    for place in ("metadata.id", "metadata.triggers"):  # all problems, each at its place
        assert place in result.stderr
    assert "2 packages" in result.stderr
    assert "2 releases" in result.stderr


def test_several_files_are_one_line_each_for_a_script(
    capdex: Any, author: dict[str, str], alone: None
) -> None:
    capdex.json("init", "tides", "--kind", "prompt", "--description", "Tells the tides.")
    files = ("weather.acp.yaml", "tides.acp.yaml")
    lines = capdex("publish", *files, "--yes").stdout.splitlines()
    assert [json.loads(line)["already"] for line in lines] == [False, False]
    plain = capdex("publish", *files, "--yes", "--plain").stdout.split()
    assert plain == [json.loads(line)["cid"] for line in lines]
    human = capdex("publish", *files, "--yes", "--format", "human")
    assert human.stdout.split() == ["did:nuwa:cap:weather@0.1.0", "did:nuwa:cap:tides@0.1.0"]
    assert human.stderr.count("unchanged") == 2


def test_a_patch_that_widens_permissions_is_refused_unless_the_author_insists(
    capdex: Any, folder: Path, author: dict[str, str], alone: None
) -> None:
    capdex.json("publish", "weather.acp.yaml", "--yes")
    path = folder / "weather.acp.yaml"
    path.unlink()
    capdex.json("init", "weather", "--kind", "prompt", "--description", "Tells more.")
    text = path.read_text("utf-8").replace("@0.1.0", "@0.1.1")
    path.write_text(text.replace("require: []", "require: [state.query]"), "utf-8")
    refused = capdex("publish", "weather.acp.yaml", "--yes")
    assert refused.exit_code == 1
    assert "error[STEP_TOO_SMALL]" in refused.stderr
    assert "--allow widened-permission" in refused.stderr
    done = capdex.json("publish", "weather.acp.yaml", "--yes", "--allow", "widened-permission")
    assert (done["already"], done["previous"]) == (False, "0.1.0")


def test_a_version_below_the_latest_is_published_with_a_warning(
    capdex: Any, folder: Path, author: dict[str, str], alone: None
) -> None:
    path = folder / "weather.acp.yaml"
    text = path.read_text("utf-8")
    for version, warned in (("1.2.0", False), ("1.1.0", True), ("1.3.0-rc.1", False)):
        path.write_text(text.replace("@0.1.0", f"@{version}"), "utf-8")
        done = capdex("publish", path.name, "--yes", "--format", "human")
        assert done.exit_code == 0, done.stderr
        words = f"did:nuwa:cap:weather@{version}: 1.2.0 is higher, and stays the latest"
        assert (words in done.stderr) == warned


def test_a_dry_run_says_would_publish_and_prints_no_address(
    capdex: Any, author: dict[str, str], alone: None
) -> None:
    shown = capdex("publish", "weather.acp.yaml", "--dry-run", "--format", "human")
    assert shown.stdout == "would publish did:nuwa:cap:weather@0.1.0\n"
    assert "would sign  did:" in shown.stderr
    assert "signed  " not in shown.stderr
    assert "never over 0.01 ether (--fee-cap)" in shown.stderr  # a replacement may cost that
    assert "at most" not in shown.stderr
    assert "http" not in shown.stdout
    assert capdex.json("publish", "weather.acp.yaml", "--dry-run")["page"] is None
    capdex("publish", "weather.acp.yaml", "--yes")
    again = capdex("publish", "weather.acp.yaml", "--dry-run", "--format", "human")
    assert "✓ signed" in again.stderr
    assert again.stdout == "on chain already: did:nuwa:cap:weather@0.1.0\n"


def test_a_template_is_not_published(
    capdex: Any, folder: Path, author: dict[str, str], alone: None
) -> None:
    capdex.json("init", "tides")
    refused = capdex("publish", "tides.acp.yaml", "--yes")
    assert refused.exit_code == 1
    assert "lines of the template that are not edited" in refused.stderr
    assert "metadata.description: this is the description of the template" in refused.stderr


def test_a_secret_is_not_published_and_warnings_are_shown_whole(
    capdex: Any, folder: Path, author: dict[str, str], alone: None
) -> None:
    file, key = folder / "weather.acp.yaml", "8f14e45fceea167a5a36dedd4bea2543"
    before = file.read_text()
    file.write_text(before.replace("prompt: |\n", f"prompt: |\n  Send api_key={key} along.\n"))
    refused = capdex("publish", "weather.acp.yaml", "--dry-run")
    assert refused.exit_code == 1
    assert "the package seems to hold a secret" in refused.stderr
    assert "--allow-secret-like 'prompt'" in refused.stderr
    words = ("publish", "weather.acp.yaml", "--dry-run", "--allow-secret-like", "prompt")
    allowed = capdex(*words)
    assert allowed.exit_code == 0, allowed.stderr
    assert "warning[LINT_SECRET_VALUE] prompt: this holds" in allowed.stderr
    assert "= fix:" in allowed.stderr
    checked = capdex("validate", "weather.acp.yaml", "--format", "full")
    assert checked.exit_code == 1
    assert key not in "".join(x.stderr + x.stdout for x in (refused, allowed, checked))


def test_who_may_not_publish_is_told_whom_to_ask(
    capdex: Any, folder: Path, author: dict[str, str], alone: None, anvil: Any
) -> None:
    capdex.json("publish", "weather.acp.yaml", "--yes")
    other = folder / "other.json"
    address = capdex.json("account", "new", "--light", "--out", str(other))["address"]
    rich(anvil.url, address)
    (folder / "weather.acp.yaml").unlink()
    capdex.json("init", "weather", "--kind", "prompt", "--description", "Tells mine.")
    refused = capdex("publish", "weather.acp.yaml", "--yes", "--keystore", str(other))
    assert refused.exit_code == 4
    assert author["address"] in refused.stderr
    assert f"capdex maintainer add weather {address}" in refused.stderr


def test_a_new_name_is_reserved_first_and_both_transactions_are_planned(
    capdex: Any, guarded: dict[str, str], minutes: Callable[[str], None]
) -> None:
    dry = capdex("publish", "weather.acp.yaml", "--dry-run", "--json")
    plan = json.loads(dry.stdout)
    assert plan["commitment"]["to"] == plan["transaction"]["to"] == guarded["registry"]
    assert plan["claims_name"] is True
    assert "2 transactions" in dry.stderr
    assert "nothing was sent" in dry.stderr

    minutes(guarded["registry"])
    done = capdex("publish", "weather.acp.yaml", "--yes", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["already"] is False
    assert "reserved    weather (1 of 2)" in done.stderr
    assert capdex.json("publish", "weather.acp.yaml", "--yes")["already"] is True


def test_a_name_is_claimed_before_anything_is_published_under_it(
    capdex: Any, guarded: dict[str, str], minutes: Callable[[str], None]
) -> None:
    plan = capdex.json("claim", "weather", "--dry-run")
    assert (plan["dry_run"], plan["already"]) == (True, False)
    assert plan["commitment"]["to"] == plan["transaction"]["to"] == guarded["registry"]
    refused = capdex("claim", "weather")
    assert refused.exit_code == 4
    assert "error[NO_CONSENT]" in refused.stderr

    minutes(guarded["registry"])
    done = capdex.json("claim", "weather", "--yes")
    assert set(done) == {"schema", "name", "account", "dry_run", "commitment", "transaction"} | (
        {"already", "tx_hash", "block_number", "gas_used", "fee_wei", "served_after_s"}
    )
    assert (done["already"], done["account"]) == (False, guarded["address"])
    assert capdex.json("claim", "weather", "--yes")["already"] is True
    value = capdex.json("publish", "weather.acp.yaml", "--yes", "--dry-run")
    assert (value["claims_name"], value["commitment"]) == (False, None)
    assert capdex("claim", "admin", "--yes").exit_code == 4
    assert capdex("claim", "Not a name", "--yes").exit_code == 1


def test_on_a_terminal_the_wait_is_one_line_that_counts_down(
    guarded: dict[str, str], minutes: Callable[[str], None], warm: Any
) -> None:
    kept = {key: value for key, value in os.environ.items() if key not in ("CI", "NO_COLOR")}
    process = pexpect.spawn(
        warm.capdex,
        ["publish", "weather.acp.yaml"],
        env={**kept, "TERM": "xterm", "LC_ALL": "C.UTF-8"},
        encoding="utf-8",
        timeout=90,
        dimensions=(40, 200),
    )
    process.expect("y/N")
    plan = process.before or ""
    for word in ("validated", "signed", "claims", "cannot be deleted", "cost", "permanent: yes"):
        assert word in plan
    process.sendline("y")
    process.expect("safe to stop: run the same command again")
    waits = process.before or ""
    for words in ("uploaded", "reserved", "reserving weather (1 of 2), waiting", "nobody can copy"):
        assert words in waits
    minutes(guarded["registry"])
    process.expect(pexpect.EOF)
    process.close()
    said = process.before or ""
    assert process.exitstatus == 0, said
    assert "\r\x1b[2K" in said  # written over, not scrolled
    assert "mined" in said
    assert said.strip().endswith("did:nuwa:cap:weather@0.1.0")


def test_an_account_is_given_play_money_on_a_local_chain_alone(
    capdex: Any, anvil: Any, author: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    second = capdex.json("account", "new", "--light", "--out", "second.json")["address"]
    assert capdex.json("account", "fund", "--keystore", "second.json")["address"] == second
    found = capdex.json("account", "balance", "--keystore", "second.json")
    assert found["wei"] == str(1000 * 10**18)
    head = call(anvil.url, "eth_getBlockByNumber", "latest", False)
    proof = call(anvil.url, "eth_getProof", second, [], "latest")["accountProof"]
    assert (
        fastest()(bytes.fromhex(proof[0][2:])).hex() == head["stateRoot"][2:]
    )  # proofs still hold
    other = "0x" + "11" * 20
    assert capdex.json("account", "fund", other)["address"] == other
    assert capdex.json("account", "fund", second.lower())["address"] == second
    assert capdex("account", "fund", "0x12").exit_code == 2
    monkeypatch.setenv("CAPDEX_CHAIN_ID", "1")
    refused = capdex("account", "fund")
    assert (refused.exit_code, "is no local chain" in refused.stderr) == (4, True)


def test_an_account_shows_its_balance(capdex: Any, author: dict[str, str]) -> None:
    document = capdex.json("account", "balance")
    assert set(document) == {"schema", "address", "chain_id", "wei", "ether"}
    assert 0 < int(document["wei"]) < 10**18
    assert Decimal(document["ether"].removesuffix(" ether")) * 10**18 == int(document["wei"])


def test_the_blocks_of_a_publication_are_those_of_its_cid(
    capdex: Any, folder: Path, author: dict[str, str]
) -> None:
    from capdex.ipld.cid import Cid

    value = capdex.json("publish", "weather.acp.yaml", "--yes", "--wait", "0")
    stored = BlockDirectory(folder / "blocks").read(Cid.parse(value["cid"]))
    assert stored == (folder / "weather.acp.yaml").read_bytes()
