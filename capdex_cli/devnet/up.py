"""`capdex up`: a chain, a registry, IPFS, a node and the example packages on this machine.

Everything is in one directory, and the next start continues from it, also after a SIGKILL: Anvil
writes its state every second, the index repeats what was not committed, and publishing skips what
is on chain.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from capdex.errors import Code, Unavailable, UsageError
from capdex.net.files import write_atomically
from capdex.net.ipfs.open import open_storage
from capdex_cli.devnet.anvil import ready_anvil
from capdex_cli.devnet.directory import NetworkDirectory
from capdex_cli.devnet.examples import publish_examples
from capdex_cli.node.options import semantic_wanted, served_verdicts
from capdex_cli.node.serve import serve
from capdex_cli.node.server import listen, url_of
from capdex_cli.node.workers import Serving
from capdex_cli.terminal import logs
from capdex_cli.terminal.output import Output
from capdex_indexer.monitoring.health import Health
from capdex_indexer.node.node import Node
from capdex_indexer.node.signals import run_until_stopped
from capdex_indexer.options import NodeOptions
from capdex_publisher.deploy import create2
from capdex_publisher.deploy.deploy import deploy
from capdex_publisher.ethereum.anvil import FUNDS_WEI, fund, pick_port, run_anvil
from capdex_publisher.ethereum.client import Chain
from capdex_publisher.keys.public_accounts import DEV_CHAIN_ID
from capdex_publisher.registry.registry import Registry
from capdex_service.limits.hosts import known_hosts

HOST: Final = "127.0.0.1"
POLL_S: Final = 0.2  # new heads come by websocket; polling is the fallback
FOLLOW_S: Final = 30.0  # until the node has read its chain: nearly always a second
KUBO: Final = "http://127.0.0.1:5001"


@dataclass(frozen=True, slots=True)
class UpOptions:
    """The options of `capdex up`; a port of 0 is any free one."""

    fresh: bool
    port: int
    rpc_port: int
    directory: Path
    examples: Path | None
    ipfs: str  # "auto", "dir" or "kubo"


def run_up(options: UpOptions, output: Output) -> int:
    """Run everything until SIGINT (exit 130) or SIGTERM (143); raises why it could not start."""
    home = NetworkDirectory(options.directory.absolute())

    def stopping() -> None:
        output.say("")
        output.step("plan", "stopping", "`capdex up` continues, `capdex up --fresh` starts anew")

    with (
        home.locked(fresh=options.fresh),
        (home.path / "node.log").open("a", encoding="utf-8") as file,
    ):
        logs.set_up("logfmt", stream=file)
        anvil = ready_anvil(output)
        return run_until_stopped(_up(options, home, anvil, output), on_stop=stopping)


async def _up(options: UpOptions, home: NetworkDirectory, program: Path, output: Output) -> None:
    """Start each part, publish the examples, print the addresses, and run until cancelled."""
    async with AsyncExitStack() as parts:
        signer, author = home.open_keys()
        rpc_url, anvil = await parts.enter_async_context(
            run_anvil(
                state=home.path / "anvil.json",
                port=pick_port(options.rpc_port),
                log=home.path / "anvil.log",
                program=program,
            )
        )
        taken = _taken(options.rpc_port, rpc_url)
        output.step("ok", "chain", f"Anvil at {rpc_url}, chain id {DEV_CHAIN_ID}{taken}")
        chain = await parts.enter_async_context(
            Chain.connect(rpc_url, DEV_CHAIN_ID, state_dir=home.path / "state")
        )
        if await chain.balance(signer.address) < FUNDS_WEI // 2:
            await fund(chain.rpc, signer.address)
        deployment, is_new = await deploy(chain, signer, home.path / "deployments")
        output.step("ok", "registry", f"{deployment.registry}{', deployed now' if is_new else ''}")
        votes, _ = await deploy(
            chain, signer, home.path / "deployments", create2.votes(deployment.registry)
        )
        if is_new:
            home.drop_index()
        ipfs = await _ipfs(options.ipfs, home.path)
        listener = parts.enter_context(listen(HOST, pick_port(options.port)))
        url = url_of(listener)
        node_options = NodeOptions(
            rpc_urls=(rpc_url,),
            chain_id=DEV_CHAIN_ID,
            registry=deployment.registry,
            db=f"sqlite:///{home.path / 'index.db'}",
            blocks=home.path / "blocks",
            ipfs=() if ipfs.startswith("dir:") else (ipfs,),
            keep_files=0 if ipfs.startswith("dir:") else 1 << 30,  # nothing else here serves them
            serve=served_verdicts(serve_signed=False),
            start_block=deployment.block_number,
            poll_interval_s=POLL_S,
            votes=votes.address,
            semantic=semantic_wanted(),
        )
        try:
            node = await parts.enter_async_context(Node.open(node_options))
        except UsageError as error:
            if error.code is not Code.FOREIGN_DATABASE:
                raise
            home.drop_index()
            output.step("warn", "index", "of another version: built again, and it denies nothing")
            node = await parts.enter_async_context(Node.open(node_options))
        serving = Serving(known_hosts(HOST, ()))
        running = await parts.enter_async_context(serve(node, listener, serving))
        taken = _taken(options.port, url)
        output.step("ok", "node", f"{url}{taken}   log in {_short(home.path / 'node.log')}")
        storage = open_storage(ipfs)
        parts.push_async_callback(storage.close)
        folder = _examples(options.examples)
        if folder is not None:
            await publish_examples(
                folder,
                output,
                registry=Registry(chain, deployment.registry, start_block=deployment.block_number),
                signer=signer,
                author=author,
                storage=storage,
                index=node.surface.index,
                signed=home.path / "packages",
            )
        # A kill can take the chain's last second: what the index holds may not be there any more.
        if warning := await _followed(node.surface.health, running):
            output.step("warn", "node", warning)
        info = {
            "rpc_url": rpc_url,
            "chain_id": DEV_CHAIN_ID,
            "registry": deployment.registry,
            "start_block": deployment.block_number,
            "votes": votes.address,
            "http_url": url,
            "mcp_url": f"{url}/mcp",
            "gateway_url": url,
            "ipfs": ipfs,
            "db_url": node_options.db,
            "account": signer.address,
            "pid": os.getpid(),
        }
        _announce(home.path, info, output, parts)
        ended = asyncio.create_task(anvil.wait())
        await asyncio.wait((running, ended), return_when=asyncio.FIRST_COMPLETED)
        if ended.done():
            raise Unavailable(
                f"Anvil, the local chain, has ended with code {anvil.returncode}",
                Code.RPC_UNAVAILABLE,
                fix=f"`capdex up` continues; see {_short(home.path / 'anvil.log')}",
            )
        await running


async def _followed(health: Health, running: asyncio.Task[None]) -> str | None:
    """Wait until a node is at its chain's head; return why it is not after FOLLOW_S."""
    deadline = time.monotonic() + FOLLOW_S
    while True:
        warning = health.warning()
        if not warning or running.done() or time.monotonic() > deadline:
            return warning
        await asyncio.sleep(POLL_S)


