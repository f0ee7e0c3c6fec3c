"""`capdex up`: killed, continued, stopped, begun anew; one to a directory; ports that are taken."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

KEYS = {
    "rpc_url",
    "chain_id",
    "registry",
    "start_block",
    "votes",
    "http_url",
    "mcp_url",
    "gateway_url",
    "ipfs",
    "db_url",
    "account",
    "pid",
}
KEPT = ("chain_id", "registry", "account", "db_url", "ipfs")


@pytest.fixture
def up(shell: Any, eventually: Callable[..., Any]) -> Callable[..., Any]:
    """`up(*options)` runs `capdex up` in the shell's folder: its process and its up.json."""
    (shell / "none").mkdir()

    def start(*options: str) -> tuple[Any, dict[str, Any]]:
        ports = () if "--port" in options else ("--port", "0", "--rpc-port", "0")
        process = shell.start("up", "--ipfs", "dir", "--examples", "none", *ports, *options)

        def ready() -> Any:
            return json.loads(process.stdout) if process.stdout.endswith("}\n") else None

        said = process.wait_for(ready, "it was ready")
        written = json.loads((shell / ".capdex" / "up.json").read_text())
        assert set(written) == KEYS
        # Piped, stdout is one JSON object, and the same.
        assert said == {"schema": "capdex.up/1", **written}
        assert written["pid"] == process.popen.pid
        return process, written

    return start


