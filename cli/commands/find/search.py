"""`capdex search`: what the node finds, with what matched."""

from __future__ import annotations

import shutil

import click

from cli.config.completion_cache import remember
from cli.terminal.app import App
from cli.terminal.click_commands import command
from cli.terminal.output import Stream
from cli.terminal.text import clip, columns, safe
from cli.views.release import Json, freshness, mark, name_of, part, summary_of

FILTERS = {
    "name": "Exactly this name.",
    "tag": "With this tag.",
    "domain": "Of this domain.",
    "language": "Speaking this language, like en.",
    "author": "Signed by this DID.",
    "publisher": "Published by this account.",
    "license": "Under this SPDX licence.",
    "permission": "Requiring this permission.",
    "binding": "With this kind of tool binding.",
    "tool": "With a tool of this name.",
}


def _filters(function: click.decorators.FC) -> click.decorators.FC:
    for name, words in reversed(FILTERS.items()):
        function = click.option(f"--{name}", metavar="TEXT", help=words)(function)
    return function


@command(
    "search",
    examples=["capdex search 'convert miles to kilometres'", "capdex search rain --tag weather"],
)
@click.argument("text", nargs=-1)
@_filters
@click.option("--limit", type=click.IntRange(1, 50), default=10, help="At most so many.")
@click.option("--cursor", metavar="CURSOR", help="next_cursor of the page before.")
def search_command(
    app: App,
    text: tuple[str, ...],
    name: str | None,
    tag: str | None,
    domain: str | None,
    language: str | None,
    author: str | None,
    publisher: str | None,
    license: str | None,
    permission: str | None,
    binding: str | None,
    tool: str | None,
    limit: int,
    cursor: str | None,
) -> None:
    """Find capabilities by what they do.

    Say what is wanted in plain words, in any language; without words, all are listed by name.
    """
    given = (name, tag, domain, language, author, publisher, license, permission, binding, tool)
    arguments: Json = {
        "query_string": " ".join(text),
        "filters": {key: x for key, x in zip(FILTERS, given, strict=True) if x is not None},
        "limit": limit,
    }
    if cursor is not None:
        arguments["cursor"] = cursor
    answer = app.run(_search(app, arguments))
    hits = [hit for hit in answer.get("list_of_results") or [] if isinstance(hit, dict)]
    total, more = answer.get("total"), answer.get("next_cursor")
    app.output.results(
        "search",
        hits,
        human=lambda: _table(app.output.out, hits),
        plain=[hit.get("cap_uri", "") for hit in hits],
        total=total,
        next_cursor=more,
        as_of=answer.get("as_of"),
    )
    remember(hit.get("cap_uri") for hit in hits)
    shown = f"{len(hits)} of {safe(total)}" if hits else "nothing found"
    app.output.say(app.output.err.dim(f"{shown} · {freshness(answer)}"))
    if more:
        app.output.say(app.output.err.dim(f"more: --cursor {safe(more)}"))


async def _search(app: App, arguments: Json) -> Json:
    from capdex.net.node_client import NodeClient

    network = app.settings.need_network("mcp_url")
    async with NodeClient(network.mcp_url) as node:
        return await node.call("search_capabilities", arguments)


def _table(stream: Stream, hits: list[Json]) -> list[str]:
    room = max(24, shutil.get_terminal_size((100, 24)).columns - 56) if stream.tty else 200
    return columns(
        [
            (
                stream.style(name_of(hit), bold=True),
                safe(hit.get("semver", "")),
                mark(stream, hit),
                clip(summary_of(hit), room, "…" if stream.unicode else "..."),
                stream.dim(", ".join(safe(x) for x in part(hit, "matched") or [])),
            )
            for hit in hits
        ],
        indent=0,
    )
