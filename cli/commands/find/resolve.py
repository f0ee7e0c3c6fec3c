"""`capdex resolve`: find the release that a URI or a version range means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from capdex.errors import CapdexError, Code, UsageError
from capdex.uri import CapabilityURI
from cli.config.completion_cache import complete, remember
from cli.terminal.app import App
from cli.terminal.click_commands import HASH, command
from cli.terminal.text import safe
from cli.views.release import Json, card, part

if TYPE_CHECKING:
    from capdex.net.verified_resolve import BlockTrust


@command(
    "resolve",
    examples=[
        "capdex resolve weather",
        "capdex resolve 'did:nuwa:cap:weather@^1.2' --json",
        "capdex resolve weather --proof --trust-rpc https://rpc.example",
    ],
)
@click.argument("uri", metavar="URI", shell_complete=complete)
@click.option("--proof", is_flag=True, help="Have the node prove its answer, and check the proof.")
@click.option(
    "--trust-rpc", metavar="URL",
    help="Check the proof by the block hash of this endpoint, which must not be the node's."
    "  [env var: CAPDEX_TRUST_RPC_URL]",
)  # fmt: skip
@click.option("--trust-block", type=HASH, help="Have it proven at this block, whose hash you know.")
def resolve_command(
    app: App, uri: str, proof: bool, trust_rpc: str | None, trust_block: bytes | None
) -> None:
    """Find the release that a URI or range means.

    The prefix did:nuwa:cap: may be left out. capdex help ranges explains how versions are chosen.

    With --proof the node has to prove from the registry's storage that this is the latest, or the
    highest in a range, of all releases there are.
    """
    wanted = CapabilityURI.loose(uri)
    if proof or trust_rpc or trust_block:
        answer = _resolve_verified(app, wanted, _trust(app, trust_rpc, trust_block))
    else:
        answer = ask_node(app, "resolve_capability", {"cap_uri": str(wanted)})
        answer.pop("proven", None)  # only set by this client, after its check
    remember([answer.get("cap_uri")])
    human = card(app.output.out, answer)
    if statement := part(answer, "proven", "statement"):
        human.append(("proven", safe(statement)))
    app.output.result("resolution", answer, human=human, plain=[answer.get("ipfs_cid", "")])


def _resolve_verified(app: App, uri: CapabilityURI, trust: BlockTrust) -> Json:
    """Return the node's answer and what was proven; a refusal that is proven is raised."""
    from capdex.net.verified_resolve import resolve_verified

    network = app.settings.need_network("mcp_url", "registry", "chain_id")
    work = resolve_verified(
        uri,
        mcp_url=network.mcp_url,
        chain_id=network.chain,
        registry=network.address("registry"),
        trust=trust,
    )
    try:
        resolution = app.run(work)
    except CapdexError as refusal:
        if statement := part(refusal.details or {}, "proven", "statement"):
            app.output.step("ok", "proven", statement)
        raise
    return resolution.answer | {"proven": resolution.to_json()}


def _trust(app: App, rpc_url: str | None, block_hash: bytes | None) -> BlockTrust:
    """Return the trusted source by the options or the settings; raises UsageError if none."""
    from capdex.net.verified_resolve import BlockTrust

    if rpc_url and block_hash:
        raise UsageError(
            "--trust-rpc and --trust-block exclude each other", fix="leave one of them out"
        )
    if block_hash is not None:
        return BlockTrust(block_hash=block_hash)
    network = app.settings.need_network()
    url = rpc_url or network.trust_rpc_url
    if not url:
        raise UsageError(
            "there is no trusted source of a block hash to check the proof against",
            Code.CONFIG,
            why="a proof counts only by a hash from another source than the node that answers",
            fix="name another endpoint with --trust-rpc URL (or trust-rpc-url in your "
            "config.toml), or a block you know with --trust-block HASH",
        )
    if url.rstrip("/") == network.rpc_url.rstrip("/"):
        app.output.warn(
            "the endpoint you trust is the one that this network uses: if the node uses it "
            "too, the proof only shows that they agree"
        )
    return BlockTrust(rpc_url=url)


def ask_node(app: App, tool: str, arguments: Json) -> Json:
    """Return the answer of the chosen network's node to a call of one of its tools."""
    from capdex.net.node_client import NodeClient

    network = app.settings.need_network("mcp_url")

    async def call() -> Json:
        async with NodeClient(network.mcp_url) as node:
            return await node.call(tool, arguments)

    return app.run(call())
