"""`capdex show`: a name, its owner, and all its releases, the rejected ones with their reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from capdex.errors import Code, InvalidInput
from capdex.uri import CapabilityURI
from capdex.version import Version, VersionRange
from cli.config.completion_cache import complete, remember
from cli.terminal.app import App
from cli.terminal.click_commands import command
from cli.terminal.output import Stream
from cli.terminal.text import columns, safe
from cli.views.progress import open_registry
from cli.views.release import Json, card, freshness, mark, part, rows_of

if TYPE_CHECKING:
    from publisher.registry.audit import NameAudit


@command("show", examples=["capdex show weather", "capdex show weather@1.3.0 --json"])
@click.argument("name", metavar="NAME[@VERSION]", shell_complete=complete)
def show_command(app: App, name: str) -> None:
    """Show a name: who owns it, all its releases and how each stands.

    Owner, maintainers and flags are the chain's where an endpoint is configured; verdicts, and why
    a release is not served, are the node's. With a version: every check it passed or failed.
    """
    uri = CapabilityURI.loose(name)
    audited = app.run(_audit(app, uri.name))
    standing, answer, found = audited.chain, audited.node, audited.releases
    if uri.selector is not None:
        found = [x for x in found if _chosen(uri.selector, x)]
        if not found:
            raise InvalidInput(
                f"{uri.name} has no release {uri.selector}",
                Code.NOT_FOUND,
                fix=f"capdex show {uri.name} lists what there is",
            )
    stream, human, as_of = app.output.out, list[Sequence[str]](), answer.get("as_of")
    if uri.selector is not None:
        human += _details(stream, found, as_of)
    else:
        human += [*rows_of(standing), ""] if standing is not None else []
        human += [_row(stream, x) for x in found]
    uris = [x.get("cap_uri", "") for x in found]
    about = {"name": uri.name, "standing": standing, "as_of": as_of}
    app.output.results("release", found, human=human, plain=uris, **about)
    remember(uris)
    app.output.say(app.output.err.dim(_sources(standing, answer)))


async def _audit(app: App, name: str) -> NameAudit:
    """Read the name from the chain and the node, and warn of a source that did not answer."""
    from publisher.registry.audit import audit

    network = app.settings.need_network()
    if not network.has_chain:
        network.require("node_url")
    registry = open_registry(app) if network.has_chain else None
    audited = await audit(name, registry=registry, node_url=network.node_url, votes=network.votes)
    for failure in audited.failures:
        app.output.warn(f"{safe(failure.message)}: {safe(failure.why or failure.code)}")
    return audited


def _chosen(wanted: Version | VersionRange, release: Json) -> bool:
    try:
        version = Version.parse(str(release.get("semver")))
    except InvalidInput:
        return False
    return version in wanted if isinstance(wanted, VersionRange) else version == wanted


def _row(stream: Stream, release: Json) -> tuple[str, ...]:
    judged = part(release, "verification", "verdict")
    return (
        stream.style(safe(release.get("semver", "?")), bold=True),
        mark(stream, release),
        safe(release.get("availability") or "") if judged else "",
        "latest" if release.get("latest") is True else "",
        _why(release),
    )


def _why(release: Json) -> str:
    if release.get("denied"):
        because = safe(part(release, "denied", "reason") or "")
        return f"this node's operator refuses it: {because}".removesuffix(": ")
    said = [part(release, "status", "yank_reason"), part(release, "status", "deprecation_message")]
    if words := "; ".join(safe(x) for x in said if x):
        return words
    if reason := release.get("reason"):
        return f"{safe(reason)}: {safe(release.get('message') or '')}".rstrip(": ")
    return ""


def _details(stream: Stream, found: list[Json], as_of: Any) -> list[str]:
    lines: list[str] = []
    for release in found:
        rows = card(stream, release | {"as_of": as_of})
        if release.get("reason"):
            rows.append(("reason", _why(release)))
        lines += columns(rows, indent=0)
        checks, rows = part(release, "verification", "checks"), []
        for check in checks if isinstance(checks, list) else []:
            if isinstance(check, dict):
                sign = stream.mark("ok" if check.get("ok") is True else "fail")
                rows.append((f"{sign} {safe(check.get('name'))}", safe(check.get("detail") or "")))
        lines += columns(rows)
    return lines


def _sources(standing: Json | None, answer: Json) -> str:
    chain = f"chain: block {standing['block_number']}" if standing is not None else ""
    node = f"{'node: ' if chain else ''}{freshness(answer)}" if answer else ""
    return " · ".join(x for x in (chain, node) if x)
