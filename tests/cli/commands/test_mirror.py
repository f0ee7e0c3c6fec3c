"""`capdex mirror`, of the database of a node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from capdex_indexer.store import Operator, Store


@pytest.fixture
def database(folder: Path, making: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    url = f"sqlite:///{folder / 'index.db'}"
    chain, store = making.Chain(), Store.open(url, making.DEPLOYMENT)
    for name in ("note", "weather"):
        chain.publish(name)
    making.follow(store, chain)
    store.close()
    monkeypatch.setenv("CAPDEX_DB", url)
    return url


def test_a_mirror_is_written_and_what_changed_is_told(
    capdex: Any, database: str, folder: Path
) -> None:
    first = capdex.json("mirror", "out", "--base-url", "https://node.example/")
    assert (first["names"], first["releases"], first["denied"]) == (2, 2, 0)
    assert first["files"] == {"written": 3, "unchanged": 0, "removed": 0}
    config = json.loads((folder / "out" / "config.json").read_bytes())
    assert config["gateway"] == "https://node.example/ipfs/{cid}?format=raw"
    assert config["index_digest"] == first["index_digest"]
    [line] = (folder / "out" / "no" / "te" / "note").read_text("utf-8").splitlines()
    assert json.loads(line)["cap_uri"] == "did:nuwa:cap:note@1.0.0"
    with Operator(database) as operator:
        operator.deny("note")
    second = capdex("--format", "human", "mirror", "out", "--base-url", "https://node.example")
    assert second.exit_code == 0
    assert "1 removed" in second.stdout
    assert "1 left out, by name or CID" in second.stdout
    assert not (folder / "out" / "no").exists()


@pytest.mark.parametrize(
    "url",
    [
        *("node.example", "ftp://x", "https://a:b@x", "https://x/{cid}", "http://[", "https://"),
        *("http://x y", "https://x:99999", "https://x:no"),
    ],
)
def test_an_address_that_is_none_is_refused(
    capdex: Any, database: str, folder: Path, url: str
) -> None:
    assert capdex("mirror", "out", "--base-url", url).exit_code == 2
    assert not (folder / "out").exists()


def test_a_directory_of_something_else_and_a_missing_index_are_told(
    capdex: Any, database: str, folder: Path
) -> None:
    (folder / "home.txt").write_text("mine")
    result = capdex("mirror", ".", "--json")
    assert result.exit_code == 2
    assert json.loads(result.stderr)["code"] == "UNREADABLE"
    result = capdex("mirror", "out", "--db", f"sqlite:///{folder / 'none.db'}")
    assert result.exit_code in (2, 3)
