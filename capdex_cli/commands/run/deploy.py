"""`capdex deploy`: the contracts, at the address they have on every chain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.decorators import FC

from capdex.encoding.abi import parse_address
from capdex.errors import UsageError
from capdex_cli.config.settings import Network, user_directories
from capdex_cli.publish.account import (
    account_address,
    fee_cap_wei,
    open_signer,
    spending_options,
    unlock,
)
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import DIRECTORY, command
from capdex_cli.terminal.prompt import confirm
from capdex_cli.terminal.status_line import StatusLine
from capdex_cli.terminal.text import columns, safe
from capdex_cli.views.progress import shallow, show_cost
from capdex_publisher.deploy import create2
from capdex_publisher.ethereum.transaction import Shallow

if TYPE_CHECKING:
    from capdex_publisher.deploy.deploy import DeployedContract


def _count(name: str, metavar: str, purpose: str) -> Callable[[FC], FC]:
    return click.option(name, type=click.IntRange(min=0), metavar=metavar, help=purpose)


@command(
    "deploy",
    examples=[
        "capdex deploy --address",
        "capdex deploy --network sepolia --dry-run",
        "capdex deploy --network sepolia --yes",
        "capdex deploy --network sepolia --votes",
    ],
)
@click.option("--address", is_flag=True, help="Only print its address, without a network.")
@click.option("--votes", is_flag=True, help="Deploy CapabilityVotes for the network's registry.")
@click.option("--token", metavar="ADDRESS", help="With --votes: weigh them by an ERC-5805 token.")
@_count("--timepoint", "N", "With --token: past time of the token's clock at which holdings count.")
@_count("--min-commitment-age", "SECONDS", "Default 60 (0 on chain 31337); changes the address.")
@_count("--max-commitment-age", "SECONDS", "Default 86400 (0 on chain 31337); changes the address.")
@_count("--start-block", "N", "Block it was deployed in, if the endpoint cannot find it.")
@click.option(
    "--dir", "folder", type=DIRECTORY, default=Path("deployments"),
    help="Directory of <chain-id>.json.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Check and show the transaction; do not send it.")
@spending_options
def deploy_command(
    app: App,
    address: bool,
    votes: bool,
    token: str | None,
    timepoint: int | None,
    min_commitment_age: int | None,
    max_commitment_age: int | None,
    start_block: int | None,
    folder: Path,
    dry_run: bool,
) -> None:
    """Deploy the registry contract, or the votes on its names.

    The contract has no owner and cannot be changed afterwards. Its address follows from its code
    and is the same on every public chain. A contract that is deployed already is left as it is.
    """
    creation = _creation(
        app, votes, token, timepoint or 0, (min_commitment_age, max_commitment_age)
    )
    if address:
        value = {key: _plan(creation)[key] for key in ("contract", "address", "arguments")}
        plain = [creation.address]
        app.output.result("contract-address", value, human=plain, plain=plain)
        return
    app.run(_deploy(app, creation, folder, start_block, dry_run))


def _creation(
    app: App, votes: bool, token: str | None, timepoint: int, ages_s: tuple[int | None, int | None]
) -> create2.Creation:
    """Return the contract of these options; raises UsageError if they do not fit together."""
    if not votes and (token or timepoint):
        raise UsageError("--token and --timepoint are options of votes", fix="add --votes")
    if votes and ages_s != (None, None):
        raise UsageError("votes have no commitment ages", fix="leave the ages out")
    network = app.settings.network
    chain_id = (network.chain_id if network else None) or 1  # any public chain
    if not votes:
        made = create2.registry(chain_id, min_age_s=ages_s[0], max_age_s=ages_s[1])
        usual = create2.registry(chain_id)
        if made.address != usual.address:
            app.output.warn(
                f"these commitment ages give another address: {made.address}; "
                f"the usual one is {usual.address}"
            )
        return made
    registry = network.registry if network else ""
    return create2.votes(
        parse_address(registry) if registry else create2.registry(chain_id).address,
        token=parse_address(token) if token else None,
        timepoint=timepoint,
    )


async def _deploy(
    app: App, creation: create2.Creation, folder: Path, start_block: int | None, dry_run: bool
) -> None:
    from capdex_publisher.deploy.deploy import (
        DEPLOYING_FEE_CAP_WEI,
        deploy,
        find,
        price,
        require_evm,
    )
    from capdex_publisher.ethereum.client import Chain
    from capdex_publisher.progress import Step

    network = app.settings.need_network("rpc_url", "chain_id")
    cap = fee_cap_wei(app, usual=DEPLOYING_FEE_CAP_WEI)
    state = user_directories().state
    async with Chain.connect(network.rpc_url, network.chain, state_dir=state) as chain:
        chain.confirmations = network.confirmations or chain.confirmations
        where = f"{safe(network.name)} ({network.chain})"
        app.output.say(f"  {creation.contract} at {creation.address} on {where}")
        deployed = await find(chain, creation, folder, start_block=start_block, dry_run=dry_run)
        if deployed is not None:
            app.output.step("ok", "unchanged", f"deployed since block {deployed.block_number}")
            _show(app, deployed, new=False)
            return
        sender = priced = None
        try:
            sender = await account_address(app)
        except UsageError as error:
            if not dry_run:
                raise
            app.output.warn(f"{error.message}: the cost was not checked")
            await require_evm(chain)
        if sender is not None:
            priced = await price(chain, sender, creation, fee_cap_wei=cap)
            show_cost(app, [priced], cap, f"   from {sender}")
        if dry_run:
            app.output.step("plan", "dry run", "would deploy it; nothing was sent")
            plan = _plan(creation)
            value = plan | {"transaction": priced.to_json() if priced else None}
            human = columns((key.replace("_", " "), _brief(item)) for key, item in plan.items())
            app.output.result("deployment-plan", value, human=human, plain=[creation.address])
            return
        confirm(app, "  Deploy? The contract cannot be changed or removed.")
        signer = await open_signer(app)
        unlock(app)
        told: list[Step] = []

        def show(step: Step) -> None:
            if isinstance(step, Shallow):
                line.show(shallow(step), log_now=not told)
                told.append(step)

        with StatusLine(app.output) as line:
            made, new = await deploy(chain, signer, folder, creation, fee_cap_wei=cap, on_step=show)
    app.output.step("ok", "deployed" if new else "unchanged", f"block {made.block_number}")
    _show(app, made, new=new)


def _plan(creation: create2.Creation) -> dict[str, Any]:
    """Return the transaction as any other wallet could send it."""
    return {
        "contract": creation.contract,
        "address": creation.address,
        "arguments": dict(creation.arguments),
        "to": create2.FACTORY,
        "value": 0,
        "data": creation.calldata,
    }


def _brief(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={item}" for key, item in value.items())
    text = str(value)
    more = f"… ({len(text) // 2 - 1} bytes; --json shows them)"
    return text if len(text) < 80 else text[:20] + more


def _show(app: App, deployed: DeployedContract, *, new: bool) -> None:
    value = {**asdict(deployed), "new": new}
    rows = [(key.replace("_", " "), _brief(item)) for key, item in asdict(deployed).items()]
    human = columns(row for row in rows if row[1])
    app.output.result("deployment", value, human=human, plain=[deployed.address])
    network = app.settings.network or Network("NAME")
    key = "votes" if deployed.contract == "CapabilityVotes" else "registry"
    said = [f'{key} = "{deployed.address}"'] if getattr(network, key) != deployed.address else []
    said += [] if key == "votes" else [f"start-block = {deployed.block_number}"]
    if said and app.settings.up is None:  # `capdex up` uses it already
        app.output.say(f"  to use it: {' and '.join(said)} in [networks.{safe(network.name)}]")
