"""Killed at any moment, or after any reorganisation: the index is the one built from scratch.

The environment's KILLS and RELEASES make it a soak (`make soak-kill`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from itertools import chain
from operator import ge
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from capdex.net.blocks import BlockDirectory
from indexer.database import open_reader

KILLS = int(os.environ.get("KILLS", "3"))
RELEASES = int(os.environ.get("RELEASES", "300"))
DEPTHS = (1, 3, 12)

# Everything an index says, by table: releases by their sequence, since ids are local.
CONTENTS = {
    "deployment": "SELECT chain_id, contract, start_block, genesis FROM deployment",
    "cursor": "SELECT number, hash, log_head, log_count FROM cursor",
    "event": "SELECT * FROM event ORDER BY sequence",
    "yank": "SELECT * FROM yank ORDER BY sequence",
    "deprecation": "SELECT * FROM deprecation ORDER BY sequence",
    "release": "SELECT sequence, name, stands, cap_uri, semver, stable, precedence, cid, sha256, "
    "publisher, yanked, yank_reason, availability, verdict, reason, message FROM release "
    "ORDER BY sequence",
    "package": "SELECT sequence, acp_metadata, signer, checks, problems, document, rules_version "
    "FROM package JOIN release ON release.id = release_id ORDER BY sequence",
    "namespace": "SELECT release.sequence, namespace.sequence, claims, schema_uri, memory_scope "
    "FROM namespace JOIN release ON release.id = release_id ORDER BY 1",
    "listing": "SELECT listing.name, sequence FROM listing JOIN release ON release.id = release_id "
    "ORDER BY sequence",
    "facet": "SELECT sequence, key, value FROM facet JOIN release ON release.id = release_id "
    "ORDER BY sequence, key, value",
    "document": "SELECT sequence, d.name, title, description, summary, tags, triggers, tools "
    "FROM document AS d JOIN release ON release.id = d.rowid ORDER BY sequence",
}
# Whether a writer has connected: on SQLite its file is there.
OPENED = (
    "SELECT count(*) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
PROGRESS = (
    "SELECT (SELECT count(*) FROM event), "
    "(SELECT count(*) FROM release WHERE verdict IS NOT NULL), "
    "(SELECT count(*) FROM release WHERE verdict IS NULL), (SELECT hash FROM cursor)"
)
KINDS = {"verified", "signed", "invalid"}


def contents(db: str) -> dict[str, list[tuple[Any, ...]]]:
    """What the index at `db` holds."""
    engine = open_reader(db)
    key = "d.rowid" if engine.dialect.name == "sqlite" else "d.release_id"
    try:
        with engine.begin() as connection:
            return {
                name: rows(connection, query.replace("d.rowid", key))
                for name, query in CONTENTS.items()
            }
    finally:
        engine.dispose()


def rows(connection: Connection, query: str) -> list[tuple[Any, ...]]:
    return [
        tuple(bytes(x) if isinstance(x, memoryview) else x for x in row)
        for row in connection.execute(text(query))
    ]


class Watch:
    """How far an index is, read from beside its writer; zeros before there is a table."""

    def __init__(self, db: str) -> None:
        self.db = db

    def opened(self) -> bool:
        """Whether a node has begun to make the tables, or is past that."""
        if self.db.startswith("sqlite"):
            return Path(self.db.removeprefix("sqlite:///")).exists()
        return self._ask(OPENED) != [(0,)]

    def __call__(self) -> tuple[int, int]:
        """Events stored, and releases judged."""
        ((events, judged, _, _),) = self._ask(PROGRESS) or [(0, 0, 0, None)]
        return events, judged

    def judged_at(self) -> bytes:
        """The hash of the block at the cursor; empty while a release waits to be judged."""
        ((_, _, waiting, block),) = self._ask(PROGRESS) or [(0, 0, 0, None)]
        return b"" if waiting else bytes(block or b"")

    def _ask(self, query: str) -> list[tuple[Any, ...]]:
        if self.db.startswith("sqlite") and not self.opened():
            return []
        engine = open_reader(self.db)
        try:
            with engine.begin() as connection:
                return rows(connection, query)
        except DBAPIError:
            return []
        finally:
            engine.dispose()


@pytest.fixture
def follow(shell: Any, chains: Any, anvil: Any) -> Callable[..., Any]:
    """`follow(registry, db)` starts a node over the packages in the folder's `blocks`."""

    def start(registry: Any, db: str) -> Any:
        return shell.start(
            "node", "--rpc-url", registry.url, "--chain-id", "31337", "--registry",
            registry.address, "--db", db, "--ipfs", f"dir:{shell / 'blocks'}", "--blocks",
            str(shell / f"kept-{abs(hash(db))}"), "--port", "0", "--log-format", "json",
            "--poll-interval", "0.2",
        )  # fmt: skip

    return start


