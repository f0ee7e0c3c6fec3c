"""`capdex index`: the digests of an index, to compare it with another one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from capdex.errors import UsageError
from cli.node.options import database_option, database_url
from cli.terminal.app import App
from cli.terminal.click_commands import Group, command
from cli.terminal.text import columns, safe

if TYPE_CHECKING:
    from indexer.query.digest import Digest

Json = dict[str, Any]


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
    url = db or _own_database(app)
    value = _read(url, block) if url else _fetch(app, block)
    app.output.result(
        "index.digest",
        value,
        human=lambda: columns(_rows(value)),
        plain=[value["index_digest"]],
    )


def _own_database(app: App) -> str:
    """Return the database of the chosen network; empty if it is missing and a node is known."""
    url = database_url(app, None)
    network = app.settings.network
    here = Path(url.removeprefix("sqlite:///")).exists()
    return "" if not here and network is not None and network.node_url else url


def _read(url: str, block: int | None) -> Json:
    from indexer.query.index import Index

    index = Index(url)
    try:
        found, votes = index.digest(block), index.votes_digest(block)
    finally:
        index.close()
    return _digest(found) | {
        "content_digest": _hex(found.content),
        "decoder_version": found.decoder_version,
        "rules_version": found.rules_version,
        "votes": None if votes is None else _digest(votes),
    }


def _fetch(app: App, block: int | None) -> Json:
    from capdex.net.node_client import status

    if block is not None:
        raise UsageError(
            "a node gives only the digests of its newest block",
            why="this machine has no database of a node",
            fix="leave --block out, or name the node's database with --db",
        )
    answer = app.run(status(app.settings.need_network("node_url").node_url))
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


def _digest(found: Digest) -> Json:
    return {
        "chain_id": found.chain_id,
        "contract": found.contract,
        "block_number": found.block_number,
        "block_hash": _hex(found.block_hash),
        "log_count": found.log.count,
        "log_head": _hex(found.log.head),
        "index_digest": _hex(found.index),
    }


def _hex(data: bytes | None) -> str | None:
    return None if data is None else f"0x{data.hex()}"


def _rows(value: Json) -> list[tuple[str, str]]:
    def shown(key: str, otherwise: str) -> str:
        return safe(otherwise if value[key] is None else value[key])

    rows = [
        ("index digest", shown("index_digest", "none before the first block")),
        ("content digest", shown("content_digest", "none until every release is judged")),
        ("block", f"{shown('block_number', 'none yet')}  {shown('block_hash', '')}".rstrip()),
        ("log", f"{shown('log_count', '?')} events, head {shown('log_head', '?')}"),
        ("registry", f"{shown('contract', '?')} on chain {shown('chain_id', '?')}"),
        (
            "rules",
            f"events {shown('decoder_version', '?')}, packages {shown('rules_version', '?')}",
        ),
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
