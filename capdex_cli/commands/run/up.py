"""`capdex up`: a local network in one directory."""

from __future__ import annotations

from pathlib import Path

import click

from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import DIRECTORY, command
from capdex_cli.terminal.errors import missing

PORT = click.IntRange(0, 65535)
ANY_PORT = "any free one if it is 0 or taken"


@command("up", examples=["capdex up", "capdex up --fresh --examples examples"])
@click.option("--fresh", is_flag=True, help="Delete the data of an earlier run first.")
@click.option("--port", type=PORT, default=8765, help=f"Port of the node; {ANY_PORT}.")
@click.option("--rpc-port", type=PORT, default=8545, help=f"Port of the chain; {ANY_PORT}.")
@click.option(
    "--dir", "folder", type=DIRECTORY, default=Path(".capdex"),
    help="Directory of everything. The other commands look for the name .capdex alone.",
)  # fmt: skip
@click.option(
    "--examples", type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Publish the packages of this directory.  [default: `examples` here, else capdex's own]",
)  # fmt: skip
@click.option(
    "--ipfs", type=click.Choice(["auto", "dir", "kubo"]), default="auto",
    help="Store packages in a directory (auto, too) or in a running Kubo.",
)  # fmt: skip
def up_command(
    app: App, fresh: bool, port: int, rpc_port: int, folder: Path, examples: Path | None, ipfs: str
) -> object:
    """Run a whole local network: chain, registry, IPFS and node.

    While it runs, the other commands use it in this directory and below, unless an option, a
    variable or a file chooses another network.
    """
    try:
        from capdex_cli.devnet.up import UpOptions, run_up
    except ModuleNotFoundError as error:  # of the extra `node`, which `local` has, too
        raise missing("local", error.name or "") from None

    return run_up(UpOptions(fresh, port, rpc_port, folder, examples, ipfs), app.output)