@pytest.fixture
def gone(eventually: Callable[..., Any]) -> Callable[..., None]:
    """Waits until none of these processes runs any more."""

    def wait(pids: set[int], within: float) -> None:
        assert pids
        eventually(lambda: not any(map(alive, pids)), f"the end of {pids}", within)

    return wait


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def below(pid: int) -> dict[int, str]:
    """Every process that descends from this one, with its command's name."""
    parents: dict[int, tuple[int, str]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, tail = stat.read_text().rpartition(")")
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents[int(head.split()[0])] = (int(tail.split()[1]), head.partition("(")[2])
    found: dict[int, str] = {}
    open_ = {pid}
    while open_:
        children = {x: name for x, (parent, name) in parents.items() if parent in open_}
        found |= children
        open_ = set(children)
    return found


def publish(shell: Any, name: str) -> dict[str, Any]:
    shell("init", name, "--kind", "prompt", "--description", f"What {name} does.")
    found: dict[str, Any] = shell.json("publish", f"{name}.acp.yaml", "--yes")
    return found


def kill_all(process: Any) -> None:
    """SIGKILL to `up` and everything below it at once, Anvil's own process group too."""
    for pid in (process.popen.pid, *below(process.popen.pid)):
        os.kill(pid, signal.SIGKILL)
    process.popen.wait()


def kept_by_anvil(shell: Any, name: str, eventually: Callable[..., Any]) -> None:
    """Wait until the chain's file tells of a publication: Anvil writes it once a second."""
    state, needle = shell / ".capdex" / "anvil.json", name.encode().hex()
    eventually(lambda: state.exists() and needle in state.read_text(), "Anvil's state")


def test_killed_with_everything_under_it_up_goes_on_where_it_was(
    up: Any, shell: Any, gone: Any, eventually: Callable[..., Any]
) -> None:
    process, before = up()
    first = publish(shell, "weather")
    kept_by_anvil(shell, "weather", eventually)
    children = set(below(process.popen.pid))
    kill_all(process)
    gone(children, 10)
    # A kill can fall into the moment when Anvil writes: then only half of its file is there.
    draft = shell / ".capdex" / "anvil.draft"
    draft.write_bytes(draft.read_bytes()[: draft.stat().st_size // 2])

    _, after = up()
    assert {key: after[key] for key in KEPT} == {key: before[key] for key in KEPT}
    found = shell.json("resolve", "weather")
    assert (found["ipfs_cid"], found["chain"]["tx_hash"]) == (first["cid"], first["tx_hash"])
    assert shell.json("publish", "weather.acp.yaml", "--yes")["already"] is True
    shell("get", "weather", "--output", "copy.acp.yaml")
    assert (shell / "copy.acp.yaml").read_bytes() == (shell / "weather.acp.yaml").read_bytes()
    second = publish(shell, "tides")
    assert second["block_number"] > first["block_number"]


def test_a_chain_that_lost_its_last_second_is_followed_back_and_published_to_again(
    up: Any, shell: Any, eventually: Callable[..., Any]
) -> None:
    process, before = up()
    publish(shell, "weather")
    kept_by_anvil(shell, "weather", eventually)
    chain, draft = shell / ".capdex" / "anvil.json", shell / ".capdex" / "anvil.draft"
    kept = chain.read_bytes()
    first = publish(shell, "tides")
    kill_all(process)
    chain.write_bytes(kept)  # the kill came before Anvil wrote the second publication
    draft.unlink()

    _, after = up()
    assert {key: after[key] for key in KEPT} == {key: before[key] for key in KEPT}
    shell.json("resolve", "weather")
    assert shell.error("resolve", "tides", code=1)["code"] == "NOT_FOUND"
    again = shell.json("publish", "tides.acp.yaml", "--yes")
    assert (again["already"], again["cid"]) == (False, first["cid"])
    assert shell.json("resolve", "tides")["ipfs_cid"] == first["cid"]


def test_ctrl_c_ends_every_child_and_all_is_there_again(up: Any, shell: Any, gone: Any) -> None:
    process, before = up()
    first = publish(shell, "weather")
    children = below(process.popen.pid)
    assert "anvil" in children.values()
    assert process.stop(signal.SIGINT, within=10) == 130
    gone(set(children), 10)
    assert not (shell / ".capdex" / "up.json").exists()
    refused = shell.error("resolve", "weather", code=2)
    assert "capdex up" in refused["fix"]

    _, after = up()
    assert {key: after[key] for key in KEPT} == {key: before[key] for key in KEPT}
    assert shell.json("resolve", "weather")["ipfs_cid"] == first["cid"]


def test_sigkill_of_up_alone_leaves_no_orphan_and_fresh_begins_anew(
    up: Any, shell: Any, gone: Any
) -> None:
    process, before = up()
    publish(shell, "weather")
    children = below(process.popen.pid)
    assert "anvil" in children.values()
    os.kill(process.popen.pid, signal.SIGKILL)
    process.popen.wait()
    gone(set(children), 20)

    _, after = up("--fresh")
    assert after["account"] != before["account"]
    assert shell.error("resolve", "weather", code=1)["code"] == "NOT_FOUND"
    publish(shell, "tides")


def test_up_ends_with_its_anvil_and_says_so(up: Any, shell: Any, gone: Any) -> None:
    process, _ = up()
    children = below(process.popen.pid)
    os.kill(next(pid for pid, name in children.items() if name == "anvil"), signal.SIGKILL)
    assert process.popen.wait(20) == 3
    assert "Anvil, the local chain, has ended with code -9" in process.stderr
    gone(set(children), 10)


def test_a_second_up_in_a_directory_is_told_of_the_first(up: Any, shell: Any) -> None:
    process, before = up()
    told = shell.error("up", "--port", "0", "--rpc-port", "0", code=2)
    assert "another `capdex up` runs" in told["what"]
    assert "--dir" in told["fix"]
    assert process.popen.poll() is None
    assert json.loads((shell / ".capdex" / "up.json").read_text()) == before
    shell.json("search", "")


def test_where_its_ports_are_taken_up_takes_others_and_says_which(up: Any, shell: Any) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as two,
    ):
        taken = {str(x.getsockname()[1]) for x in (one, two)}
        port, rpc_port = taken
        _, info = up("--port", port, "--rpc-port", rpc_port)
    urls = {info[key].rpartition(":")[2] for key in ("http_url", "rpc_url")}
    assert not urls & taken
    assert info["mcp_url"] == f"{info['http_url']}/mcp"
    assert info["gateway_url"] == info["http_url"]
    shell.json("search", "")
