"""`capdex resolve`: from a URI or range to one release, as the node answers it."""

from __future__ import annotations

import click

from capdex.uri import CapabilityURI
from cli.app import App
from cli.house import command
from cli.releases import Json, card
from cli.text import columns


@command(
    "resolve",
    examples=["capdex resolve weather", "capdex resolve 'did:nuwa:cap:weather@^1.2' --json"],
)
@click.argument("uri", metavar="URI")
def resolve_command(app: App, uri: str) -> None:
    """Find the release that a URI or range means.

    The prefix did:nuwa:cap: may be left out. capdex help ranges tells how versions are chosen.
    """
    answer = app.run(resolve(app, CapabilityURI.loose(uri)))
    app.output.result(
        "resolution",
        answer,
        human=lambda: columns(card(app.output.out, answer), indent=0),
        plain=[answer.get("ipfs_cid", "")],
    )


async def resolve(app: App, uri: CapabilityURI) -> Json:
    """Ask the node."""
    from capdex.net.node import NodeClient

    network = app.settings.need_network("mcp_url")
    async with NodeClient.connect(network.mcp_url) as node:
        return await node.call("resolve_capability", {"cap_uri": str(uri)})
