"""`capdex up`: a chain, a registry, a node and the example packages, on this machine, in one go.

Everything lies in one directory and is continued from there at the next start, also after a
SIGKILL: Anvil writes its state every second, the index repeats what it had not committed, and
publishing finds what has already happened.
"""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, Final

from web3.types import RPCEndpoint

from capdex.errors import Code, UsageError
from capdex.net.ipfs.open import open_storage
from cli.config.settings import UpSettings
from cli.devnet.anvil import DEV_CHAIN_ID, pick_port, run_anvil
from cli.devnet.directory import Home
from cli.devnet.examples import Local, publish_examples
from cli.node.run import verdicts
from cli.node.serve import listen, open_prover, serve
from cli.terminal import logs
from cli.terminal.output import Output
from cli.terminal.signals import run_until_stopped
from indexer.node.node import Node, NodeOptions
from mcp_service.hosts import known_hosts
from publisher.deploy import create2
from publisher.deploy.deploy import deploy
from publisher.ethereum.client import Chain
from publisher.files import write_atomically
from publisher.registry.registry import Registry

HOST: Final = "127.0.0.1"
FUNDS_WEI: Final = 1000 * 10**18  # play money
POLL_S: Final = 0.2  # heads come by websocket; this is the safety net
KUBO: Final = "http://127.0.0.1:5001"


def run_up(settings: UpSettings, output: Output | None = None) -> int:
    """Run everything until SIGINT (exit 130) or SIGTERM (143); raises why it could not start."""
    output = output or Output.open()
    home = Home(settings.dir.absolute())

    def stopping() -> None:
        output.say("")
        output.step("plan", "stopping", "again with `capdex up`, anew with `capdex up --fresh`")

    with (
        home.held(fresh=settings.fresh),
        (home.path / "node.log").open("a", encoding="utf-8") as file,
    ):
        logs.set_up("logfmt", stream=file)
        return run_until_stopped(_up(settings, home, output), on_stop=stopping)


async def _up(settings: UpSettings, home: Home, output: Output) -> None:
    """Start each part, publish the examples, say that all is ready, and wait."""
    async with AsyncExitStack() as parts:
        signer, author = home.open_keys()
        anvil = await parts.enter_async_context(
            run_anvil(
                state=home.path / "anvil.json",
                port=pick_port(settings.rpc_port),
                log=home.path / "anvil.log",
            )
        )
        output.step("ok", "chain", f"Anvil at {anvil.url}, chain id {DEV_CHAIN_ID}")
        chain = await parts.enter_async_context(
            Chain.connect(anvil.url, DEV_CHAIN_ID, state_dir=home.path / "state")
        )
        if await chain.balance(signer.address) < FUNDS_WEI // 2:
            fund = RPCEndpoint("anvil_setBalance")
            await chain.endpoint.make_request(fund, [signer.address, hex(FUNDS_WEI)])
        deployment, is_new = await deploy(chain, signer, home.path / "deployments")
        output.step("ok", "registry", f"{deployment.registry}{', deployed now' if is_new else ''}")
        votes, _ = await deploy(
            chain, signer, home.path / "deployments", create2.votes(deployment.registry)
        )
        if is_new:
            home.drop_index()
        ipfs = await _ipfs(settings.ipfs, home.path)
        listener = parts.enter_context(listen(HOST, pick_port(settings.port)))
        url = f"http://{HOST}:{listener.getsockname()[1]}"
        db = f"sqlite:///{home.path / 'index.db'}"
        served = verdicts(serve_signed=False)
        options = NodeOptions(
            rpc_urls=(anvil.url,),
            chain_id=DEV_CHAIN_ID,
            registry=deployment.registry,
            db=db,
            blocks=home.path / "blocks",
            ipfs=() if ipfs.startswith("dir:") else (ipfs,),
            serve=served,
            start_block=deployment.block_number,
            poll_interval_s=POLL_S,
            votes=votes.address,
        )
        try:
            node = await parts.enter_async_context(Node.open(options))
        except UsageError as error:
            if error.code is not Code.FOREIGN_DATABASE:
                raise
            home.drop_index()  # everything in it can be read again
            node = await parts.enter_async_context(Node.open(options))
        prover = await parts.enter_async_context(
            open_prover((anvil.url,), chain_id=DEV_CHAIN_ID, registry=deployment.registry)
        )
        running = await parts.enter_async_context(
            serve(node, listener, verdicts=served, allowed=known_hosts(HOST, ()), prover=prover)
        )
        output.step("ok", "node", f"{url}   log in {_short(home.path / 'node.log')}")
        info = {
            "rpc_url": anvil.url,
            "chain_id": DEV_CHAIN_ID,
            "registry": deployment.registry,
            "start_block": deployment.block_number,
            "votes": votes.address,
            "http_url": url,
            "mcp_url": f"{url}/mcp",
            "gateway_url": url,
            "ipfs": ipfs,
            "db_url": db,
            "account": signer.address,
            "pid": os.getpid(),
        }
        storage = open_storage(ipfs)
        parts.push_async_callback(storage.close)
        local = Local(
            Registry(chain, deployment.registry, start_block=deployment.block_number),
            signer,
            author,
            storage,
            node.surface.index,
            home.path / "packages",
        )
        folder = _examples(settings.examples)
        if folder is not None:
            await publish_examples(local, folder, output)
        _announce(home.path, info, output, parts)
        await running


def _announce(home: Path, info: dict[str, Any], output: Output, parts: AsyncExitStack) -> None:
    path = home / "up.json"
    write_atomically(path, (json.dumps(info, indent=2) + "\n").encode("utf-8"))
    parts.callback(path.unlink, missing_ok=True)

    def human() -> list[str]:
        bold = output.out.style
        return [
            "",
            f"  {bold('ready', 'green', bold=True)}   MCP server  {info['mcp_url']}",
            f"          status      {info['http_url']}/status",
            "          try         capdex search weather      (in a second terminal, here)",
            "          stop        Ctrl-C; everything is kept in "
            f"{_short(home)} for the next start",
        ]

    output.result("up", info, human=human, plain=[info["mcp_url"]])


async def _ipfs(choice: str, home: Path) -> str:
    """The spec that packages are published to: a running Kubo where wanted, else a directory."""
    directory = f"dir:{home / 'blocks'}"
    if choice == "dir":
        return directory
    try:
        _, writer = await asyncio.open_connection(HOST, 5001)
        writer.close()
    except OSError:
        if choice == "kubo":
            raise UsageError(
                f"no Kubo answers at {KUBO}",
                Code.IPFS_UNAVAILABLE,
                fix="start one with `ipfs daemon`, or leave out --ipfs kubo",
            ) from None
        return directory
    return KUBO if choice == "kubo" else directory


def _examples(named: Path | None) -> Path | None:
    """The examples to publish: those named, else those of this directory, if there are any."""
    if named is not None:
        return named
    for folder in (Path.cwd() / "examples", Path(__file__).resolve().parents[2] / "examples"):
        if any(folder.glob("*.acp.yaml")):
            return folder
    return None


def _short(path: Path) -> str:
    with suppress(ValueError):
        return str(path.relative_to(Path.cwd()))
    return str(path)
