"""`capdex account` and `keygen`: the account that publishes, and the author's signing key."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import click

from capdex.encoding.abi import parse_address
from capdex.errors import Refused
from capdex_cli.config.settings import user_directories
from capdex_cli.publish.account import (
    account_address,
    account_options,
    key_source,
    keystore_path,
    passphrase_options,
)
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import FILE, Group, command
from capdex_cli.terminal.prompt import NOTHING_WRITTEN, ask_secret, passphrase
from capdex_cli.terminal.text import safe
from capdex_publisher.ethereum.transaction import ether
from capdex_publisher.keys.public_accounts import DEV_CHAIN_ID, PUBLIC_ACCOUNTS
from capdex_publisher.keys.secret import MAX_SECRET_BYTES, Secret, read_secret, secret_of

OUT: Final = click.option("--out", type=FILE, metavar="FILE", help="Where the key file goes.")
LIGHT: Final = click.option(
    "--light", is_flag=True, help="Encrypt quickly and weakly: throw-away chains only."
)


@command(
    "keygen",
    examples=["capdex keygen", "capdex keygen --out keys/author.json --passphrase-file pass.txt"],
)
@OUT
@click.option("--light", is_flag=True, help="Encrypt quickly and weakly: throw-away keys only.")
@passphrase_options
def keygen_command(app: App, out: Path | None, light: bool) -> None:
    """Make a signing key (did:key).

    An Ed25519 key, encrypted with a passphrase. A file that exists is never overwritten.
    """
    from capdex_publisher.keys.keystore import create_did_key

    path = out or user_directories().keys / "author.json"
    did = create_did_key(path, passphrase(app, path, new=True), light=light).did
    named = "" if out is None else f" --author-key {safe(path)}"
    human = [
        f"{app.output.out.mark('ok')} {did}",
        f"  in {safe(path)}",
        f"  next: capdex sign FILE{named}",
    ]
    app.output.result("key", {"did": did, "file": str(path)}, human=human, plain=[did])


@command("new", examples=["capdex account new", "capdex account new --out keys/account.json"])
@OUT
@LIGHT
@passphrase_options
def new_command(app: App, out: Path | None, light: bool) -> None:
    """Make an account and its encrypted key file (a web3 keystore)."""
    from capdex_publisher.keys.keystore import create_account

    path = out or user_directories().keys / "account.json"
    account = create_account(path, passphrase(app, path, new=True), light=light)
    named = "" if out is None else f" --keystore {safe(path)}"
    network = app.settings.network
    local = network is not None and network.chain_id == DEV_CHAIN_ID
    then = "capdex account fund" if local else "send it ether, then: capdex account balance"
    _show(app, str(account.address), path, then + named)


@command(
    "import",
    examples=[
        "capdex account import",
        "capdex account import --from ~/.ethereum/keystore/UTC--2026-01-01",
        "capdex account import --passphrase-file pass.txt < key.txt",
    ],
)
@click.option(
    "--from", "source", type=FILE, metavar="FILE",
    help="A web3 keystore (version 3) to copy, opened with the same passphrase options.",
)  # fmt: skip
@click.option(
    "--key-fd", type=int, metavar="N",
    help="Read the private key from descriptor N.  [default: stdin, or asked]",
)  # fmt: skip
@OUT
@LIGHT
@passphrase_options
def import_command(
    app: App, source: Path | None, key_fd: int | None, out: Path | None, light: bool
) -> None:
    """Keep a private key you have in an encrypted key file.

    The key is 64 hexadecimal digits, from stdin, a descriptor or another keystore; never from the
    command line, which other programs can read.
    """
    from capdex_publisher.keys.keystore import (
        check_free,
        load_account,
        parse_private_key,
        store_account,
    )

    path = out or user_directories().keys / "account.json"
    check_free(path)  # before a secret is typed
    if source is not None:
        account = load_account(source, passphrase(app, source))
    else:
        account = parse_private_key(*_read_key(app, key_fd))
    if account.address in PUBLIC_ACCOUNTS:
        app.output.warn(f"the key of {account.address} is public: for local chains only")
    store_account(path, account, passphrase(app, path, new=True), light=light)
    _show(app, str(account.address), path)


@command("show", examples=["capdex account show", "capdex account show --plain"])
@account_options
async def show_command(app: App) -> None:
    """Show the account's address. Needs no passphrase."""
    address = await account_address(app)
    _show(app, address, keystore_path(app) if key_source(app) == "keystore" else None)


