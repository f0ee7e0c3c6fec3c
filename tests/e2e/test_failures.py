"""What a person sees when a part is down or a setting is wrong: what, why, what to do; no loss."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

NOWHERE = "0x000000000000000000000000000000000000dEaD"
OTHER_PASSPHRASE = "not the passphrase\n"  # noqa: S105 - it is wrong on purpose


@pytest.fixture
def closed() -> Iterator[str]:
    """The URL of a port of ours where nobody listens."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{holder.getsockname()[1]}"


@pytest.fixture
def author(shell: Any, begin: Callable[..., Any]) -> Any:
    """An author who keeps packages in a directory."""
    return begin(shell, f"dir:{shell / 'blocks'}")


def test_whatever_keeps_publish_from_publishing_is_told_and_nothing_is_sent(
    author: Any, shell: Any, closed: str, rpc: Callable[..., Any]
) -> None:
    path = author.write("weather")
    wrong = shell / "wrong"
    wrong.write_text(OTHER_PASSPHRASE, encoding="utf-8")
    wrong.chmod(0o600)
    shell("sign", path.name)
    signed = path.read_bytes()

    def told(code: int, name: str = path.name, *options: str, **env: str) -> dict[str, Any]:
        found: dict[str, Any] = shell.error("publish", name, "--yes", *options, code=code, **env)
        assert path.read_bytes() == signed
        return found

    faults = {
        "RPC_UNAVAILABLE": told(3, CAPDEX_RPC_URL=closed),
        "IPFS_UNAVAILABLE": told(3, CAPDEX_IPFS=closed),
        "WRONG_CHAIN": told(4, CAPDEX_CHAIN_ID="1"),
        "NO_CONTRACT": told(2, CAPDEX_REGISTRY=NOWHERE),
        "WRONG_PASSPHRASE": told(4, CAPDEX_PASSPHRASE_FILE=str(wrong)),
        "UNREADABLE": told(2, "no-such-file.acp.yaml"),
    }
    assert {code: fault["code"] for code, fault in faults.items()} == {
        code: code for code in faults
    }
    assert closed.removeprefix("http://") in str(faults["RPC_UNAVAILABLE"])
    assert closed.removeprefix("http://") in str(faults["IPFS_UNAVAILABLE"])
    assert NOWHERE in str(faults["NO_CONTRACT"])
    assert {"1", "31337"} <= set(faults["WRONG_CHAIN"]["what"].replace(",", " ").split())
    assert "no-such-file.acp.yaml" in faults["UNREADABLE"]["what"]
    balance = rpc(author.rpc_url, "eth_getBalance", author.address, "latest")
    rpc(author.rpc_url, "anvil_setBalance", author.address, "0x0")
    assert told(4)["code"] == "EMPTY_ACCOUNT"
    rpc(author.rpc_url, "anvil_setBalance", author.address, balance)

    assert int(rpc(author.rpc_url, "eth_getTransactionCount", author.address, "latest"), 16) == 1
    done = shell.json("publish", path.name, "--yes")
    assert done["already"] is False
    assert path.read_bytes() == signed


def test_a_name_is_its_owners_and_a_version_keeps_its_bytes(
    author: Any, shell: Any, open_shell: Callable[..., Any], begin: Callable[..., Any]
) -> None:
    path = author.write("weather")
    first = shell.json("publish", path.name, "--yes")
    kept = path.read_bytes()
    path.write_bytes(kept.replace(b"Tells it.", b"Tells it better."))
    told = shell.error("publish", path.name, "--yes", code=1)
    assert told["code"] == "VERSION_EXISTS"
    assert first["sha256"] in str(told)

    path.write_bytes(kept)
    assert shell.json("publish", path.name, "--yes")["already"] is True

    other = begin(open_shell("there"), f"dir:{shell / 'blocks'}")
    other.shell.env["CAPDEX_REGISTRY"] = author.registry
    for name in ("weather", "weath-er"):  # and what looks like it
        other.write(name)
        told = other.shell.error("publish", f"{name}.acp.yaml", "--yes", code=4)
        assert told["code"] == "NAME_TAKEN"
        assert author.address in str(told)


