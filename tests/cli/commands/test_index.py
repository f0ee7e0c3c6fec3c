"""`capdex index digest` and `capdex snapshot`, over databases and beside a node."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from capdex.net.ipfs.block_store import BlockDirectory
from capdex.registry.logs import BlockRef
from capdex_indexer.db.models import DECODER_VERSION
from capdex_indexer.projection.block_range import BlockRange, LogRows
from capdex_indexer.store import Deployment, Store

CONTRACT = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
BLOCK = BlockRef(3, b"\x03" * 32, b"\x02" * 32, 1_700_000_000)


@pytest.fixture
def make_index(folder: Path) -> Callable[..., str]:
    """An index without events that has come to block 3; its URL."""

    def make(place: Path = folder / "index.db") -> str:
        place.parent.mkdir(parents=True, exist_ok=True)
        url = f"sqlite:///{place}"
        store = Store.open(url, Deployment(31337, CONTRACT, 1, bytes(32)))
        store.append(BlockRange(LogRows(), {}, (BLOCK,), BLOCK, 3, 1), ())
        store.close()
        return url

    return make


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network without a node or an endpoint."""
    monkeypatch.setenv("CAPDEX_CHAIN_ID", "31337")
    monkeypatch.setenv("CAPDEX_REGISTRY", CONTRACT)


def test_the_digests_of_a_database_are_shown_in_every_format(
    capdex: Any, make_index: Callable[..., str]
) -> None:
    url = make_index()
    value = capdex.json("index", "digest", "--db", url)
    assert value | {"index_digest": "", "content_digest": "", "rules_version": 0} == {
        "schema": "capdex.index.digest/1",
        "chain_id": 31337,
        "contract": CONTRACT,
        "block_number": 3,
        "block_hash": "0x" + "03" * 32,
        "log_count": 0,
        "log_head": "0x" + "00" * 24,
        "index_digest": "",
        "content_digest": "",
        "decoder_version": DECODER_VERSION,
        "rules_version": 0,
        "votes": None,
    }
    assert value["content_digest"] == (
        "0xe3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # of no leaves
    )
    plain = capdex("index", "digest", "--db", url, "--plain").stdout
    assert plain == f"{value['index_digest']}\n"
    human = capdex("index", "digest", "--db", url, "--format", "human").stdout.splitlines()
    assert human[0] == f"  index digest    {value['index_digest']}"
    assert human[2] == f"  block           3  0x{'03' * 32}"
    assert human[4] == f"  registry        {CONTRACT} on chain 31337"


def test_an_older_block_is_told_without_the_hash_that_nobody_kept(
    capdex: Any, make_index: Callable[..., str]
) -> None:
    value = capdex.json("index", "digest", "--db", make_index(), "--block", "2")
    assert (value["block_number"], value["block_hash"]) == (2, None)


@pytest.mark.parametrize("block", ["0", "4"])
def test_a_block_that_is_not_indexed_exits_with_1(
    capdex: Any, make_index: Callable[..., str], block: str
) -> None:
    for args in (("index", "digest"), ("snapshot", "export")):
        result = capdex(*args, "--db", make_index(), "--block", block)
        assert result.exit_code == 1
        assert "it holds blocks 1 to 3" in result.stderr