@command("balance", examples=["capdex account balance", "capdex account balance --network sepolia"])
@account_options
async def balance_command(app: App) -> None:
    """Show what the account can spend on the network."""
    from capdex_publisher.ethereum.client import Chain

    network = app.settings.need_network("rpc_url", "chain_id")

    address, state = await account_address(app), user_directories().state
    async with Chain.connect(network.rpc_url, network.chain, state_dir=state) as chain:
        wei = await chain.balance(address)
    exact = f"{wei // 10**18}.{wei % 10**18:018}".rstrip("0").rstrip(".") + " ether"
    value = {"address": address, "chain_id": network.chain, "wei": str(wei), "ether": exact}
    human = [f"{address}  {exact} on {safe(network.name)} ({network.chain})"]
    app.output.result("balance", value, human=human, plain=[wei])


@command("fund", examples=["capdex account fund", "capdex account fund --keystore second.json"])
@click.argument("address", required=False)
@account_options
async def fund_command(app: App, address: str | None) -> None:
    """Give the account, or another address, play money on a local chain.

    So a second account can rehearse what it will do on a public chain.
    """
    from capdex_publisher.ethereum.anvil import FUNDS_WEI, fund
    from capdex_publisher.ethereum.client import Chain

    network = app.settings.need_network("rpc_url", "chain_id")
    if network.chain != DEV_CHAIN_ID:
        raise Refused(
            f"chain {network.chain} is no local chain, and its ether has a price",
            fix="run capdex up, and this command beside it",
        )

    to = parse_address(address) if address else await account_address(app)
    state = user_directories().state
    async with Chain.connect(network.rpc_url, network.chain, state_dir=state) as chain:
        await fund(chain.rpc, to)
    value = {"address": to, "chain_id": network.chain, "wei": str(FUNDS_WEI)}
    app.output.result("balance", value, human=[f"{to}  {ether(FUNDS_WEI)}"], plain=[FUNDS_WEI])


def _read_key(app: App, key_fd: int | None) -> tuple[Secret, str]:
    """The private key, and where it came from."""
    if key_fd is None and app.may_ask:
        question = "Private key (64 hexadecimal digits)"
        return Secret(ask_secret(question, undone=NOTHING_WRITTEN)), "what was typed"
    if key_fd is None and sys.stdin.isatty():
        raise Refused(
            "no private key was given, and no terminal to ask for it",
            why="stderr is not a terminal, or CI or --no-input is set",
            fix="pipe it in, or use --key-fd N or --from FILE",
        )
    if key_fd is not None:
        return read_secret(key_fd), f"file descriptor {key_fd}"
    return secret_of(sys.stdin.buffer.read(MAX_SECRET_BYTES + 1), "stdin"), "stdin"


def _show(app: App, address: str, path: Path | None, after: str = "") -> None:
    place = f"in {safe(path)}" if path else f"by the {key_source(app)}"
    value = {"address": address, "file": None if path is None else str(path)}
    human = [address, f"  {place}", *([f"  next: {after}"] if after else [])]
    app.output.result("account", value, human=human, plain=[address])


account_command = Group(
    "account",
    commands=[new_command, import_command, show_command, balance_command, fund_command],
    help="Make and show the account that publishes.",
    examples=["capdex account new", "capdex account show", "capdex account balance"],
)
