"""`capdex yank` and `unyank`: flags of a release; nothing is ever deleted (P11)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from capdex.errors import CapdexError, Code
from capdex.uri import CapabilityURI
from cli.app import App
from cli.consent import account_options, confirm, keystore_path, open_account
from cli.house import command
from cli.places import places
from cli.text import safe, short

if TYPE_CHECKING:
    from publisher.chain import Transaction
    from publisher.registry import Registry

DRY_RUN = click.option("--dry-run", is_flag=True, help="Check and show the transaction; send none.")
URI = click.argument("uri", metavar="NAME@VERSION")


@command("yank", examples=["capdex yank weather@1.3.0 --reason 'wrong unit in forecasts'"])
@URI
@click.option("--reason", default="", help="Why; everybody who asks for this version sees it.")
@DRY_RUN
@account_options
def yank_command(
    app: App,
    uri: str,
    reason: str,
    dry_run: bool,
    keystore: Path | None,
    passphrase_fd: int | None,
    passphrase_file: Path | None,
) -> None:
    """Take a release out of search and latest.

    Whoever asks for exactly this version still finds it, with a warning. Can be taken back.
    """
    change(app, uri, reason, dry_run, keystore, passphrase_fd, passphrase_file)


def change(
    app: App,
    uri: str,
    reason: str | None,
    dry_run: bool,
    keystore: Path | None,
    passphrase_fd: int | None,
    passphrase_file: Path | None,
) -> None:
    """Yank (with a reason) or unyank (None): plan, yes, send, wait."""
    app.run(_change(app, uri, reason, dry_run, keystore, passphrase_fd, passphrase_file))


async def _change(
    app: App,
    uri: str,
    reason: str | None,
    dry_run: bool,
    keystore: Path | None,
    passphrase_fd: int | None,
    passphrase_file: Path | None,
) -> None:
    from publisher.chain import ether
    from publisher.keys import read_address
    from publisher.registry import Registry

    parsed = CapabilityURI.loose(uri)
    verb, name, semver = "unyank" if reason is None else "yank", parsed.name, str(parsed.version)
    network = app.settings.need_network("rpc_url", "chain_id", "registry")
    sender = read_address(keystore_path(app, keystore))
    value = {
        "action": verb,
        "cap_uri": str(parsed),
        "reason": reason,
        "dry_run": dry_run,
        "chain_id": network.chain,
        "registry": network.registry,
        "transaction": None,
        "tx_hash": None,
        "block_number": None,
    }
    async with Registry.connect(
        network.rpc_url, network.registry, network.chain, state_dir=places().state
    ) as registry:
        try:
            priced = await _price(app, registry, sender, name, semver, reason)
        except CapdexError as error:
            if error.code is not Code.ALREADY_DONE:
                raise
            app.output.step("ok", verb, f"nothing to do: {safe(error.message)}")
            app.output.result(verb, value, human=lambda: [str(parsed)], plain=[parsed])
            return
        app.output.say(f"  {verb} {parsed} on {safe(network.name)} ({network.chain}) as {sender}")
        cap = ether(app.settings.fee_cap_wei)
        app.output.step("plan", "cost", f"{ether(priced.expected_fee_wei)} (cap {cap})")
        if dry_run:
            value["transaction"] = priced.to_json()
            app.output.step("plan", "dry run", f"would {verb}; nothing was sent")
        else:
            confirm(app, f"  {verb.capitalize()} {parsed}?")
            account = open_account(app, keystore, passphrase_fd, passphrase_file)
            sent = await registry.send(account, priced)
            app.output.detail(f"  sent {sent.tx_hash}")
            receipt = await registry.wait(sent.tx_hash)
            value |= {"tx_hash": receipt.tx_hash, "block_number": receipt.block_number}
            place = f"block {receipt.block_number}, tx {short(receipt.tx_hash)}"
            app.output.step("ok", f"{verb}ed", place)
    app.output.result(verb, value, human=lambda: [str(parsed)], plain=[parsed])


async def _price(
    app: App, registry: Registry, sender: str, name: str, semver: str, reason: str | None
) -> Transaction:
    cap = app.settings.fee_cap_wei
    if reason is None:
        return await registry.price_unyank(sender, name, semver, fee_cap_wei=cap)
    return await registry.price_yank(sender, name, semver, reason, fee_cap_wei=cap)
