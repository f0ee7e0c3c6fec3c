"""`capdex show`: a name, its owner, and all its releases, the rejected ones with their reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from capdex.errors import Code, InvalidInput, quoted
from capdex.json import Json, objects_in
from capdex.uri import CapabilityURI
from capdex.version import Version
from capdex_cli.config.completion_cache import complete, remember
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import command
from capdex_cli.terminal.output import Stream
from capdex_cli.terminal.status_line import StatusLine
from capdex_cli.terminal.text import columns, safe
from capdex_cli.views.overview import overview, package_json, versions
from capdex_cli.views.progress import open_registry
from capdex_cli.views.release import card, freshness, part, rows_of

if TYPE_CHECKING:
    from capdex.manifest.manifest import Manifest
    from capdex_publisher.registry.audit import NameAudit


@command("show", examples=["capdex show weather", "capdex show weather@1.3.0 --json"])
@click.argument("name", metavar="NAME[@VERSION]", shell_complete=complete)
def show_command(app: App, name: str) -> None:
    """Show a name: what it does, its tools, who owns it, and its releases.

    Owner, maintainers and flags are the chain's where an endpoint is configured; verdicts, and why
    a release is not served, are the node's. With a version: every check it passed or failed.
    """
    uri = CapabilityURI.loose(name)
    audited, manifest = app.run(_audit(app, uri))
    standing, answer, releases = audited.chain, audited.node, audited.releases
    if like := answer.get("like"):
        releases = [x | {"like": like} for x in releases]
    if uri.selector is not None:
        releases = [x for x in releases if _is_meant(uri, x)]
        if not releases:
            raise InvalidInput(
                f"{uri.name} has no release {uri.selector}",
                Code.NOT_FOUND,
                fix=f"capdex show {uri.name} lists what there is",
            )
    package = package_json(manifest) if manifest else None
    stream, human, as_of = app.output.out, list[Sequence[str]](), answer.get("as_of")
    if uri.selector is not None:
        human += _details(stream, releases, as_of)
    else:
        human += _overview(stream, releases, standing, package)
        human += versions(stream, releases, map(_why, releases), (standing or {}).get("owner"))
        if any(x.get("latest") is True for x in releases):
            human += ["", f"install it: capdex install {uri.name}"]
    uris = [x.get("cap_uri", "") for x in releases]
    about = {"name": uri.name, "package": package, "standing": standing, "as_of": as_of}
    app.output.results("release", releases, human=human, plain=uris, **about)
    remember(uris)
    app.output.say(app.output.err.dim(_sources(standing, answer)))


async def _audit(app: App, uri: CapabilityURI) -> tuple[NameAudit, Manifest | None]:
    """Read a name from the chain and the node, and warn of a source that did not answer.

    Without a version its latest package is fetched as well.
    """
    from capdex_publisher.registry.audit import audit, latest_manifest

    network = app.settings.need_network()
    if not network.has_chain:
        network.require("node_url")
    registry = open_registry(app) if network.has_chain else None
    with StatusLine(app.output) as status:
        status.show(f"asking about {uri}")
        audited = await audit(
            uri.name, registry=registry, node_url=network.node_url, votes=network.votes
        )
    for failure in audited.failures:
        app.output.warn(f"{safe(failure.message)}: {safe(failure.why or failure.code)}")
    if uri.selector is not None or not network.gateway_url:
        return audited, None
    return audited, await latest_manifest(audited, network.gateway_url)


def _is_meant(uri: CapabilityURI, release: Json) -> bool:
    try:
        return uri.takes(Version.parse(str(release.get("semver"))))
    except InvalidInput:
        return False


def _overview(
    stream: Stream, releases: list[Json], standing: Json | None, package: Json | None
) -> list[Sequence[str]]:
    latest = next((x for x in releases if x.get("latest") is True and not x.get("denied")), None)
    if latest is not None:
        return list[Sequence[str]](overview(stream, latest, package, standing))
    return [*rows_of(standing), ""] if standing is not None else []


def _why(release: Json) -> str:
    if release.get("denied"):
        because = safe(part(release, "denied", "reason") or "")
        return f"this node's operator refuses it: {because}".removesuffix(": ")
    said = [part(release, "status", "yank_reason"), part(release, "status", "deprecation_message")]
    if words := "; ".join(safe(quoted(x)) for x in said if x):
        return words
    if reason := release.get("reason"):
        return f"{safe(reason)}: {safe(release.get('message') or '')}".rstrip(": ")
    return ""


def _details(stream: Stream, releases: list[Json], as_of: object) -> list[str]:
    lines: list[str] = []
    for release in releases:
        rows = card(stream, release | {"as_of": as_of})
        if release.get("reason"):
            rows.append(("reason", _why(release)))
        lines += columns(rows, indent=0)
        rows = []
        for check in objects_in(part(release, "verification", "checks")):
            sign = stream.mark("ok" if check.get("ok") is True else "fail")
            rows.append((f"{sign} {safe(check.get('name'))}", safe(check.get("detail") or "")))
        lines += columns(rows)
    return lines


def _sources(standing: Json | None, answer: Json) -> str:
    chain = f"chain: block {standing['block_number']}" if standing is not None else ""
    node = f"{'node: ' if chain else ''}{freshness(answer)}" if answer else ""
    return " · ".join(x for x in (chain, node) if x)
