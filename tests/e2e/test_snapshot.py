"""An index taken to another machine in one file, on a real chain, by the commands alone."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from eth_abi import encode

from capdex.ipld.car import write_block, write_header
from capdex.ipld.cid import Cid
from capdex.net.ipfs.block_store import BlockDirectory
from capdex_indexer.snapshot import archive

RELEASES = 30
ABI = Path(__file__).parents[2] / "capdex" / "abi"


@pytest.fixture
def registry(shell: Any, chains: Any, anvil: Any, making: Any) -> Any:
    """A registry with releases, whose packages are in the folder's `blocks`."""
    found, directory = chains.Registry.deploy(anvil.url), BlockDirectory(shell / "blocks")
    releases = []
    for number in range(RELEASES):
        publisher = None if number == 7 else found.publisher
        data = making.package_bytes(f"cap-{number // 3}", f"1.{number % 3}.0", publisher=publisher)
        directory.write(data)
        releases.append((f"cap-{number // 3}", f"1.{number % 3}.0", data))
    found.publish(releases)
    found.yank("cap-1", "1.0.0", 0, "broken")
    shell.env |= {
        "CAPDEX_RPC_URL": found.url,
        "CAPDEX_CHAIN_ID": "31337",
        "CAPDEX_REGISTRY": found.address,
    }
    return found


@pytest.fixture
def votes(shell: Any, registry: Any, chains: Any) -> Any:
    """The votes beside it, two of them."""
    artifact = json.loads((ABI / "CapabilityVotes.json").read_text("utf-8"))
    values = encode(["address", "address", "uint256"], [registry.address, "0x" + "00" * 20, 0])
    data = artifact["bytecode"] + values.hex()
    sent = registry.call("eth_sendTransaction", {"data": data, **registry._payer()})
    deployed = registry.receipt(sent)
    found = chains.Registry(registry.url, deployed["contractAddress"], registry.account)
    for name in ("cap-1", "cap-2"):
        found.send([chains.call_data("vote", ("string", "int8"), (name, 1))])
    shell.env |= {"CAPDEX_VOTES": found.address}
    return found


@pytest.fixture
def node(shell: Any) -> Callable[..., Any]:
    """`node(db, blocks, *options)` starts one."""

    def start(db: str, blocks: str, *options: str) -> Any:
        return shell.start(
            "node", "--db", db, "--blocks", blocks, "--port", "0", "--log-format", "json",
            "--poll-interval", "0.2", *options,
        )  # fmt: skip

    return start


def head(registry: Any) -> bytes:
    return bytes.fromhex(registry.call("eth_getBlockByNumber", "latest", False)["hash"][2:])


SHOWN = ("index_digest", "content_digest", "decoder_version", "rules_version")


def shown(http: Any, url: str) -> Any:
    """The digests that a node shows."""
    status, body = http(f"{url}/status")
    assert status == 200, body
    return shown_by(json.loads(body))


def shown_by(value: Any) -> Any:
    return {key: value[key] for key in SHOWN}


def test_an_index_goes_to_another_machine_in_one_file_while_its_node_runs_on(
    shell: Any,
    registry: Any,
    votes: Any,
    node: Callable[..., Any],
    indexes: Any,
    http: Any,
    making: Any,
) -> None:
    db = f"sqlite:///{shell / 'one.db'}"
    first = node(db, "kept", "--ipfs", f"dir:{shell / 'blocks'}")
    watch = indexes.Watch(db)
    first.wait_for(lambda: watch.judged_at() == head(registry), "the index was complete")

    def digests(where: str, *options: str) -> Any:
        return shell.json("index", "digest", "--db", where, *options)

    first.wait_for(lambda: (digests(db)["votes"] or {}).get("log_count") == 2, "votes were there")
    out = ("--out", "index.car")
    told = shell.json("snapshot", "export", "--db", db, "--blocks", "kept", *out)
    assert (told["events"], told["packages"], told["proven"]) == (RELEASES + 3, RELEASES - 1, True)
    assert told["block_hash"] == f"0x{head(registry).hex()}"
    ours = digests(db)
    assert {key: ours[key] for key in ("index_digest", "content_digest", "block_hash")} == {
        key: told[key] for key in ("index_digest", "content_digest", "block_hash")
    }
    url = first.url()
    first.wait_for(lambda: shown(http, url) == shown_by(ours), "the node showed the same digests")
    asked = shell.json("index", "digest", CAPDEX_NODE_URL=url)
    assert asked == ours | {"votes": None}

    second = f"sqlite:///{shell / 'two.db'}"
    to = ("--db", second, "--blocks", "taken")
    taken = shell.json("snapshot", "import", "index.car", *to)
    assert (taken["kept"], taken["placed"]) == (RELEASES - 1, True)
    assert taken["index_digest"] == told["index_digest"]
    assert digests(second)["content_digest"] is None
    assert digests(second)["votes"] == ours["votes"]
    assert shell.json("snapshot", "import", "index.car", *to) == taken  # as after a cut

    # The other node has the packages, all but the one that does not verify.
    other = node(second, "taken", "--ipfs", f"dir:{shell / 'blocks'}")
    registry.publish_now("newest", "1.0.0", making.package_bytes("newest", publisher=None))
    watch = indexes.Watch(second)
    other.wait_for(lambda: watch()[0] == RELEASES + 4, "the new event was there")
    BlockDirectory(shell / "blocks").write(making.package_bytes("newest", publisher=None))
    for running, where in ((first, db), (other, second)):
        seen = indexes.Watch(where)
        running.wait_for(lambda seen=seen: seen.judged_at() == head(registry), "all was judged")
    first.wait_for(lambda: digests(db) == digests(second), "the votes were read as far")
    assert not indexes.differences(indexes.contents(db), indexes.contents(second))
    assert digests(db) == digests(second)
    assert digests(db)["content_digest"] is not None
    assert digests(second, "--block", str(told["block_number"])) == ours


