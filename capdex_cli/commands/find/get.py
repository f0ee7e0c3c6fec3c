"""`capdex get`: download a package, and verify it against the chain."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capdex.errors import InvalidInput
from capdex.net.files import write_download, write_folder
from capdex.uri import CapabilityURI
from capdex.version import Version
from capdex_cli.config.completion_cache import complete, remember
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import command
from capdex_cli.terminal.file_arguments import write
from capdex_cli.terminal.status_line import StatusLine
from capdex_cli.terminal.text import number_of, safe, size
from capdex_cli.views.progress import open_registry

if TYPE_CHECKING:
    from capdex.manifest.resources import Resource
    from capdex.package import VerifiedPackage


@command(
    "get",
    examples=[
        "capdex get weather",
        "capdex get weather@1.3.0 --output - | less",
        "capdex get pdf-forms --output pdf/",
    ],
)
@click.argument("uri", metavar="URI", shell_complete=complete)
@click.option(
    "-o", "--output", "target", metavar="FILE|DIR/",
    help="- for stdout; a new DIR/ takes its files, too.  [default: NAME-VERSION.acp.yaml]",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Replace NAME-VERSION.acp.yaml, as a named FILE is.")
def get_command(app: App, uri: str, target: str | None, force: bool) -> None:
    """Fetch a package and verify it against the chain.

    The node and the gateway are not trusted: digest and publisher are read from the chain, and
    nothing is written unless every check holds, and never through a link. Without a version the
    node chooses one, and a warning names a higher one that the chain has. With DIR/ the files that
    the package names are fetched and checked as well, and written beside it, with a SKILL.md made
    of its prompt if hosts can take it as a skill.
    """
    package = app.run(get_package(app, CapabilityURI.loose(uri)))
    exact, resources = package.manifest.uri, package.manifest.resources
    remember([exact])
    path = target or f"{exact.name}-{exact.version}.acp.yaml"
    if target and Path(target).is_dir():
        path = f"{target.rstrip('/')}/"
    if path.endswith("/"):
        made = made_files(package)  # before anything is fetched
        files = app.run(get_files(app, resources))
        modes = {x.path: 0o755 if x.executable else 0o644 for x in resources}
        write_folder(Path(path), {x: (files[x], modes[x]) for x in files} | made)
    elif path == "-":
        write(path, package.data)
        return
    else:
        write_download(Path(path), package.data, replace=force or target is not None)
    value = {
        "cap_uri": str(exact),
        "file": path,
        "cid": package.announcement.cid,
        "sha256": package.announcement.sha256.hex(),
        "publisher": package.announcement.publisher,
        "signer": package.signer,
        "verdict": str(package.verdict),
        "files": len(resources) if path.endswith("/") else 0,
        "checks": [check.to_json() for check in package.checks],
    }
    human = [
        f"{app.output.out.mark('ok')} {exact} verified against the chain",
        f"  {safe(path)}  {size(len(package.data))}, signed by {safe(package.signer)}",
    ]
    if resources:
        whole_size = size(sum(x.size for x in resources))
        words = f"{number_of(len(resources), 'file')}, {whole_size}"
        more = f"not fetched: capdex get {exact.name} --output {exact.name}/"
        human.append(f"  {words}, " + ("each checked" if path.endswith("/") else more))
    app.output.result("download", value, human=human, plain=[path])


def made_files(package: VerifiedPackage) -> dict[str, tuple[bytes, int]]:
    """Return what stands beside the files of a package in its folder, with modes.

    Raises InvalidInput if one of its files has the name of the package's own.
    """
    from capdex_router.skills.document import SKILL, skill_document

    name = f"{package.manifest.uri.name}.acp.yaml"
    made = {name: (package.data, 0o644)}
    for file in package.manifest.resources:
        if file.path.partition("/")[0].casefold() == name:
            raise InvalidInput(
                f"the package has the file {safe(file.path)}, where the package itself would be",
                fix=f"capdex install {package.manifest.uri.name} --to ./DIR writes its files alone",
            )
    with suppress(InvalidInput):  # not every package can be a skill
        digest = package.announcement.sha256.hex()
        made[SKILL] = skill_document(package.manifest, digest), 0o644
    return made


async def get_package(app: App, uri: CapabilityURI) -> VerifiedPackage:
    """Fetch and verify a package by the chosen network; warn if its release is yanked."""
    from capdex_publisher.registry.verified_get import get_verified

    network = app.settings.need_network("gateway_url")
    if not isinstance(uri.selector, Version):  # only choosing a version needs the node
        network.require("mcp_url")
    urls = {"gateway_url": network.gateway_url, "mcp_url": network.mcp_url}
    with StatusLine(app.output) as status:
        status.show(f"asking for {uri}")
        download = await get_verified(uri, open_registry(app), **urls)
    if download.yanked:
        app.output.warn(f"{download.package.manifest.uri} is yanked")
    if download.newer is not None:
        app.output.warn(f"the node did not choose {download.newer}, which the chain has")
    return download.package


async def get_files(app: App, resources: Sequence[Resource]) -> dict[str, bytes]:
    """Fetch files of a package by the chosen network, each checked; raises as fetch_resources."""
    from capdex.net.ipfs.gateway import Gateway
    from capdex.net.ipfs.multi_source import MultiSource, fetch_resources

    async with Gateway(app.settings.need_network("gateway_url").gateway_url) as gateway:
        return await fetch_resources(resources, MultiSource([gateway]))
