"""`capdex node deny`, on the database of a node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from capdex_indexer.query.index import Index
from capdex_indexer.store import Store
from tests.indexer.found import search_page


@pytest.fixture
def database(folder: Path, making: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """The database of a node that knows two names, in CAPDEX_DB."""
    url = f"sqlite:///{folder / 'index.db'}"
    chain, store = making.Chain(), Store.open(url, making.DEPLOYMENT)
    for name in ("note", "weather"):
        chain.publish(name)
    making.follow(store, chain)
    store.close()
    monkeypatch.setenv("CAPDEX_DB", url)
    return url


def listed(url: str) -> list[str | None]:
    index = Index(url)
    try:
        return [hit.release.name for hit in search_page(index, "").hits]
    finally:
        index.close()


def test_what_is_denied_is_shown_and_can_be_taken_back(capdex: Any, database: str) -> None:
    said = capdex.json("node", "deny", "did:nuwa:cap:note", "--reason", "it lies")
    [denial] = said["results"]
    assert (denial["subject"], denial["reason"]) == ("note", "it lies")
    assert listed(database) == ["weather"]
    assert capdex.json("node", "deny", "--list")["results"] == [denial]
    text = capdex("--format", "human", "node", "deny", "--list").stdout
    assert text.startswith("note")
    assert "it lies" in text
    gone = capdex.json("node", "deny", "note", "weather", "--remove")["results"]
    assert gone == [
        {"subject": "note", "removed": True},
        {"subject": "weather", "removed": False},
    ]
    assert listed(database) == ["note", "weather"]
    assert "nothing" in capdex("--format", "human", "node", "deny", "--list").stdout


def test_a_denial_of_what_no_release_is_says_so(capdex: Any, database: str) -> None:
    cut = "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyk"  # without its last letter
    said = capdex("node", "deny", "note", cut).stderr
    assert f"no release here has the name or CID {cut}" in said
    assert "CID note" not in said
    assert capdex("node", "deny", "--list").stderr == ""


def test_several_can_be_denied_at_once(capdex: Any, database: str) -> None:
    capdex.json("node", "deny", "note", "weather")
    assert listed(database) == []
    assert capdex("--plain", "node", "deny", "--list").stdout.split() == ["note", "weather"]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["note", "--list"],
        ["--list", "--remove"],
        ["--list", "--reason", "x"],
        ["note", "--remove", "--reason", "x"],
    ],
)
def test_what_is_not_one_thing_to_do_is_refused(
    capdex: Any, database: str, arguments: list[str]
) -> None:
    assert capdex("node", "deny", *arguments).exit_code == 2
    assert len(listed(database)) == 2


def test_what_is_neither_a_cid_nor_a_name_is_refused(capdex: Any, database: str) -> None:
    assert capdex("node", "deny", "no name!").exit_code == 1


def test_a_database_that_is_not_there_is_told_and_not_made(capdex: Any, folder: Path) -> None:
    result = capdex("node", "deny", "note", "--db", f"sqlite:///{folder / 'none.db'}")
    assert result.exit_code in (2, 3)
    assert not (folder / "none.db").exists()
