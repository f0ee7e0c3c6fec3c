"""`capdex node`: chain and IPFS in, verified answers out."""

from __future__ import annotations

import os
from pathlib import Path

import click

from cli.config.directories import user_directories
from cli.node.database import default_database
from cli.terminal.app import App
from cli.terminal.click_commands import Entry, run_group

DEFAULT_PORT = 8765
DEFAULT_FINALITY_BLOCKS = 64  # two epochs of Ethereum
MAX_FINALITY_BLOCKS = 1_000_000  # months; their hashes are held in memory
POLL_S = (0.01, 3600.0)  # oftener is an attack on the endpoint, more rarely is hardly following


def _seconds(_: click.Context, __: click.Parameter, value: float) -> float:
    if not POLL_S[0] <= value <= POLL_S[1]:  # as what is no number is not, either
        raise click.BadParameter(f"{value} is not in the range {POLL_S[0]}<=x<={POLL_S[1]:g}.")
    return value


@run_group(
    "node",
    entries={
        name: Entry("Tell a running node", f"cli.commands.run.{name}", purpose)
        for name, purpose in {
            "deny": "Refuse to serve a CID or a name",
            "queue": "Show what is not fetched or judged yet, and try it again",
            "accept": "Follow the chain through a block that contradicts what was final",
        }.items()
    },
    examples=[
        "capdex node --network sepolia",
        "capdex node --rpc-url http://127.0.0.1:8545 --chain-id 31337 --registry 0x5FbD…0aa3",
        "capdex node --network base --role writer --standby --db postgresql://capdex@db/capdex",
        "capdex node --role reader --db postgresql://reader@db/capdex --host 0.0.0.0",
    ],
)
@click.option("--rpc-url", multiple=True, metavar="URL", help="Chain endpoint; several fail over.")
@click.option("--chain-id", type=int, help="The chain id the endpoints must answer.")
@click.option("--registry", metavar="ADDRESS", help="The registry contract.")
@click.option(
    "--votes",
    metavar="ADDRESS",
    help="The contract of votes on its names.  [env var: CAPDEX_VOTES]",
)
@click.option(
    "--start-block", type=click.IntRange(0), help="The block the registry was deployed in."
)
@click.option(
    "--db",
    metavar="URL",
    envvar="CAPDEX_DB",
    show_envvar=True,
    help="sqlite:///FILE or postgresql://…  [default: a file in the data directory]",
)
@click.option(
    "--ipfs", multiple=True, metavar="SPEC", help="dir:PATH, gateway:URL or a Kubo RPC address."
)
@click.option(
    "--blocks",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="CAPDEX_BLOCKS",
    show_envvar=True,
    help="Where verified packages are kept.  [default: in the data directory]",
)
@click.option("--host", default="127.0.0.1", envvar="CAPDEX_HOST", show_envvar=True, help="Bind.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, envvar="CAPDEX_PORT",
    show_envvar=True, help="0 takes any free port.",
)  # fmt: skip
@click.option(
    "--role", type=click.Choice(["writer", "reader", "both"]), default="both",
    envvar="CAPDEX_ROLE", show_envvar=True,
    help="Write the index, answer from it, or both. A reader needs the database alone.",
)  # fmt: skip
@click.option(
    "--standby",
    is_flag=True,
    envvar="CAPDEX_STANDBY",
    show_envvar=True,
    help="Wait while another node writes this index, and take over when it is gone.",
)
@click.option("--serve-signed", is_flag=True, help="Serve verdict signed too, not verified alone.")
@click.option(
    "--finality-depth", type=click.IntRange(0, MAX_FINALITY_BLOCKS),
    default=DEFAULT_FINALITY_BLOCKS,
    help="Blocks after which no reorganisation is expected, where the chain does not say.",
)  # fmt: skip
@click.option(
    "--poll-interval", type=float, default=1.0, callback=_seconds, metavar="S", help="Seconds."
)
@click.option(
    "--allowed-host", multiple=True, metavar="HOST", help="Host header to accept besides loopback."
)
@click.option(
    "--log-format",
    type=click.Choice(["auto", "logfmt", "json"]),
    default="auto",
    envvar="CAPDEX_LOG_FORMAT",
    show_envvar=True,
    help="auto: logfmt on a terminal, else json.",
)
def node_command(
    app: App,
    rpc_url: tuple[str, ...],
    chain_id: int | None,
    registry: str | None,
    votes: str | None,
    start_block: int | None,
    db: str | None,
    ipfs: tuple[str, ...],
    blocks: Path | None,
    host: str,
    port: int,
    role: str,
    standby: bool,
    serve_signed: bool,
    finality_depth: int,
    poll_interval: float,
    allowed_host: tuple[str, ...],
    log_format: str,
) -> object:
    """Run a node: index a registry, verify, answer over MCP.

    One process: it reads the chain, fetches and verifies packages, and serves /mcp, /c, /index,
    /ipfs, /health, /ready, /status and /metrics. What no option says comes from the network chosen.
    """
    from cli.config.settings import Network, NodeSettings

    reads = role == "reader"
    missing = [] if reads else ["rpc_url"] * (not rpc_url) + ["registry"] * (not registry)
    if (chain_id is not None and not missing) or (reads and db):
        known = Network("command line", chain_id=chain_id)
    else:
        known = app.settings.need_network(*missing)
        chain_id = known.chain if chain_id is None else chain_id
    place = user_directories().data / "node" / str(chain_id or "reader")
    settings = NodeSettings(
        rpc_urls=rpc_url or ((known.rpc_url,) if known.rpc_url else ()),
        chain_id=chain_id or 0,
        registry=registry or known.registry,
        votes=votes or known.votes,
        start_block=(known.start_block or None) if start_block is None else start_block,
        db=db or default_database(chain_id or 0),
        ipfs=ipfs or ((known.ipfs,) if known.ipfs else ()),
        blocks=blocks or place / "blocks",
        host=host,
        port=port,
        role=role,
        standby=standby,
        serve_signed=serve_signed,
        finality_depth=finality_depth,
        poll_interval_s=poll_interval,
        allowed_hosts=allowed_host,
        log_format=_log_format(app, log_format),
        progress=_progress(app, log_format),
    )
    from cli.node.run import run_node

    return run_node(settings)


def _progress(app: App, choice: str) -> bool:
    """Whether a line may be written over: for people at a terminal, who did not choose a log."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return choice == "auto" and app.output.err.tty and not plain and app.output.verbosity >= 0


def _log_format(app: App, choice: str) -> str:
    if choice != "auto":
        return choice
    return "logfmt" if app.output.err.tty else "json"