def test_a_node_that_cannot_start_says_why(author: Any, shell: Any) -> None:
    node = ("node", "--ipfs", f"dir:{shell / 'blocks'}", "--log-format", "logfmt")
    index, free = ("--db", "sqlite:///index.db"), ("--port", "0")

    def told(code: int, *options: str, **env: str) -> dict[str, Any]:
        found: dict[str, Any] = shell.error(*node, "--blocks", "b", *options, code=code, **env)
        return found

    faults = {
        "WRONG_CHAIN": told(4, *index, *free, CAPDEX_CHAIN_ID="1"),
        "NO_CONTRACT": told(2, *index, *free, CAPDEX_REGISTRY=NOWHERE),
    }
    assert {code: fault["code"] for code, fault in faults.items()} == {
        code: code for code in faults
    }

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        in_use = told(2, *index, "--port", port)
    assert port in in_use["what"]
    assert "--port" in in_use["fix"]

    (shell / "folder.db").mkdir()
    assert told(2, "--db", "sqlite:///folder.db", *free)["code"] == "UNREADABLE"
    assert told(2, "--db", "mysql://root@localhost/x", *free)["code"] == "CONFIG"


def test_a_second_node_on_a_database_is_refused_and_the_first_goes_on(
    author: Any, shell: Any, database_url: str
) -> None:
    first, _ = author.start_node(database_url)
    second = shell("node", "--db", database_url, "--port", "0", "--log-format", "json", code=3)
    told = [x for x in second.stderr.splitlines() if x.startswith("error[")]
    assert [x.partition(":")[0] for x in told] == ["error[DATABASE_LOCKED]"]
    path = author.write("weather")
    assert shell.json("publish", path.name, "--yes")["served_after_s"] is not None
    assert first.stop() == 130
    # It let go of it: the next one may.
    author.start_node(database_url)
    assert shell.json("resolve", "weather")["cap_uri"] == "did:nuwa:cap:weather@0.1.0"


def test_without_a_node_nothing_is_found_and_publishing_still_works(
    author: Any, shell: Any, closed: str
) -> None:
    shell.env |= {
        "CAPDEX_NODE_URL": closed,
        "CAPDEX_MCP_URL": f"{closed}/mcp",
        "CAPDEX_GATEWAY_URL": closed,
    }
    for command in (("resolve", "weather"), ("search", "x")):
        told = shell.error(*command, code=3)
        assert told["code"] == "NODE_UNAVAILABLE"
        assert closed in told["what"]
        assert "capdex up" in told["fix"]
    assert shell.error("show", "weather", code=1)["code"] == "NOT_FOUND"  # the chain knows
    path = author.write("weather")
    done = shell.json("publish", path.name, "--yes", "--wait", "0")
    assert (done["already"], done["served_after_s"]) == (False, None)
    late = shell("publish", path.name, "--yes", "--wait", "0.5", code=6)
    assert f"not served yet by {closed}" in late.stderr
    assert shell.error("get", "weather@0.1.0", code=3)["code"] == "IPFS_UNAVAILABLE"


def test_a_node_keeps_answering_while_its_chain_is_away_and_says_so(
    author: Any, anvil: Any, shell: Any, http: Callable[..., Any], eventually: Callable[..., Any]
) -> None:
    node, url = author.start_node("sqlite:///index.db", "--poll-interval", "0.1")
    path = author.write("weather")
    shell("publish", path.name, "--yes")
    eventually(lambda: http(f"{url}/ready")[0] == 200, "a ready node")
    os.kill(anvil.pid, signal.SIGKILL)
    eventually(lambda: http(f"{url}/ready")[0] == 503, "a node that is not ready")
    (fault,) = json.loads(http(f"{url}/ready")[1])["because"]
    assert fault["code"] == "RPC_UNAVAILABLE"
    assert http(f"{url}/health")[0] == 200
    assert shell.json("resolve", "weather")["cap_uri"] == "did:nuwa:cap:weather@0.1.0"
    assert [x["cap_uri"] for x in shell.json("search", "weather")["results"]]
    assert node.stop() == 130
    node, url = author.start_node("sqlite:///index.db")  # from its disk alone
    assert shell.json("resolve", "weather")["cap_uri"] == "did:nuwa:cap:weather@0.1.0"
    assert http(f"{url}/ready")[0] == 503
    assert node.stop() == 130


def test_packages_that_cannot_be_had_are_pending_and_served_once_they_can(
    author: Any, shell: Any, closed: str, eventually: Callable[..., Any]
) -> None:
    here, author.ipfs = author.ipfs, closed  # the node's Kubo is down, the author's storage is not
    node, _ = author.start_node("sqlite:///index.db")
    path = author.write("weather")
    shell("publish", path.name, "--yes", "--wait", "0")
    eventually(
        lambda: "PENDING" in shell("resolve", "weather", code=None).stderr, "a pending release"
    )
    told = shell.error("resolve", "weather", code=3)
    assert told["code"] == "PENDING"
    assert node.stop() == 130
    author.ipfs = here
    author.start_node("sqlite:///index.db")
    eventually(lambda: shell("resolve", "weather", code=None).returncode == 0, "the release")
