"""`capdex get`: download a package, and verify it against the chain."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capdex.uri import CapabilityURI
from capdex.version import Version
from cli.config.completion_cache import complete, remember
from cli.terminal.app import App
from cli.terminal.click_commands import command
from cli.terminal.text import safe, size
from cli.views.progress import open_registry
from publisher.files import write_atomically

if TYPE_CHECKING:
    from capdex.package import VerifiedPackage


@command(
    "get",
    examples=["capdex get weather", "capdex get weather@1.3.0 --output - | less"],
)
@click.argument("uri", metavar="URI", shell_complete=complete)
@click.option(
    "-o",
    "--output",
    "target",
    metavar="FILE",
    help="- for stdout.  [default: NAME-VERSION.acp.yaml]",
)
def get_command(app: App, uri: str, target: str | None) -> None:
    """Fetch a package and verify it against the chain.

    The node and the gateway are not trusted: digest and publisher are read from the chain, and
    nothing is written unless every check holds.
    """
    package = app.run(get_package(app, CapabilityURI.loose(uri)))
    found = package.manifest.uri
    remember([found])
    cid = package.announcement.cid
    if target == "-":
        sys.stdout.buffer.write(package.data)
        sys.stdout.buffer.flush()
        return
    path = Path(target or f"{found.name}-{found.version}.acp.yaml")
    write_atomically(path, package.data, parents=False)
    value = {
        "cap_uri": str(found),
        "file": str(path),
        "cid": cid,
        "sha256": package.announcement.sha256.hex(),
        "publisher": package.announcement.publisher,
        "signer": package.signer,
        "verdict": str(package.verdict),
        "checks": [check.to_json() for check in package.checks],
    }
    app.output.result(
        "download",
        value,
        human=lambda: [
            f"{app.output.out.mark('ok')} {found} verified against the chain",
            f"  {safe(path)}  {size(len(package.data))}, signed by {safe(package.signer)}",
        ],
        plain=[path],
    )


async def get_package(app: App, uri: CapabilityURI) -> VerifiedPackage:
    """Fetch and verify a package by the chosen network; warn if its release is yanked."""
    from publisher.registry.verified_get import get_verified

    network = app.settings.need_network("gateway_url")
    if not isinstance(uri.selector, Version):  # only choosing a version needs the node
        network.require("mcp_url")
    urls = {"gateway_url": network.gateway_url, "mcp_url": network.mcp_url}
    download = await get_verified(uri, open_registry(app), **urls)
    if download.yanked:
        app.output.warn(f"{download.package.manifest.uri} is yanked")
    return download.package