def test_the_networks_own_database_is_read_before_its_node_is_asked(
    capdex: Any,
    make_index: Callable[..., str],
    folder: Path,
    network: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CAPDEX_NODE_URL", "http://127.0.0.1:9")
    assert capdex("index", "digest").exit_code == 3  # no database is here, and nobody answers
    make_index(folder / "home" / "data" / "node" / "31337" / "index.db")
    assert capdex.json("index", "digest")["block_number"] == 3


def test_a_node_gives_only_the_digests_of_its_newest_block(
    capdex: Any, node: Any, network: None
) -> None:
    node.status |= {
        "chain": {
            "chain_id": 31337,
            "registry": CONTRACT,
            "block_number": 9,
            "block_hash": "0x\x1b",
        },
        "log": {"count": 7, "head": "0x00"},
        "index_digest": "0x01",
        "content_digest": None,
        "decoder_version": 3,
        "rules_version": 5,
    }
    value = capdex.json("index", "digest")
    shown = (value["block_number"], value["log_count"], value["index_digest"], value["votes"])
    assert shown == (9, 7, "0x01", None)
    human = capdex("index", "digest", "--format", "human").stdout
    assert "none until every release is judged" in human
    assert "\x1b" not in human
    result = capdex("index", "digest", "--block", "2")
    assert result.exit_code == 2
    assert "--db" in result.stderr


def test_a_snapshot_of_an_unproven_index_is_exported_and_refused(
    capdex: Any, make_index: Callable[..., str], folder: Path, network: None
) -> None:
    value = capdex.json("snapshot", "export", "--db", make_index())
    assert (value["file"], value["proven"], value["events"]) == ("capdex-31337-3.car", False, 0)
    assert (folder / "capdex-31337-3.car").stat().st_size == value["size_bytes"]
    to = ("snapshot", "import", value["file"], "--db", f"sqlite:///{folder / 'new.db'}")
    result = capdex(*to)
    assert result.exit_code == 2
    assert "the snapshot cannot be verified without a trusted block hash" in result.stderr
    result = capdex(*to, "--trust-block", value["block_hash"])
    assert result.exit_code == 1
    assert "holds no proof of its log" in result.stderr
    assert not (folder / "new.db").exists()


@pytest.mark.parametrize("option", ["--trust-block", "--trust-digest"])
def test_what_is_no_hash_is_not_trusted(capdex: Any, network: None, option: str) -> None:
    result = capdex("snapshot", "import", "x.car", option, "0x12")
    assert result.exit_code == 2
    assert "is not a hash" in result.stderr


def test_an_import_needs_a_network(capdex: Any) -> None:
    result = capdex("snapshot", "import", "x.car", "--db", "sqlite:///x.db", "--json")
    assert result.exit_code == 2
    assert json.loads(result.stderr.splitlines()[-1])["code"] == "CONFIG"


@pytest.fixture
def up(folder: Path, making: Any) -> Path:
    """The directory of a running `capdex up` with one verified package, whose bytes it lacks."""
    home = folder / ".capdex"
    (home / "blocks").mkdir(parents=True)
    url = f"sqlite:///{home / 'index.db'}"
    chain, store = making.Chain(), Store.open(url, making.DEPLOYMENT)
    chain.publish("note")
    making.follow(store, chain)
    store.close()
    stack = {
        "rpc_url": "http://127.0.0.1:9",
        "chain_id": making.CHAIN_ID,
        "registry": making.DEPLOYMENT.registry,
        "http_url": "http://127.0.0.1:9",
        "db_url": url,
        "pid": os.getpid(),
    }
    (home / "up.json").write_text(json.dumps(stack))
    BlockDirectory(folder / "bytes").write(next(iter(chain.packages.values())))
    return home


def test_beside_capdex_up_the_commands_of_an_index_find_its_database_and_blocks(
    capdex: Any, up: Path, folder: Path
) -> None:
    assert capdex.json("index", "digest")["log_count"] == 1
    rebuilt = capdex.json("index", "rebuild-search")
    assert (rebuilt["packages"], Path(rebuilt["directory"]).parent) == (1, up)
    assert capdex.json("node", "queue")["totals"] == {"pending": 0, "parked": 0}
    assert capdex.json("node", "deny", "evil", "--reason", "no")["results"][0]["subject"] == "evil"
    assert capdex.json("mirror", "out")["names"] == 1
    (data,) = (path for path in (folder / "bytes").rglob("*") if path.is_file())
    BlockDirectory(up / "blocks").write(data.read_bytes())
    assert capdex.json("snapshot", "export")["packages"] == 1


def test_an_index_without_its_packages_is_exported_only_when_told_so(
    capdex: Any, up: Path, folder: Path
) -> None:
    result = capdex("snapshot", "export", "--out", "index.car")
    assert result.exit_code == 1
    assert "1 package is missing" in result.stderr
    assert "--without-packages" in result.stderr
    assert not (folder / "index.car").exists()
    value = capdex.json("snapshot", "export", "--out", "index.car", "--without-packages")
    assert (value["events"], value["packages"]) == (1, 0)


@pytest.mark.parametrize(
    "command",
    [
        ("index", "digest"),
        ("index", "rebuild-search"),
        ("mirror", "out"),
        ("node", "queue"),
        ("node", "deny", "evil"),
        ("node", "accept", "0x" + "ab" * 32),
        ("node", "--role", "reader", "--port", "0"),
        ("snapshot", "export"),
    ],
)
def test_an_index_of_an_older_version_is_told_with_what_to_do_in_every_command(
    capdex: Any, make_index: Callable[..., str], command: tuple[str, ...], network: None
) -> None:
    url = make_index()
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0003'")
        connection.execute("ALTER TABLE deployment DROP COLUMN secret")
        connection.commit()
    result = capdex(*command, "--db", url)
    assert result.exit_code == 2, result.stderr
    assert "FOREIGN_DATABASE" in result.stderr
    assert "index into a new database" in result.stderr
