"""`capdex resolve`: from a URI or range to one release, as the node answers it."""

from __future__ import annotations

import click

from capdex.uri import CapabilityURI
from cli.config.completion_cache import complete, remember
from cli.terminal.app import App
from cli.terminal.click_commands import command
from cli.terminal.text import columns, safe
from cli.views.release import Json, card, part


@command(
    "resolve",
    examples=[
        "capdex resolve weather",
        "capdex resolve 'did:nuwa:cap:weather@^1.2' --json",
        "capdex resolve weather --proof --trust-rpc https://rpc.example",
    ],
)
@click.argument("uri", metavar="URI", shell_complete=complete)
@click.option("--proof", is_flag=True, help="Have the node prove its answer, and check it.")
@click.option(
    "--trust-rpc",
    metavar="URL",
    help="Check the proof by the block hash that this endpoint gives, which is not the node's."
    "  [env var: CAPDEX_TRUST_RPC_URL]",
)
@click.option(
    "--trust-block", metavar="HASH", help="Have it proven at this block, whose hash you know."
)
def resolve_command(
    app: App, uri: str, proof: bool, trust_rpc: str | None, trust_block: str | None
) -> None:
    """Find the release that a URI or range means.

    The prefix did:nuwa:cap: may be left out. capdex help ranges tells how versions are chosen.

    With --proof the node is not believed: it has to prove from the registry's storage that this is
    the latest, or the highest in a range, of all releases there are.
    """
    wanted = CapabilityURI.loose(uri)
    if proof or trust_rpc or trust_block:
        from capdex.net.verified_resolve import Trust, resolve_proven

        trust = Trust.choose(app, trust_rpc, trust_block)
        answer = app.run(resolve_proven(app, wanted, trust))
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


async def resolve(app: App, uri: CapabilityURI) -> Json:
    """Ask the node."""
    from capdex.net.node_client import NodeClient

    network = app.settings.need_network("mcp_url")
    async with NodeClient(network.mcp_url) as node:
        answer = await node.call("resolve_capability", {"cap_uri": str(uri)})
    answer.pop("proven", None)  # that is for us to say
    return answer
