"""`capdex get`: download a package, and verify it against the chain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from capdex.uri import CapabilityURI
from capdex.version import Version
from capdex_cli.config.completion_cache import complete, remember
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import command
from capdex_cli.terminal.file_arguments import write_download
from capdex_cli.terminal.text import safe, size
from capdex_cli.views.progress import open_registry

if TYPE_CHECKING:
    from capdex.package import VerifiedPackage


@command("get", examples=["capdex get weather", "capdex get weather@1.3.0 --output - | less"])
@click.argument("uri", metavar="URI", shell_complete=complete)
@click.option(
    "-o", "--output", "target", metavar="FILE",
    help="- for stdout.  [default: NAME-VERSION.acp.yaml]",
)  # fmt: skip
@click.option(
    "--force",
    is_flag=True,
    help="Replace NAME-VERSION.acp.yaml, as a named FILE is.",
)
def get_command(app: App, uri: str, target: str | None, force: bool) -> None:
    """Fetch a package and verify it against the chain.

    The node and the gateway are not trusted: digest and publisher are read from the chain, and
    nothing is written unless every check holds, and never through a link.
    """
    package = app.run(get_package(app, CapabilityURI.loose(uri)))
    found = package.manifest.uri
    remember([found])
    path = target or f"{found.name}-{found.version}.acp.yaml"
    write_download(path, package.data, replace=force or target is not None)
    if path == "-":
        return
    value = {
        "cap_uri": str(found),
        "file": path,
        "cid": package.announcement.cid,
        "sha256": package.announcement.sha256.hex(),
        "publisher": package.announcement.publisher,
        "signer": package.signer,
        "verdict": str(package.verdict),
        "checks": [check.to_json() for check in package.checks],
    }
    human = [
        f"{app.output.out.mark('ok')} {found} verified against the chain",
        f"  {safe(path)}  {size(len(package.data))}, signed by {safe(package.signer)}",
    ]
    app.output.result("download", value, human=human, plain=[path])


async def get_package(app: App, uri: CapabilityURI) -> VerifiedPackage:
    """Fetch and verify a package by the chosen network; warn if its release is yanked."""
    from capdex_publisher.registry.verified_get import get_verified

    network = app.settings.need_network("gateway_url")
    if not isinstance(uri.selector, Version):  # only choosing a version needs the node
        network.require("mcp_url")
    urls = {"gateway_url": network.gateway_url, "mcp_url": network.mcp_url}
    download = await get_verified(uri, open_registry(app), **urls)
    if download.yanked:
        app.output.warn(f"{download.package.manifest.uri} is yanked")
    return download.package