@pytest.fixture
def packages(shell: Any, making: Any) -> Callable[..., list[tuple[str, str, bytes]]]:
    """Signed packages in the folder's `blocks`; some are unsigned, unbound, or somebody else's."""
    directory = BlockDirectory(shell / "blocks")

    def make(registry: Any, numbers: Iterable[int], said: str = "") -> list[Any]:
        found = []
        for number in numbers:
            name, version = f"cap-{number // 3}", f"1.{number % 3}.0"
            publisher = None if number % 7 == 5 else registry.publisher
            data = making.package_bytes(
                name, version, publisher=publisher, summary=f"Number {number} {said}".strip()
            )
            if number % 11 == 3:
                data = data.replace(b"Do it.", b"Do more than was signed.")
            directory.write(data)
            found.append((name, version, data))
        return found

    return make


def head(registry: Any) -> bytes:
    return bytes.fromhex(registry.call("eth_getBlockByNumber", "latest", False)["hash"][2:])


def rebuilt(
    follow: Any, registry: Any, shell: Any, name: str, eventually: Callable[..., Any]
) -> dict[str, Any]:
    """The contents of an index made in one go."""
    db = f"sqlite:///{shell / name}"
    node = follow(registry, db)
    watch = Watch(db)
    node.wait_for(lambda: watch.judged_at() == head(registry), "the rebuilt index was complete")
    node.kill()
    return contents(db)


def test_killed_again_and_again_while_it_catches_up_a_node_ends_with_the_same_index(
    shell: Any,
    anvil: Any,
    chains: Any,
    packages: Any,
    follow: Any,
    eventually: Callable[..., Any],
    database_url: str,
) -> None:
    registry = chains.Registry.deploy(anvil.url)
    registry.publish(packages(registry, range(RELEASES)))
    for number in range(0, RELEASES, 30):
        registry.yank(f"cap-{number // 3}", f"1.{number % 3}.0", number % 3, f"reason {number}")
    watch, killed = Watch(database_url), []
    for events, judged in kill_points():
        node = follow(registry, database_url)
        node.wait_for(
            lambda least=(events, judged): watch.opened() and all(map(ge, watch(), least)),
            f"{events} events and {judged} verdicts",
        )
        node.kill()
        killed.append(watch())
    assert killed == sorted(killed)  # no kill lost what was stored
    node = follow(registry, database_url)
    node.wait_for(lambda: watch.judged_at() == head(registry), "the killed index was complete")
    node.kill()
    ours = contents(database_url)
    assert len(ours["release"]) == RELEASES
    assert {row[13] for row in ours["release"]} == KINDS
    fresh = rebuilt(follow, registry, shell, "fresh.db", eventually)
    for name, expected in fresh.items():
        assert ours[name] == expected, f"the table {name!r} differs"


def kill_points() -> list[tuple[int, int]]:
    """Events and verdicts to kill at: while tables are made, at the first event, ever later."""
    dice = Random(RELEASES)  # noqa: S311 - the same moments in each run
    shares = sorted(dice.random() * 0.9 for _ in range(max(0, KILLS - 2)))
    return [(0, 0), (1, 0), *((1, int(x * RELEASES)) for x in shares)][:KILLS]


def test_after_reorganisations_of_any_depth_the_index_is_the_one_built_from_scratch(
    shell: Any,
    anvil: Any,
    chains: Any,
    packages: Any,
    follow: Any,
    eventually: Callable[..., Any],
) -> None:
    registry = chains.Registry.deploy(anvil.url)
    db = f"sqlite:///{shell / 'index.db'}"
    watch = Watch(db)
    blocks = [list(range(number, number + 3)) for number in range(0, 45, 3)]
    for numbers in blocks:
        registry.publish(packages(registry, numbers))
    node = follow(registry, db)
    for depth in DEPTHS:
        node.wait_for(lambda: watch.judged_at() == head(registry), "the index was at the head")
        gone = sorted(chain.from_iterable(blocks[-depth:]))
        registry.call("anvil_reorg", depth, [])
        # The same versions again with other bytes, all in one block, and one of them yanked.
        registry.publish(packages(registry, gone, f"after {depth}"))
        registry.yank(f"cap-{gone[0] // 3}", "1.0.0", 0, f"after {depth}")
        blocks = [*blocks[:-depth], *([] for _ in range(depth)), gone, []]
        node.wait_for(lambda: watch.judged_at() == head(registry), "the index was at the new head")
        ours = contents(db)
        assert sum(f"after {depth}" in str(row[1]) for row in ours["package"]) == len(gone)
        fresh = rebuilt(follow, registry, shell, f"fresh-{depth}.db", eventually)
        for name, expected in fresh.items():
            assert ours[name] == expected, f"the table {name!r} differs after depth {depth}"
    assert node.popen.poll() is None, node.stderr
