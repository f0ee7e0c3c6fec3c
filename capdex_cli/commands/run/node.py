"""`capdex node`: index a registry, verify its packages, answer over HTTP and MCP."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from capdex_cli.node.options import (
    allowed_host_option,
    blocks_option,
    client_limit_options,
    database_option,
    default_blocks,
    default_database,
    environment_option,
    explorer_option,
    profile_option,
    semantic_option,
    semantic_wanted,
    serve_signed_option,
    served_verdicts,
)
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import SECONDS, Entry, run_group

DEFAULT_PORT = 8765
DEFAULT_FINALITY_BLOCKS = 64  # two epochs of Ethereum
MAX_WORKERS = 64  # each takes memory as a node does
MAX_FINALITY_BLOCKS = 1_000_000  # months; their hashes are held in memory


@run_group(
    "node",
    entries={
        name: Entry("Commands for a running node", "capdex_cli.commands.run.operator", purpose)
        for name, purpose in {
            "deny": "Refuse to serve a CID or a name",
            "queue": "Show releases that are not fetched or judged yet, or try them again",
            "accept": "Follow the chain through a block that contradicts a final one",
        }.items()
    },
    examples=[
        "capdex node --network sepolia",
        "capdex node --rpc-url http://127.0.0.1:8545 --chain-id 31337 --registry 0x5FbD…0aa3",
        "capdex node --network base --role writer --standby --db postgresql://capdex@db/capdex",
        "capdex node --role reader --db postgresql://reader@db/capdex --host 0.0.0.0 "
        "--allowed-host caps.example",
    ],
)
@environment_option(
    "--rpc-url", plural="CAPDEX_RPC_URLS", metavar="URL", help="Chain endpoint; several fail over."
)
@click.option("--chain-id", type=int, help="Chain id of the endpoints.")
@click.option("--registry", metavar="ADDRESS", help="Registry contract.")
@click.option(
    "--votes", metavar="ADDRESS",
    help="Contract of the votes on its names.  [env var: CAPDEX_VOTES]",
)  # fmt: skip
@click.option("--start-block", type=click.IntRange(0), help="Block the registry was deployed in.")
@database_option
@environment_option(
    "--ipfs", plural="CAPDEX_IPFS_SOURCES", metavar="SPEC",
    help="dir:PATH, gateway:URL or a Kubo RPC address; several are asked in turn.",
)  # fmt: skip
@blocks_option
@environment_option("--host", default="127.0.0.1", help="Address.")
@environment_option(
    "--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, help="Port; 0: any free one."
)
@environment_option(
    "--role", type=click.Choice(["writer", "reader", "both"]), default="both",
    help="Write the index, answer from it, or both. A reader needs only --db.",
)  # fmt: skip
@environment_option(
    "--standby", is_flag=True,
    help="Wait while another node writes this index; take over when it ends.",
)  # fmt: skip
@environment_option(
    "--workers", type=click.IntRange(1, MAX_WORKERS), default=1,
    help="Processes that answer clients; this one is the first.",
)  # fmt: skip
@serve_signed_option
@semantic_option
@profile_option
@explorer_option
@environment_option(
    "--keep-resources", type=click.IntRange(0), default=0, metavar="BYTES",
    help="Disk for files that verified packages name; 0 keeps none.",
)  # fmt: skip
@click.option(
    "--finality-depth", type=click.IntRange(0, MAX_FINALITY_BLOCKS),
    default=DEFAULT_FINALITY_BLOCKS,
    help="Blocks after which a block is final, only for a chain without the tag `finalized`.",
)  # fmt: skip
@click.option(
    "--poll-interval", type=SECONDS, default=1.0, metavar="S",
    help="Seconds between looks at the chain.",
)  # fmt: skip
@allowed_host_option
@client_limit_options
@environment_option(
    "--log-format", type=click.Choice(["auto", "logfmt", "json"]), default="auto",
    help="auto: logfmt on a terminal, else json.",
)  # fmt: skip
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
    workers: int,
    serve_signed: bool,
    semantic: bool | None,
    profile: str,
    explorer: bool,
    keep_resources: int,
    finality_depth: int,
    poll_interval: float,
    allowed_host: tuple[str, ...],
    log_format: str,
    **limits: Any,
) -> object:
    """Run a node: index a registry, verify, answer over MCP.

    One process reads the chain, fetches and verifies packages, and serves /mcp, /c, /index, /ipfs,
    /health, /ready, /status and /metrics. Options not given are taken from the chosen network.
    """
    from capdex.errors import Code, UsageError
    from capdex_cli.config.settings import Network
    from capdex_cli.node.serve import run_node
    from capdex_cli.node.workers import Serving
    from capdex_indexer.options import NodeOptions, Role
    from capdex_service.limits.hosts import known_hosts
    from capdex_service.limits.options import ClientLimits

    if role == "writer" and workers > 1:
        raise UsageError("a node of --role writer has no --workers", fix="leave --workers out")
    reads = role == "reader"
    if reads and standby:
        fix = "leave --standby out; a node that takes over has --role both or writer"
        raise UsageError("a node of --role reader has no --standby", fix=fix)
    needed = {} if reads else {"rpc_url": rpc_url, "registry": registry}
    missing = [name for name, value in needed.items() if not value]
    if (chain_id is not None and not missing) or (reads and db):
        network = Network("command line", chain_id=chain_id)
    elif app.settings.network is None:
        given = "--db" if reads else "--rpc-url, --chain-id and --registry"
        fix = f"give {given}, or set their CAPDEX_ variables, or choose one with --network"
        raise UsageError("no network is chosen", Code.CONFIG, fix=fix)
    else:
        network = app.settings.need_network(*missing)
        chain_id = network.chain if chain_id is None else chain_id
    db = db or default_database(chain_id or 0)
    options = NodeOptions(
        rpc_urls=rpc_url or ((network.rpc_url,) if network.rpc_url else ()),
        chain_id=chain_id or 0,
        registry=registry or network.registry,
        votes=votes or network.votes or None,
        start_block=(network.start_block or None) if start_block is None else start_block,
        db=db,
        ipfs=ipfs or ((network.ipfs,) if network.ipfs else ()),
        blocks=blocks or default_blocks(db, chain_id or 0),
        role=Role(role),
        standby=standby,
        serve=served_verdicts(serve_signed),
        semantic=semantic_wanted(semantic),
        keep_files=keep_resources,
        finality_depth=finality_depth,
        poll_interval_s=poll_interval,
    )
    serving = Serving(
        allowed=known_hosts(host, allowed_host),
        profile=profile,
        limits=ClientLimits(**{x: value for x, value in limits.items() if value is not None}),
        explorer=explorer,
    )
    on_terminal = app.output.err.tty
    auto = log_format == "auto"
    return run_node(
        options,
        host,
        port,
        serving,
        log_format=("logfmt" if on_terminal else "json") if auto else log_format,
        workers=workers,
        progress=app.output if auto and on_terminal and not os.environ.get("NO_COLOR") else None,
    )
