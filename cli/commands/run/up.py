"""`capdex up`: everything on this machine, in one directory."""

from __future__ import annotations

from pathlib import Path

import click

from cli.config.settings import UpSettings
from cli.terminal.app import App
from cli.terminal.click_commands import command

PORT = click.IntRange(0, 65535)


@command("up", examples=["capdex up", "capdex up --fresh --examples examples"])
@click.option("--fresh", is_flag=True, help="Forget what an earlier run left.")
@click.option("--port", type=PORT, default=8765, help="The node's; 0 takes any free port.")
@click.option("--rpc-port", type=PORT, default=8545, help="The chain's; 0 takes any free port.")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".capdex"),
    help="Where everything is kept.",
)
@click.option(
    "--examples",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Publish the packages of this directory.",
)
@click.option(
    "--ipfs",
    type=click.Choice(["auto", "dir", "kubo"]),
    default="auto",
    help="Where packages are kept: a directory, a Kubo daemon, or Kubo if there is one.",
)
def up_command(
    app: App,
    fresh: bool,
    port: int,
    rpc_port: int,
    folder: Path,
    examples: Path | None,
    ipfs: str,
) -> object:
    """Run a whole local network: chain, registry, IPFS and node.

    While it runs, every other command in this directory uses it.
    """
    from cli.devnet.up import run_up

    return run_up(UpSettings(fresh, port, rpc_port, folder, examples, ipfs), app.output)
