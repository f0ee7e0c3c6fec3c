"""`capdex get`: bytes from anybody, believed only after they were checked against the chain."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from capdex.errors import Code, InvalidInput, Unavailable
from capdex.semver import Version, VersionRange
from capdex.uri import CapabilityURI
from cli.commands.find.resolve import resolve
from cli.config.completion_cache import complete, remember
from cli.terminal.app import App
from cli.terminal.click_commands import command
from cli.terminal.text import safe, size
from cli.views.progress import open_registry
from publisher.files import write_atomically

if TYPE_CHECKING:
    from capdex.package import VerifiedPackage
    from capdex.registry.events import Announcement


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

    The node and the gateway are not trusted: digest and publisher are read from the chain itself,
    and nothing is written before every check held.
    """
    package = app.run(fetch_verified(app, CapabilityURI.loose(uri)))
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


async def fetch_verified(app: App, uri: CapabilityURI) -> VerifiedPackage:
    """A package by its URI, held against the chain itself."""
    from capdex.ipld.cid import Cid
    from capdex.net.ipfs.open import Gateway, fetch_file
    from capdex.package import precheck, verify

    exact = uri
    if not isinstance(uri.selector, Version):  # only choosing a version needs the node
        exact = _exact(uri, (await resolve(app, uri)).get("cap_uri"))
    network = app.settings.need_network("gateway_url")
    announcement = await announced(app, exact)
    if rejected := precheck(announcement):
        raise rejected.failure()
    async with Gateway(network.gateway_url) as gateway:
        data = await fetch_file(Cid.parse(announcement.cid), [gateway])
    return verify(announcement, data)


async def announced(app: App, uri: CapabilityURI) -> Announcement:
    """What the chain says of a release: its own record, and the event that tells who published."""
    name, semver = uri.name, str(uri.version)
    async with open_registry(app) as registry:
        release = await registry.release(name, semver)
        if release is None:
            raise InvalidInput(
                f"the registry has no {uri}", Code.NOT_FOUND, fix=f"capdex show {name}"
            )
        event = await registry.find_publication(name, semver)
    if event is None:
        raise Unavailable(
            f"the event that published {uri} was not found",
            Code.RPC_UNAVAILABLE,
            why="the chain endpoint does not search that far back",
            fix="set start-block of the network, or ask another endpoint with --rpc-url",
        )
    said = event.announcement
    if (said.sha256, said.cid, said.cap_uri) != (release.sha256, release.cid, release.cap_uri):
        raise Unavailable(
            f"the chain endpoint contradicts itself about {uri}",
            Code.RPC_UNAVAILABLE,
            why="the event and the contract's record differ",
            fix="ask another endpoint with --rpc-url",
        )
    if release.yanked:
        app.output.warn(f"{uri} is yanked")
    return said


def _exact(asked: CapabilityURI, answered: object) -> CapabilityURI:
    """The exact URI a node answered, if it fits what was asked; what a node says is a claim."""
    exact = CapabilityURI.exact(str(answered))
    wanted = asked.selector
    fits = exact.version in wanted if isinstance(wanted, VersionRange) else wanted is None
    if exact.name != asked.name or not fits:
        raise Unavailable(
            f"the node answered {exact} when asked for {asked}",
            Code.NODE_UNAVAILABLE,
            fix="name an exact version, or another node",
        )
    return exact
