"""`capdex node` as a command: the options a node is run with, and its subcommands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from capdex_cli.node import serve as node_run
from capdex_indexer.options import NodeOptions
from capdex_indexer.store import Deployment, Store

REGISTRY = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
GIVEN = ("--rpc-url", "http://127.0.0.1:8545", "--chain-id", "31337", "--registry", REGISTRY)
DEPLOYMENT = Deployment(31337, REGISTRY, 0, bytes(32))
HASH = "0x" + "ab" * 32


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[NodeOptions]:
    """The options that nodes would have been run with."""
    started: list[NodeOptions] = []

    def run_node(options: NodeOptions, *_: object, progress: object, **__: object) -> int:
        assert progress is None  # its streams are no terminals
        started.append(options)
        return 0

    monkeypatch.setattr(node_run, "run_node", run_node)
    return started


@pytest.fixture
def index(folder: Path) -> str:
    """The URL of an empty index."""
    url = f"sqlite:///{folder / 'index.db'}"
    Store.open(url, DEPLOYMENT).close()
    return url


def test_blocks_are_those_beside_the_database_if_it_has_any(
    started: list[NodeOptions], capdex: Any, index: str, folder: Path
) -> None:
    capdex("node", *GIVEN, "--db", index)
    (folder / "blocks").mkdir()
    capdex("node", *GIVEN, "--db", index)
    capdex("node", *GIVEN, "--db", index, "--blocks", str(folder / "others"))
    by_default, beside, others = [x.blocks for x in started]
    assert by_default.parts[-3:] == ("node", "31337", "blocks")
    assert (beside, others) == (folder / "blocks", folder / "others")


def test_without_a_subcommand_it_runs_the_node(capdex: Any, started: list[NodeOptions]) -> None:
    result = capdex("node", *GIVEN, "--role", "writer", "--standby", "--votes", REGISTRY)
    assert result.exit_code == 0, result.stderr
    (settings,) = started
    assert (settings.role, settings.standby, settings.votes) == ("writer", True, REGISTRY)
    assert settings.db.endswith("/node/31337/index.db")


def test_a_reader_needs_its_database_alone(capdex: Any, started: list[NodeOptions]) -> None:
    result = capdex("node", "--role", "reader", "--db", "postgresql://reader@db/capdex")
    assert result.exit_code == 0, result.stderr
    (settings,) = started
    assert (settings.role, settings.rpc_urls, settings.registry) == ("reader", (), "")


@pytest.mark.parametrize("missing", ["--rpc-url", "--chain-id", "--registry"])
def test_a_writer_needs_chain_and_registry(
    capdex: Any, started: list[NodeOptions], missing: str
) -> None:
    at = GIVEN.index(missing)
    result = capdex("node", *GIVEN[:at], *GIVEN[at + 2 :])
    assert result.exit_code == 2
    assert "no network is chosen" in result.stderr
    assert "fix: give --rpc-url, --chain-id and --registry, or set their" in result.stderr
    assert started == []


@pytest.mark.parametrize(
    "option",
    [
        *((option, "nan") for option in ("--poll-interval", "--rate", "--keep-alive")),
        ("--client-timeout", "NaN"),
        ("--poll-interval", "0"),  # an endpoint would be asked without a pause
        ("--poll-interval", "-1"),
        ("--poll-interval", "inf"),
        ("--finality-depth", "99999999999999999999"),
        ("--start-block", "-1"),
    ],
)
def test_a_number_that_no_node_could_run_by_is_refused(
    capdex: Any, started: list[NodeOptions], option: tuple[str, str]
) -> None:
    result = capdex("node", *GIVEN, *option)
    assert result.exit_code == 2, result.stderr
    assert f"Invalid value for '{option[0]}'" in result.stderr
    said = "is not a number" if option[1].lower() == "nan" else "is not in the range"
    assert said in result.stderr
    assert started == []


def test_the_first_block_is_looked_for_unless_it_is_given(
    capdex: Any, started: list[NodeOptions]
) -> None:
    assert capdex("node", *GIVEN).exit_code == 0
    assert capdex("node", *GIVEN, "--start-block", "0").exit_code == 0
    assert [settings.start_block for settings in started] == [None, 0]


def test_role_and_standby_come_from_the_environment_too(
    capdex: Any, started: list[NodeOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPDEX_ROLE", "writer")
    monkeypatch.setenv("CAPDEX_STANDBY", "1")
    assert capdex("node", *GIVEN).exit_code == 0
    assert (started[0].role, started[0].standby) == ("writer", True)


def test_a_writer_has_no_workers(capdex: Any, started: list[NodeOptions]) -> None:
    result = capdex("node", *GIVEN, "--role", "writer", "--workers", "2")
    assert result.exit_code == 2
    assert "leave --workers out" in result.stderr
    assert started == []


def test_a_reader_is_no_standby(capdex: Any, started: list[NodeOptions]) -> None:
    reader = ("--role", "reader", "--db", "postgresql://reader@db/capdex")
    result = capdex("node", *reader, "--standby")
    assert result.exit_code == 2
    assert "leave --standby out" in result.stderr
    assert started == []


@pytest.mark.parametrize("count", ["0", "-1", "65", "two"])
def test_a_number_of_workers_that_is_no_use_is_refused(
    capdex: Any, started: list[NodeOptions], count: str
) -> None:
    result = capdex("node", *GIVEN, "--workers", count)
    assert result.exit_code == 2
    assert "Invalid value for '--workers'" in result.stderr
    assert started == []


def test_a_slip_in_a_subcommand_gets_a_suggestion(capdex: Any, started: list[NodeOptions]) -> None:
    result = capdex("node", "acept", HASH)
    assert result.exit_code == 2
    assert "did you mean accept?" in result.stderr
    assert started == []


@pytest.mark.parametrize("first", [False, True])
def test_the_database_is_named_before_or_after_the_subcommand(
    capdex: Any, index: str, started: list[NodeOptions], first: bool
) -> None:
    words = ("--db", index, "accept", HASH) if first else ("accept", HASH, "--db", index)
    said = capdex.json("node", *words)
    assert said == {"schema": "capdex.node.accept/1", "block_hash": HASH}
    assert started == []
    store = Store.open(index, DEPLOYMENT)
    assert store.accepted() == bytes.fromhex(HASH[2:])
    store.close()


def test_an_accepted_block_is_not_said_to_be_there(capdex: Any, index: str) -> None:
    said = capdex("node", "accept", HASH, "--db", index).stderr
    assert "if its endpoint has this block" in said


def test_what_is_no_block_hash_is_refused(capdex: Any, index: str) -> None:
    result = capdex("node", "accept", "0x12", "--db", index)
    assert result.exit_code == 1
    assert "is not the hash of a block" in result.stderr
