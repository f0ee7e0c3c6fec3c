"""The life of a name in the hands of two people, by the commands alone, read back at each step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

NAME = "weather"


@pytest.fixture
def people(
    open_shell: Callable[..., Any],
    begin: Callable[..., Any],
    rpc: Callable[..., Any],
    tmp_path: Any,
) -> tuple[Any, Any]:
    """Two authors of one registry, each with a folder, a key and money of their own."""
    ipfs = f"dir:{tmp_path / 'ipfs'}"
    alice, bob = begin(open_shell("alice"), ipfs), begin(open_shell("bob"), ipfs)
    assert alice.registry == bob.registry, "one registry a chain"
    return alice, bob


@pytest.fixture
def pair(people: tuple[Any, Any]) -> tuple[Any, Any]:
    """The two, and a node that both ask."""
    alice, bob = people
    alice.start_node(f"sqlite:///{alice.shell / 'index.db'}")
    for name in ("NODE_URL", "MCP_URL", "GATEWAY_URL"):
        bob.shell.env[f"CAPDEX_{name}"] = alice.shell.env[f"CAPDEX_{name}"]
    return alice, bob


def publish(author: Any, version: str, *, code: int = 0) -> Any:
    """Publish a release of the name as its package's author."""
    path = author.write(NAME, version=version)
    done = author.shell("publish", path.name, "--yes", "--json", code=code)
    path.unlink()
    return done


def test_a_name_is_shared_handed_over_and_given_up(pair: tuple[Any, Any]) -> None:
    alice, bob = pair

    def standing() -> Any:
        return bob.shell.json("show", NAME)["standing"]

    def releases() -> dict[str, Any]:
        return {x["semver"]: x for x in bob.shell.json("show", NAME)["results"]}

    def names(author: Any) -> list[tuple[str, str]]:
        return [(x["name"], x["role"]) for x in author.shell.json("list", "--mine")["results"]]

    # alice alone
    publish(alice, "0.1.0")
    assert (standing()["owner"], standing()["maintainers"]) == (alice.address, [])
    assert releases()["0.1.0"]["verification"]["verdict"] == "verified"
    assert (names(alice), names(bob)) == ([(NAME, "owner")], [])
    refused = bob.shell.error("yank", f"{NAME}@0.1.0", "--yes", code=4)
    assert refused["code"] == "NOT_OWNER"
    assert alice.address in refused["why"]
    assert f"capdex maintainer add {NAME} {bob.address}" in refused["fix"]

    # bob helps: the very command that the refusal named
    alice.shell("maintainer", "add", NAME, bob.address, "--yes")
    assert standing()["maintainers"] == [bob.address]
    assert names(bob) == [(NAME, "maintainer")]
    publish(bob, "0.2.0")
    assert releases()["0.2.0"]["chain"]["publisher"] == bob.address
    assert releases()["0.2.0"]["verification"]["verdict"] == "verified"
    done = bob.shell.json("yank", f"{NAME}@0.1.0", "--reason", "it invents sunshine", "--yes")
    assert done["served_after_s"] is not None, "a change is awaited until the node shows it"
    bob.shell("deprecate", f"{NAME}@0.2.0", "--message", "wait for 1.0", "--yes")
    told = {version: x["status"] for version, x in releases().items()}
    assert (told["0.1.0"]["yanked"], told["0.1.0"]["yank_reason"]) == (True, "it invents sunshine")
    assert told["0.2.0"]["deprecation_message"] == "wait for 1.0"
    for words in (("transfer", "offer", NAME, bob.address), ("renounce", NAME)):
        assert bob.shell.error(*words, "--yes", code=4)["code"] == "NOT_OWNER"

    # alice hands over
    alice.shell("deprecate", NAME, "--message", "gone", "--replaced-by", "forecast", "--yes")
    assert (standing()["message"], standing()["replaced_by"]) == ("gone", "forecast")
    assert bob.shell.error("transfer", "accept", NAME, "--yes", code=4)["code"] == "NOT_OWNER"
    alice.shell("transfer", "offer", NAME, bob.address, "--yes")
    assert (standing()["owner"], standing()["pending_owner"]) == (alice.address, bob.address)
    alice.shell("transfer", "cancel", NAME, "--yes")
    assert standing()["pending_owner"] is None
    alice.shell("transfer", "offer", NAME, bob.address, "--yes")
    bob.shell("transfer", "accept", NAME, "--yes")
    assert bob.shell.json("transfer", "accept", NAME, "--yes")["already"] is True
    now = standing()
    assert (now["owner"], now["pending_owner"], now["maintainers"]) == (bob.address, None, [])
    assert (names(alice), names(bob)) == ([], [(NAME, "owner")])
    publish(alice, "0.3.0", code=4)
    bob.shell("undeprecate", NAME, "--yes")
    bob.shell("unyank", f"{NAME}@0.1.0", "--yes")
    assert standing()["deprecated"] is False
    assert releases()["0.1.0"]["status"]["yanked"] is False

    # both say what they think of it
    votes = alice.shell.json("deploy", "--votes", "--yes")["address"]
    for author, choice in ((alice, "down"), (bob, "up"), (alice, "up")):
        author.shell.env["CAPDEX_VOTES"] = votes
        author.shell("vote", NAME, choice, "--yes")
    assert standing()["votes"] == {"up": 2, "down": 0}
    assert bob.shell.json("vote", NAME, "up", "--yes")["already"] is True

    # bob gives it up, and so it stays
    bob.shell("renounce", NAME, "--yes")
    now = standing()
    assert (now["owner"], now["renounced"]) == (None, True)
    assert names(bob) == []
    for author in pair:
        publish(author, "0.4.0", code=4)
        assert author.shell.error("yank", f"{NAME}@0.2.0", "--yes", code=4)["code"] == "NOT_OWNER"
    assert list(releases()) == ["0.2.0", "0.1.0"]


def test_a_change_killed_after_it_was_sent_is_found_again_and_made_once(
    people: tuple[Any, Any], rpc: Callable[..., Any]
) -> None:
    alice, bob = people
    publish(alice, "0.1.0")
    rpc(alice.rpc_url, "evm_setAutomine", False)
    words = ("transfer", "offer", NAME, bob.address, "--yes")
    process = alice.shell.start(*words, "-v")
    process.wait_for(lambda: "sent" in process.stderr, "the transaction was sent")
    process.kill()
    rpc(alice.rpc_url, "evm_setAutomine", True)
    rpc(alice.rpc_url, "evm_mine")
    assert alice.shell.json(*words)["already"] is True
    assert alice.shell.json("show", NAME)["standing"]["pending_owner"] == bob.address
    used = rpc(alice.rpc_url, "eth_getTransactionCount", alice.address, "latest")
    waiting = rpc(alice.rpc_url, "eth_getTransactionCount", alice.address, "pending")
    assert used == waiting, "no nonce is left open"


def test_the_same_change_made_at_once_by_many_happens_once(
    people: tuple[Any, Any], rpc: Callable[..., Any]
) -> None:
    alice, _ = people
    publish(alice, "0.1.0")
    many = [alice.shell.start("yank", f"{NAME}@0.1.0", "--yes", "--json") for _ in range(4)]
    assert [process.popen.wait(90) for process in many] == [0, 0, 0, 0]
    topic = "0x" + "ee737b53cce7b612f9b5ee6b41c03adeb37f55bc7b960b8daf22575befbf5ab0"
    logs = rpc(
        alice.rpc_url,
        "eth_getLogs",
        {"address": alice.registry, "topics": [topic], "fromBlock": "0x0"},
    )
    assert len(logs) == 1