def test_a_snapshot_that_lies_is_refused_with_words_and_leaves_nothing(
    shell: Any, registry: Any, node: Callable[..., Any], indexes: Any, rpc: Callable[..., Any]
) -> None:
    db = f"sqlite:///{shell / 'one.db'}"
    first = node(db, "kept", "--ipfs", f"dir:{shell / 'blocks'}")
    watch = indexes.Watch(db)
    first.wait_for(lambda: watch.judged_at() == head(registry), "the index was complete")
    first.kill()
    path = shell / "index.car"
    told = shell.json("snapshot", "export", "--db", db, "--blocks", "kept", "--out", str(path))
    honest = path.read_bytes()
    with path.open("rb") as file:
        archive.read_root(file)
        (_, first_block), *blocks = archive.read_blocks(file)
    manifest = json.loads(first_block)

    def write(chunk: bytes) -> None:
        manifest["registry"]["chunks"] = [Cid.of(chunk).text]
        root = json.dumps(manifest, separators=(",", ":")).encode()
        path.write_bytes(
            write_header(Cid.of(root).to_bytes())
            + b"".join(
                write_block(Cid.of(x), x) for x in (root, chunk, *(y for _, y in blocks[1:]))
            )
        )

    to = ("snapshot", "import", "index.car", "--db", f"sqlite:///{shell / 'two.db'}")
    chunk = blocks[0][1]
    for at, by in ((8 + 8 + 32 + 3, 1), (-9, 1)):  # another transaction; another word in the data
        lie = bytearray(chunk)
        lie[at] ^= by
        write(bytes(lie))
        error = shell.error(*to, code=1)
        assert (error["code"], error["what"]) == ("BAD_PROOF", "the snapshot is not true")
    path.write_bytes(honest[:-1])
    assert shell.error(*to, code=1)["what"] == "the snapshot is damaged"
    assert not (shell / "two.db").exists()

    path.write_bytes(honest)
    other = ("--trust-block", f"0x{'01' * 32}")
    assert shell.error(*to, *other, code=1)["code"] == "BAD_PROOF"
    elsewhere = {"CAPDEX_REGISTRY": "0x" + "33" * 20}
    assert shell.error(*to, code=1, **elsewhere)["what"].endswith("of another registry")

    # Without an endpoint: by the hash of the block alone, and by a digest from somebody else.
    offline = ("--rpc-url", "", "--blocks", "taken")
    assert shell.error(*to, *offline, code=2)["what"].endswith("without a trusted block hash")
    trust = ("--trust-block", told["block_hash"], "--trust-digest", told["index_digest"])
    done = shell(*to, *offline, *trust)
    assert "warning" not in done.stderr
    with closing(sqlite3.connect(shell / "two.db")) as connection:
        assert connection.execute("SELECT count(*) FROM event").fetchone() == (RELEASES + 1,)
    alone = (*to[:-1], f"sqlite:///{shell / 'three.db'}", *offline, *trust[:2])
    assert "are not checked" in shell(*alone).stderr
