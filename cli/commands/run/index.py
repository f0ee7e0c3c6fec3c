"""`capdex index`: the digests of an index, to compare it with another one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from capdex.errors import UsageError
from cli.node.options import database_option, database_url
from cli.terminal.app import App
from cli.terminal.click_commands import Group, command
from cli.terminal.text import columns, safe

Json = dict[str, Any]

_MISSING = {
    "index_digest": "none before the first block",
    "content_digest": "none until every release is judged",
    "block_number": "none yet",
    "block_hash": "",
}


@command(
    "digest",
    examples=[
        "capdex index digest --db sqlite:///index.db",
        "capdex index digest --block 21000000 --json",
    ],
)
@click.option("--block", type=click.IntRange(0), metavar="N", help="An indexed block.")
@database_option
def digest_command(app: App, block: int | None, db: str | None) -> None:
    """Show the digests of an index, at its newest block or at an older one.

    Two nodes at the same block hash have the same index digest, and the same content digest once
    both have judged every release. Without a database on this machine, the node of the network
    gives the digests of its newest block.
    """
    url = database_url(app, db)
    network = app.settings.network if not db else None
    if network and network.node_url and not Path(url.removeprefix("sqlite:///")).exists():
        value = _fetch(app, network.node_url, block)
    else:
        value = _read(url, block)
    human = columns(_rows(value))
    app.output.result("index.digest", value, human=human, plain=[value["index_digest"]])


def _read(url: str, block: int | None) -> Json:
    from indexer.query.index import Index

    index = Index(url)
    try:
        digest, votes = index.digest(block), index.votes_digest(block)
    finally:
        index.close()
    return digest.to_json() | {"votes": None if votes is None else votes.to_json()}


def _fetch(app: App, node_url: str, block: int | None) -> Json:
    from capdex.net.node_client import status

    if block is not None:
        raise UsageError(
            "a node gives only the digests of its newest block",
            why="this machine has no database of a node",
            fix="leave --block out, or name the node's database with --db",
        )
    answer = app.run(status(node_url))
    chain, log = answer["chain"], answer.get("log") or {}
    kept = ("index_digest", "content_digest", "decoder_version", "rules_version")
    return {
        "chain_id": chain.get("chain_id"),
        "contract": chain.get("registry"),
        "block_number": chain.get("block_number"),
        "block_hash": chain.get("block_hash"),
        "log_count": log.get("count"),
        "log_head": log.get("head"),
        **{key: answer.get(key) for key in kept},
        "votes": None,
    }


def _rows(value: Json) -> list[tuple[str, str]]:
    x = {k: safe(_MISSING.get(k, "?") if value[k] is None else value[k]) for k in value}
    rows = [
        ("index digest", x["index_digest"]),
        ("content digest", x["content_digest"]),
        ("block", f"{x['block_number']}  {x['block_hash']}".rstrip()),
        ("log", f"{x['log_count']} events, head {x['log_head']}"),
        ("registry", f"{x['contract']} on chain {x['chain_id']}"),
        ("rules", f"events {x['decoder_version']}, packages {x['rules_version']}"),
    ]
    if votes := value["votes"]:
        at = f"{votes['index_digest']}, {votes['log_count']} at block {votes['block_number']}"
        rows.append(("votes", at))
    return rows


index_command = Group(
    "index",
    commands=[digest_command],
    help="Show the digests of an index.",
    examples=["capdex index digest", "capdex index digest --block 21000000 --json"],
)
