"""`capdex show`: all releases of a name, the rejected ones with their reason."""

from __future__ import annotations

import click

from capdex.errors import Code, InvalidInput
from capdex.uri import CapabilityURI
from capdex.version import Version
from cli.app import App
from cli.house import command
from cli.output import Stream
from cli.releases import Json, card, freshness, mark, part
from cli.text import columns, safe


@command("show", examples=["capdex show weather", "capdex show weather@1.3.0 --json"])
@click.argument("name", metavar="NAME[@VERSION]")
def show_command(app: App, name: str) -> None:
    """Show all releases of a name and why each is served or not.

    With a version: that release, with every check it passed or failed.
    """
    from capdex.net.node import releases

    uri = CapabilityURI.loose(name)
    network = app.settings.need_network("node_url")
    answer = app.run(releases(network.node_url, uri.name))
    found = [x for x in answer["releases"] if isinstance(x, dict)]
    stream = app.output.out
    if uri.selector is not None:
        found = [x for x in found if _chosen(uri, x)]
        if not found:
            raise InvalidInput(
                f"{uri.name} has no release {uri.selector}",
                Code.NOT_FOUND,
                fix=f"capdex show {uri.name} lists what there is",
            )
    app.output.results(
        "release",
        found,
        human=lambda: (
            _list(stream, found) if uri.selector is None else _details(stream, found, answer)
        ),
        plain=[x.get("cap_uri", "") for x in found],
        name=uri.name,
        as_of=answer.get("as_of"),
    )
    app.output.say(app.output.err.dim(freshness(answer)))


def _chosen(uri: CapabilityURI, release: Json) -> bool:
    semver = str(release.get("semver"))
    if isinstance(uri.selector, Version) or uri.selector is None:
        return semver == str(uri.selector)
    try:
        return Version.parse(semver) in uri.selector
    except InvalidInput:
        return False


def _list(stream: Stream, found: list[Json]) -> list[str]:
    return columns(
        [
            (
                stream.style(safe(x.get("semver", "?")), bold=True),
                mark(stream, x),
                safe(x.get("availability") or ""),
                "latest" if x.get("latest") is True else "",
                _why(x),
            )
            for x in found
        ],
        indent=0,
    )


def _why(release: Json) -> str:
    if reason := part(release, "status", "reason"):
        return safe(reason)
    if reason := release.get("reason"):
        return f"{safe(reason)}: {safe(release.get('message') or '')}".rstrip(": ")
    return ""


def _details(stream: Stream, found: list[Json], answer: Json) -> list[str]:
    lines: list[str] = []
    for release in found:
        rows = card(stream, release | {"as_of": answer.get("as_of")})
        if release.get("reason"):
            rows.append(("reason", _why(release)))
        lines += columns(rows, indent=0)
        checks = part(release, "verification", "checks")
        shown = [x for x in checks if isinstance(x, dict)] if isinstance(checks, list) else []
        lines += columns(
            [
                (
                    f"{stream.mark('ok' if x.get('ok') is True else 'fail')} {safe(x.get('name'))}",
                    safe(x.get("detail") or ""),
                )
                for x in shown
            ]
        )
    return lines