def _announce(home: Path, info: dict[str, Any], output: Output, parts: AsyncExitStack) -> None:
    """Write `up.json`, which makes this the network of other commands, and print the addresses."""
    path = home / "up.json"
    write_atomically(path, (json.dumps(info, indent=2) + "\n").encode("utf-8"))
    parts.callback(path.unlink, missing_ok=True)
    ready = output.out.style("ready", "green", bold=True)
    human = [
        "",
        f"  {ready}   explorer    {info['http_url']}/",
        f"          MCP server  {info['mcp_url']}",
        f"          status      {info['http_url']}/status",
        "          try         capdex search weather      (in a second terminal, here)",
        f"          stop        Ctrl-C; everything is kept in {_short(home)}",
    ]
    output.result("up", info, human=human, plain=[info["mcp_url"]])


async def _ipfs(choice: str, home: Path) -> str:
    """Return where packages are stored: Kubo if chosen, else the block directory."""
    if choice != "kubo":
        return f"dir:{home / 'blocks'}"
    try:
        _, writer = await asyncio.open_connection(HOST, 5001)
    except OSError:
        raise UsageError(
            f"no Kubo answers at {KUBO}",
            Code.IPFS_UNAVAILABLE,
            fix="start one with `ipfs daemon`, or leave out --ipfs kubo",
        ) from None
    writer.close()
    return KUBO


def _examples(named: Path | None) -> Path | None:
    """Return the examples to publish: those named, else of this directory, else of capdex.

    Those of capdex are beside its own code in an installation, and above it in a clone.
    """
    if named is not None:
        return named
    for above in (Path.cwd(), *Path(__file__).resolve().parents[1:3]):
        if any(above.glob("examples/*.acp.yaml")):
            return above / "examples"
    return None


def _taken(port: int, url: str) -> str:
    """Return words about a port that was asked for and had to be another."""
    return f" ({port} is taken)" if port and not url.endswith(f":{port}") else ""


def _short(path: Path) -> str:
    with suppress(ValueError):
        return str(path.relative_to(Path.cwd()))
    return str(path)
