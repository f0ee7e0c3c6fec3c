"""`capdex deploy`: a registry contract of one's own."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from cli.app import App
from cli.consent import account_options, confirm, keystore_path, open_account
from cli.house import command
from cli.places import places
from cli.text import columns, safe


@command(
    "deploy",
    examples=["capdex deploy --network sepolia --dry-run", "capdex deploy --network sepolia --yes"],
)
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("deployments"),
    help="Where <chain-id>.json is kept.",
)
@click.option("--force", is_flag=True, help="Deploy although one stands there already.")
@click.option("--dry-run", is_flag=True, help="Check and show the transaction; send none.")
@account_options
def deploy_command(
    app: App,
    folder: Path,
    force: bool,
    dry_run: bool,
    keystore: Path | None,
    passphrase_fd: int | None,
    passphrase_file: Path | None,
) -> None:
    """Deploy a registry contract.

    It has no owner and cannot be changed afterwards. A deployment that still stands is given back.
    """
    app.run(_deploy(app, folder, force, dry_run, keystore, passphrase_fd, passphrase_file))


async def _deploy(
    app: App,
    folder: Path,
    force: bool,
    dry_run: bool,
    keystore: Path | None,
    passphrase_fd: int | None,
    passphrase_file: Path | None,
) -> None:
    from publisher.chain import Chain, ether
    from publisher.deploy import creation_code, deploy
    from publisher.keys import read_address

    network = app.settings.need_network("rpc_url", "chain_id")
    sender = read_address(keystore_path(app, keystore))
    cap = 10 * app.settings.fee_cap_wei  # a contract costs some fifty publications
    async with Chain.connect(network.rpc_url, network.chain, state_dir=places().state) as chain:
        app.output.say(f"  registry on {safe(network.name)} ({network.chain}) as {sender}")
        if dry_run:
            priced = await chain.price(sender, None, creation_code(), fee_cap_wei=cap)
            cost = f"{ether(priced.expected_fee_wei)} (cap {ether(cap)})"
            app.output.step("plan", "dry run", f"would cost {cost}; nothing was sent")
            app.output.result("deployment-plan", priced.to_json(), human=list)
            return
        confirm(app, f"  Deploy, for {ether(cap)} at most?")
        account = open_account(app, keystore, passphrase_fd, passphrase_file)
        found, new = await deploy(chain, account, folder, force=force, fee_cap_wei=cap)
    app.output.step("ok", "deployed" if new else "unchanged", f"block {found.block_number}")
    value = {**asdict(found), "new": new}
    app.output.result(
        "deployment",
        value,
        human=lambda: columns([(key, str(item)) for key, item in value.items()]),
        plain=[found.registry],
    )
