"""`capdex search` and `resolve`: the answers of a node."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import click

from capdex.errors import CapdexError, Code, UsageError
from capdex.uri import CapabilityURI
from cli.config.completion_cache import complete, remember
from cli.terminal.app import App
from cli.terminal.click_commands import HASH, command
from cli.terminal.output import Stream
from cli.terminal.text import clip, safe
from cli.views.release import Json, card, freshness, mark, name_of, part, summary_of

if TYPE_CHECKING:
    from capdex.net.verified_resolve import BlockTrust

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


@command(
    "resolve",
    examples=[
        "capdex resolve weather",
        "capdex resolve 'did:nuwa:cap:weather@^1.2' --json",
        "capdex resolve weather --proof --trust-rpc https://rpc.example",
    ],
)
@click.argument("uri", metavar="URI", shell_complete=complete)
@click.option("--proof", is_flag=True, help="Have the node prove its answer, and check the proof.")
@click.option(
    "--trust-rpc", metavar="URL",
    help="Check the proof by the block hash of this endpoint, which must not be the node's."
    "  [env var: CAPDEX_TRUST_RPC_URL]",
)  # fmt: skip
@click.option("--trust-block", type=HASH, help="Have it proven at this block, whose hash you know.")
def resolve_command(
    app: App, uri: str, proof: bool, trust_rpc: str | None, trust_block: bytes | None
) -> None:
    """Find the release that a URI or range means.

    The prefix did:nuwa:cap: may be left out. capdex help ranges explains how versions are chosen.

    With --proof the node has to prove from the registry's storage that this is the latest, or the
    highest in a range, of all releases there are.
    """
    wanted = CapabilityURI.loose(uri)
    if proof or trust_rpc or trust_block:
        answer = _resolve_verified(app, wanted, _trust(app, trust_rpc, trust_block))
    else:
        answer = ask_node(app, "resolve_capability", {"cap_uri": str(wanted)})
        answer.pop("proven", None)  # only set by this client, after its check
    remember([answer.get("cap_uri")])
    human = card(app.output.out, answer)
    if statement := part(answer, "proven", "statement"):
        human.append(("proven", safe(statement)))
    app.output.result("resolution", answer, human=human, plain=[answer.get("ipfs_cid", "")])


def _resolve_verified(app: App, uri: CapabilityURI, trust: BlockTrust) -> Json:
    """Return the node's answer and what was proven; a refusal that is proven is raised."""
    from capdex.net.verified_resolve import resolve_verified

    network = app.settings.need_network("mcp_url", "registry", "chain_id")
    work = resolve_verified(
        uri,
        mcp_url=network.mcp_url,
        chain_id=network.chain,
        registry=network.address("registry"),
        trust=trust,
    )
    try:
        resolution = app.run(work)
    except CapdexError as refusal:
        if statement := part(refusal.details or {}, "proven", "statement"):
            app.output.step("ok", "proven", statement)
        raise
    return resolution.answer | {"proven": resolution.to_json()}


def _trust(app: App, rpc_url: str | None, block_hash: bytes | None) -> BlockTrust:
    """Return the trusted source by the options or the settings; raises UsageError if none."""
    from capdex.net.verified_resolve import BlockTrust

    if rpc_url and block_hash:
        raise UsageError(
            "--trust-rpc and --trust-block exclude each other", fix="leave one of them out"
        )
    if block_hash is not None:
        return BlockTrust(block_hash=block_hash)
    network = app.settings.need_network()
    url = rpc_url or network.trust_rpc_url
    if not url:
        raise UsageError(
            "there is no trusted source of a block hash to check the proof against",
            Code.CONFIG,
            why="a proof counts only by a hash from another source than the node that answers",
            fix="name another endpoint with --trust-rpc URL (or trust-rpc-url in your "
            "config.toml), or a block you know with --trust-block HASH",
        )
    if url.rstrip("/") == network.rpc_url.rstrip("/"):
        app.output.warn(
            "the endpoint you trust is the one that this network uses: if the node uses it "
            "too, the proof only shows that they agree"
        )
    return BlockTrust(rpc_url=url)


def ask_node(app: App, tool: str, arguments: Json) -> Json:
    """Return the answer of the chosen network's node to a call of one of its tools."""
    from capdex.net.node_client import NodeClient

    network = app.settings.need_network("mcp_url")

    async def call() -> Json:
        async with NodeClient(network.mcp_url) as node:
            return await node.call(tool, arguments)

    return app.run(call())
