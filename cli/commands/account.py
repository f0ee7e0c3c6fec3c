"""`capdex account`: the account that publishes and pays."""

from __future__ import annotations

from pathlib import Path

import click

from cli.app import App
from cli.consent import passphrase
from cli.house import Entry, Group, command
from cli.places import places
from cli.text import safe
from cli.wallet import KEYSTORE, account_address, keystore_path, passphrase_options


@command(
    "new",
    examples=["capdex account new", "capdex account new --out keys/account.json"],
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Where the key file goes."
)
@click.option("--light", is_flag=True, help="Encrypt quickly and weakly: throw-away chains only.")
@passphrase_options
def new_command(app: App, out: Path | None, light: bool) -> None:
    """Make an account and its encrypted key file (a web3 keystore)."""
    from publisher.keys import create_account

    path = out or places().keys / "account.json"
    secret = passphrase(app, path, new=True)
    account = create_account(path, secret, light=light)
    _show(app, str(account.address), path)


@command("show", examples=["capdex account show", "capdex account show --plain"])
@KEYSTORE
def show_command(app: App) -> None:
    """Show the account's address. Needs no passphrase."""
    from publisher.keys import read_address

    path = keystore_path(app)
    _show(app, read_address(path), path)


@command("balance", examples=["capdex account balance", "capdex account balance --network sepolia"])
@KEYSTORE
def balance_command(app: App) -> None:
    """Show what the account can spend on the network."""
    from publisher.chain import Chain
    from publisher.transaction import ether

    network = app.settings.need_network("rpc_url", "chain_id")

    async def ask() -> tuple[str, int]:
        address = await account_address(app)
        async with Chain.connect(network.rpc_url, network.chain, state_dir=places().state) as chain:
            return address, await chain.balance(address)

    address, wei = app.run(ask())
    app.output.result(
        "balance",
        {"address": address, "chain_id": network.chain, "wei": str(wei), "ether": ether(wei)},
        human=lambda: [f"{address}  {ether(wei)} on {safe(network.name)} ({network.chain})"],
        plain=[wei],
    )


def _show(app: App, address: str, path: Path) -> None:
    app.output.result(
        "account",
        {"address": address, "file": str(path)},
        human=lambda: [address, f"  in {safe(path)}"],
        plain=[address],
    )


account_command = Group(
    "account",
    entries={
        name: Entry("Commands", __name__, purpose)
        for name, purpose in {
            "new": "Make an account and its encrypted key file",
            "show": "Show the account's address",
            "balance": "Show what the account can spend",
        }.items()
    },
    no_args_is_help=True,
    help="Make and show the account that publishes.",
    examples=["capdex account new", "capdex account show", "capdex account balance"],
)
