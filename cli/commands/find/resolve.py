"""`capdex resolve`: find the release that a URI or a version range means."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from capdex.errors import CapdexError, Code, UsageError
from capdex.uri import CapabilityURI
from cli.config.completion_cache import complete, remember
from cli.terminal.app import App
from cli.terminal.click_commands import command
from cli.terminal.text import columns, safe
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
    "--trust-rpc",
    metavar="URL",
    help="Check the proof by the block hash of this endpoint, which must not be the node's."
    "  [env var: CAPDEX_TRUST_RPC_URL]",
)
@click.option(
    "--trust-block", metavar="HASH", help="Have it proven at this block, whose hash you know."
)
def resolve_command(
    app: App, uri: str, proof: bool, trust_rpc: str | None, trust_block: str | None
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
        answer = app.run(resolve(app, wanted))
    remember([answer.get("cap_uri")])
    app.output.result(
        "resolution",
        answer,
        human=lambda: columns([*card(app.output.out, answer), *_proven(answer)], indent=0),
        plain=[answer.get("ipfs_cid", "")],
    )


def _proven(answer: Json) -> list[tuple[str, str]]:
    statement = part(answer, "proven", "statement")
    return [("proven", safe(statement))] if statement else []


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


def _trust(app: App, rpc_url: str | None, block_hash: str | None) -> BlockTrust:
    """Return the trusted source by the options or the settings; raises UsageError if none."""
    from capdex.net.verified_resolve import BlockTrust

    if rpc_url and block_hash:
        raise UsageError(
            "--trust-rpc and --trust-block exclude each other", fix="leave one of them out"
        )
    if block_hash is not None:
        if not re.fullmatch(r"0x[0-9a-fA-F]{64}", block_hash):
            raise UsageError(
                f"{block_hash[:80]!r} is not a block's hash",
                fix="write 0x and 64 hexadecimal digits",
            )
        return BlockTrust(block_hash=bytes.fromhex(block_hash[2:]))
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


async def resolve(app: App, uri: CapabilityURI) -> Json:
    """Return the node's answer for `uri`."""
    from capdex.net.node_client import NodeClient

    network = app.settings.need_network("mcp_url")
    async with NodeClient(network.mcp_url) as node:
        answer = await node.call("resolve_capability", {"cap_uri": str(uri)})
    answer.pop("proven", None)  # only set by this client, after its check
    return answer
