"""Killed at any moment, or after any reorganisation: the index is the one built from scratch.

A few of each, by the command as people start it; tests/soak does the same hundreds of times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from operator import ge
from random import Random
from typing import Any

import pytest

from capdex.net.blocks import BlockDirectory

KILLS = 3
RELEASES = 300
DEPTHS = (1, 3, 12)

KINDS = {"verified", "signed", "invalid"}


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


def rebuilt(follow: Any, registry: Any, shell: Any, name: str, indexes: Any) -> dict[str, Any]:
    """The contents of an index made in one go."""
    db = f"sqlite:///{shell / name}"
    node = follow(registry, db)
    watch = indexes.Watch(db)
    node.wait_for(lambda: watch.judged_at() == head(registry), "the rebuilt index was complete")
    node.kill()
    return dict(indexes.contents(db))


def test_killed_again_and_again_while_it_catches_up_a_node_ends_with_the_same_index(
    shell: Any,
    anvil: Any,
    chains: Any,
    packages: Any,
    follow: Any,
    indexes: Any,
    database_url: str,
) -> None:
    registry = chains.Registry.deploy(anvil.url)
    registry.publish(packages(registry, range(RELEASES)))
    for number in range(0, RELEASES, 30):
        registry.yank(f"cap-{number // 3}", f"1.{number % 3}.0", number % 3, f"reason {number}")
    watch, killed = indexes.Watch(database_url), []
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
    ours = indexes.contents(database_url)
    assert len(ours["release"]) == RELEASES
    assert {row[13] for row in ours["release"]} == KINDS
    fresh = rebuilt(follow, registry, shell, "fresh.db", indexes)
    assert not indexes.differences(ours, fresh)


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
    indexes: Any,
) -> None:
    registry = chains.Registry.deploy(anvil.url)
    db = f"sqlite:///{shell / 'index.db'}"
    watch = indexes.Watch(db)
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
        ours = indexes.contents(db)
        assert sum(f"after {depth}" in str(row[1]) for row in ours["package"]) == len(gone)
        fresh = rebuilt(follow, registry, shell, f"fresh-{depth}.db", indexes)
        assert not indexes.differences(ours, fresh), f"after depth {depth}"
    assert node.popen.poll() is None, node.stderr
