"""`capdex search` and `resolve`: the answers of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from capdex.errors import CapdexError, Code, UsageError
from capdex.json import Json, list_of, objects_in
from capdex.uri import CapabilityURI
from capdex_cli.config.completion_cache import complete, remember
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import HASH, TEXT, command, together
from capdex_cli.terminal.status_line import StatusLine
from capdex_cli.terminal.text import safe
from capdex_cli.views.release import card, freshness, hit_rows, part

if TYPE_CHECKING:
    from capdex.net.verified_resolve import BlockTrust

FILTERS = {
    "name": "Exactly this name.",
    "kind": "skill: instructions, with files or alone. tools: with tools.",
    "tag": "With this tag.",
    "domain": "Of this domain.",
    "language": "Speaking this language, like en.",
    "author": "Signed by this DID.",
    "publisher": "Published by this account.",
    "license": "Under this SPDX licence.",
    "permission": "Requiring this permission.",
    "binding": "With this kind of tool binding.",
    "host": "Contacting this host.",
    "tool": "With a tool of this name.",
    "model_family": "For this family of models.",
    "memory_scope": "With this memory scope.",
    "verdict": "With this verdict.",
}


_filters = together(
    *(
        click.option(f"--{name.replace('_', '-')}", name, type=TEXT, multiple=True, help=words)
        for name, words in FILTERS.items()
    )
)


@command(
    "search",
    examples=[
        "capdex search 'convert miles to kilometres'",
        "capdex search rain --tag weather --tag climate --not license=GPL-3.0-only",
        "capdex search --publisher 0x70997970C51812dc3A010C7d01b50e0d17dc79C8 --since 2026-01-01",
    ],
)
@click.argument("text", nargs=-1, type=TEXT)
@_filters
@click.option(
    "--not", "lacks", type=TEXT, metavar="FILTER=TEXT", multiple=True, help="Without that value."
)
@click.option("--prompt/--no-prompt", default=None, help="With a prompt, or without.")
@click.option("--since", type=TEXT, metavar="DATE", help="Published on this day (UTC) or later.")
@click.option(
    "--context-window", metavar="TOKENS", type=click.IntRange(1, 2**53 - 1),
    help="Works with a context window of so many tokens.",
)  # fmt: skip
@click.option("--limit", type=click.IntRange(1, 50), default=10, help="The most results of a page.")
@click.option("--cursor", metavar="CURSOR", help="next_cursor of the page before.")
def search_command(
    app: App,
    text: tuple[str, ...],
    limit: int,
    cursor: str | None,
    lacks: tuple[str, ...],
    prompt: bool | None,
    since: str | None,
    context_window: int | None,
    **filters: tuple[str, ...],
) -> None:
    """Find capabilities by what they do.

    Say what is wanted in plain words, in any language; without words, all are listed by name. A
    filter may be given several times: any of its values is enough. All that is shown is the node's
    word; capdex get and install verify the bytes.
    """
    chosen: Json = {key: list(filters[key]) for key in FILTERS if filters[key]}
    more = {"has_prompt": prompt, "published_since": since, "context_window": context_window}
    chosen |= {key: value for key, value in more.items() if value is not None}
    if lacks:
        chosen["not"] = _pairs(lacks)
    arguments: Json = {"query_string": " ".join(text), "filters": chosen, "limit": limit}
    arguments["detail"] = "full"
    if cursor is not None:
        arguments["cursor"] = cursor
    answer = ask_node(app, "search_capabilities", arguments)
    hits = objects_in(list_of(answer.get("list_of_results"))[:limit])
    total, next_cursor = answer.get("total"), answer.get("next_cursor")
    uris = [hit.get("cap_uri", "") for hit in hits]
    human = [row for hit in hits for row in hit_rows(app.output.out, hit)]
    about = {"total": total, "next_cursor": next_cursor, "as_of": answer.get("as_of")}
    app.output.results("search", hits, human=human, plain=uris, **about)
    remember(uris)
    shown = f"{len(hits)} of {safe(total)}" if hits else "nothing found"
    app.output.say(app.output.err.dim(f"{shown} · {freshness(answer)}"))
    if next_cursor:
        app.output.say(app.output.err.dim(f"more: --cursor {safe(next_cursor)}"))


def _pairs(given: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the values of `FILTER=TEXT` by filter; raises UsageError."""
    values: dict[str, list[str]] = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        name = name.replace("-", "_")
        if not equals or name not in FILTERS:
            fix = f"FILTER is one of {', '.join(FILTERS)}"
            raise UsageError(f"--not {pair!r} is not FILTER=TEXT", fix=fix)
        values.setdefault(name, []).append(value)
    return values


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
@click.option("--trust-block", type=HASH, help="Prove against this block hash.")
def resolve_command(
    app: App, uri: str, proof: bool, trust_rpc: str | None, trust_block: bytes | None
) -> None:
    """Find the release that a URI or range means.

    The prefix did:nuwa:cap: may be left out. capdex help ranges explains how versions are chosen.

    With --proof the node has to prove from the registry's storage that this is the latest, or the
    highest in a range, of all releases there are; an endpoint has to know who published it.
    Verdict, signer and texts are the node's word: capdex get and install verify the bytes.
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
    from capdex.net.node_client import call_tool

    network = app.settings.need_network("mcp_url")
    with StatusLine(app.output) as status:
        status.show("asking the node")
        return app.run(call_tool(network.mcp_url, tool, arguments))
