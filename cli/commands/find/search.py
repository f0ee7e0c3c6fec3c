"""`capdex search`: what the node finds, with what matched."""

from __future__ import annotations

import shutil

import click

from cli.commands.find.resolve import ask_node
from cli.config.completion_cache import remember
from cli.terminal.app import App
from cli.terminal.click_commands import command
from cli.terminal.output import Stream
from cli.terminal.text import clip, safe
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
    app: App, text: tuple[str, ...], limit: int, cursor: str | None, **filters: str | None
) -> None:
    """Find capabilities by what they do.

    Say what is wanted in plain words, in any language; without words, all are listed by name.
    """
    arguments: Json = {
        "query_string": " ".join(text),
        "filters": {key: filters[key] for key in FILTERS if filters[key] is not None},
        "limit": limit,
    }
    if cursor is not None:
        arguments["cursor"] = cursor
    answer = ask_node(app, "search_capabilities", arguments)
    hits = [hit for hit in answer.get("list_of_results") or [] if isinstance(hit, dict)]
    total, more = answer.get("total"), answer.get("next_cursor")
    uris = [hit.get("cap_uri", "") for hit in hits]
    human = [_row(app.output.out, hit) for hit in hits]
    about = {"total": total, "next_cursor": more, "as_of": answer.get("as_of")}
    app.output.results("search", hits, human=human, plain=uris, **about)
    remember(uris)
    shown = f"{len(hits)} of {safe(total)}" if hits else "nothing found"
    app.output.say(app.output.err.dim(f"{shown} · {freshness(answer)}"))
    if more:
        app.output.say(app.output.err.dim(f"more: --cursor {safe(more)}"))


def _row(stream: Stream, hit: Json) -> tuple[str, ...]:
    room = max(24, shutil.get_terminal_size((100, 24)).columns - 56) if stream.tty else 200
    return (
        stream.style(name_of(hit), bold=True),
        safe(hit.get("semver", "")),
        mark(stream, hit),
        clip(summary_of(hit), room, "…" if stream.unicode else "..."),
        stream.dim(", ".join(safe(x) for x in part(hit, "matched") or [])),
    )
