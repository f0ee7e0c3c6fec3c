"""The lock file and the machine: checked and synchronised, offline when all bytes are here."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from capdex.encoding.abi import checksum_address
from capdex.errors import CapdexError, Code, Refused
from capdex.ipld.cid import Cid
from capdex.json import Json
from capdex.package import verify
from capdex.registry.events import Announcement
from capdex_router.install.facts import locked
from capdex_router.install.lock_store import LockStore
from capdex_router.install.lockfile import Lock, Locked
from capdex_router.install.sync import check, sync
from tests.indexer import making
from tests.router.simulated import Machine, Person, SimulatedNode, uri, weather

Open = Callable[..., Machine]


@pytest.fixture
async def installed(machine: Open, node: SimulatedNode, person: Person) -> Machine:
    """A machine with two packages."""
    node.publish(weather())
    node.publish(making.package_bytes("tides", "1.0.0"))
    here = machine(node)
    await here.installer.install(uri("weather@^1"), person)
    await here.installer.install(uri("tides"), person)
    person.asked.clear()
    node.requests.clear()
    return here


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every socket and every look-up fails the test."""

    def refuse(*arguments: Any, **more: Any) -> Any:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)


def edit(here: Machine, **changed: Any) -> None:
    """Edit the entry of weather by hand."""
    store = LockStore(here.home.lock_file)
    lock = store.read()
    store.write(lock.plus([replace(lock.packages["weather"], **changed)]))


async def failed(here: Machine, person: Person, *, frozen: bool = False) -> CapdexError:
    """The error of weather, whose line alone fails: tides is as it should be."""
    tides, weather = await sync(here.installer, person, frozen=frozen)
    assert (tides.name, tides.status) == ("tides", "unchanged")
    assert (weather.name, weather.status) == ("weather", "failed")
    assert weather.error is not None
    return weather.error


async def test_offline_from_the_lock_no_socket_is_opened(
    installed: Machine, machine: Open, node: SimulatedNode, person: Person, no_network: None
) -> None:
    for frozen in (False, True):
        here = machine(node)
        outcomes = await sync(here.installer, person, frozen=frozen)
        assert [outcome.status for outcome in outcomes] == ["unchanged", "unchanged"]
        assert len(here.seen) == 2
    assert check(machine().installer) == []
    assert person.asked == []


async def test_what_is_missing_is_fetched_by_its_cid_alone(
    installed: Machine, machine: Open, node: SimulatedNode, person: Person
) -> None:
    for block in installed.home.blocks.glob("*/bafk*"):
        block.unlink()
    assert len(check(installed.installer)) == 2
    outcomes = await sync(machine(node).installer, person, frozen=True)
    assert [outcome.status for outcome in outcomes] == ["fetched", "fetched"]
    assert node.requests == ["block", "block"]
    assert check(installed.installer) == []


async def test_what_is_missing_without_a_node_is_an_error_of_each_package(
    installed: Machine, machine: Open, person: Person
) -> None:
    for block in installed.home.blocks.glob("*/bafk*"):
        block.unlink()
    for outcome in await sync(machine().installer, person):
        assert outcome.error is not None
        assert outcome.error.code is Code.CONFIG
        assert outcome.error.fix != "capdex sync"  # that is what was run


async def test_bytes_that_nobody_has_stop_no_other_package(
    installed: Machine, machine: Open, node: SimulatedNode, person: Person
) -> None:
    for block in installed.home.blocks.glob("*/bafk*"):
        block.unlink()
    del node.blocks[installed.installer.entry("weather").cid]
    tides, weather = await sync(machine(node).installer, person)
    assert (tides.status, weather.status) == ("fetched", "failed")
    assert weather.error is not None
    assert weather.error.code is Code.IPFS_UNAVAILABLE


async def test_each_package_that_nobody_agreed_to_here_is_resolved_and_asked_about(
    installed: Machine, machine: Open, node: SimulatedNode, person: Person
) -> None:
    installed.home.grants.unlink()
    node.publish(weather("1.1.0"))  # within what was asked for, and not what the line says
    before = installed.home.lock_file.read_bytes()
    person.agrees = False
    refused = await sync(machine(node).installer, person)
    assert [one.error and one.error.code for one in refused] == [Code.NO_CONSENT] * 2
    assert {one.error and one.error.fix for one in refused} == {"a person can run: capdex sync"}
    assert installed.rights.read().all == ()
    assert any("nobody agreed" in one["why"] for one in check(machine().installer))
    person.agrees = True
    person.asked.clear()
    outcomes = await sync(machine(node).installer, person)
    assert [one.status for one in outcomes] == ["installed", "installed"]
    assert [one.summary for one in person.asked] == [
        "Install tides 1.0.0?",
        "Install weather 1.0.0?",
    ]
    assert "now: GET https://tools.example.org/do" in person.lines
    assert "proof: none" in person.lines
    assert check(machine().installer) == []
    assert installed.home.lock_file.read_bytes() == before


async def test_without_a_node_only_what_was_agreed_to_here_is_used(
    installed: Machine, machine: Open, person: Person, no_network: None
) -> None:
    installed.home.grants.unlink()
    outcomes = await sync(machine().installer, person)
    assert [one.error and one.error.code for one in outcomes] == [Code.CONFIG] * 2
    assert (person.asked, installed.rights.read().all) == ([], ())


def forged(data: bytes, version: str, publisher: bytes) -> Locked:
    """An entry as the lock file would have it for a package that somebody wrote into it."""
    account = checksum_address(publisher)
    cid = Cid.of(data)
    said = Announcement(
        making.CHAIN_ID, account, f"did:nuwa:cap:weather@{version}", version, cid.text, cid.digest
    )
    return locked(verify(said, data), "", {"chain_id": making.CHAIN_ID, "publisher": account})


async def test_a_release_that_was_never_announced_is_not_installed(
    machine: Open, node: SimulatedNode, person: Person
) -> None:
    data = weather("9.9.9", publisher=making.OTHER)
    node.blocks[str(Cid.of(data))] = data
    here = machine(node)
    LockStore(here.home.lock_file).write(Lock().plus([forged(data, "9.9.9", making.OTHER)]))
    for frozen in (False, True):
        (outcome,) = await sync(here.installer, person, frozen=frozen)
        assert outcome.error is not None
        assert outcome.error.code is Code.UNVERIFIED
        assert "the nodes know no such release" in outcome.error.why
        assert outcome.error.fix.startswith("ask another node, or later; else: capdex remove")
    assert (person.asked, here.rights.read().all) == ([], ())
    assert check(here.installer)


@pytest.mark.parametrize(
    ("changed", "refused"),
    [
        ({}, ""),
        ({"explicit": False, "extra": {"later": 1}}, ""),
        ({"lint": ("LINT_OTHER",)}, ""),
        ({"chain": {"block_number": 12345}}, "its block_number is "),
        ({"chain": {"sequence": 12345}}, "its sequence is "),
        ({"chain": {"contract": "0x" + "12" * 20}}, 'the lock file has "0x1212'),
        ({"chain": {"chain_id": 1}}, "eip155:1:"),
        ({"hosts": ("good.example.org",)}, "they differ in hosts"),
        ({"permissions": ("state.delete",)}, "they differ in permissions"),
        ({"tools": "ab" * 32}, "they differ in tools"),
    ],
    ids=str,
)
async def test_a_frozen_sync_leaves_the_file_as_it_is_and_refuses_a_line_that_is_not_right(
    installed: Machine, person: Person, changed: Json, refused: str
) -> None:
    entry = installed.installer.entry("weather")
    edit(installed, **changed | {"chain": entry.chain | changed.get("chain", {})})
    before = installed.home.lock_file.read_bytes()
    installed.rights.forget([entry.sha256])
    outcomes = await sync(installed.installer, person, frozen=True)
    error = outcomes[-1].error
    assert refused in error.line if error else not refused
    assert installed.home.lock_file.read_bytes() == before
    assert len(person.asked) == (not refused)
    assert not person.asked or "text lint: nothing found" in person.lines
    assert bool(check(installed.installer)) == bool(refused)


async def test_what_a_line_says_wrong_of_a_package_that_is_new_here_is_written_anew(
    installed: Machine, person: Person
) -> None:
    right = installed.installer.entry("weather")
    edit(installed, hosts=["a.example"], permissions=["state.create"])
    installed.rights.forget([right.sha256])
    outcomes = await sync(installed.installer, person)
    assert [x.error for x in outcomes] == [None, None]
    assert len(person.asked) == 1
    assert installed.installer.entry("weather") == right


@pytest.mark.parametrize("field", ["sha256", "publisher"])
async def test_a_release_that_was_announced_otherwise_is_not_installed(
    machine: Open, node: SimulatedNode, person: Person, field: str
) -> None:
    node.publish(weather())
    data = weather(prompt="Another.") if field == "sha256" else weather(publisher=making.OTHER)
    publisher = making.PUBLISHER if field == "sha256" else making.OTHER
    node.blocks[str(Cid.of(data))] = data
    here = machine(node)
    LockStore(here.home.lock_file).write(Lock().plus([forged(data, "1.0.0", publisher)]))
    (outcome,) = await sync(here.installer, person)
    assert outcome.error is not None
    assert outcome.error.code is Code.UNVERIFIED
    assert (person.asked, here.rights.read().all) == ([], ())


async def test_a_line_that_swaps_in_another_signer_is_refused_as_an_upgrade_is(
    installed: Machine, node: SimulatedNode, person: Person
) -> None:
    data = weather("1.0.1", key=making.OTHER_KEY)
    node.publish(data)
    store = LockStore(installed.home.lock_file)
    store.write(store.read().plus([forged(data, "1.0.1", making.PUBLISHER)]))
    outcome = next(x for x in await sync(installed.installer, person) if x.name == "weather")
    assert outcome.error is not None
    assert outcome.error.code is Code.SIGNER_CHANGED
    # With the version it would be pinned for all who share the file.
    assert outcome.error.fix.endswith("capdex install 'weather' --allow-signer-change")
    assert person.asked == []


async def test_the_signer_that_a_lock_file_names_is_quoted(
    machine: Open, node: SimulatedNode, person: Person
) -> None:
    node.publish(weather())
    here = machine(node)
    line = forged(weather(), "1.0.0", making.PUBLISHER)
    line = replace(line, signer='did:key:z6Mk", checked by capdex')
    LockStore(here.home.lock_file).write(Lock().plus([line]))
    with pytest.raises(Refused) as refused:
        await here.installer.install(uri("weather"), person)
    assert r'is signed by "did:key:z6Mk\", checked by capdex", this by ' in refused.value.why


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"permissions": ("state.delete",)}, "permissions"),
        ({"hosts": ()}, "hosts"),
        ({"tools": "ab" * 32}, "tools"),
        ({"signer": "did:key:z6MkOther"}, "signer"),
    ],
)
async def test_a_line_edited_by_hand_is_refused_and_stops_no_other(
    installed: Machine, person: Person, changed: dict[str, Any], field: str
) -> None:
    edit(installed, **changed)
    for frozen in (False, True):
        error = await failed(installed, person, frozen=frozen)
        assert error.code is Code.LOCK_DRIFT
        assert field in error.why
    (problem,) = check(installed.installer)
    assert problem["name"] == "weather"


async def test_what_a_line_says_beyond_the_nodes_stays_if_all_that_they_say_stands_there(
    installed: Machine, person: Person
) -> None:
    """A proof is had with a trusted endpoint alone, which not everybody who shares the file has."""
    chain = installed.installer.entry("weather").chain | {"block_hash": "0x" + "ab" * 32}
    edit(installed, chain=chain)
    installed.home.grants.unlink()
    await sync(installed.installer, person)
    assert installed.installer.entry("weather").chain == chain
    edit(installed, chain=chain | {"sequence": 99})
    installed.home.grants.unlink()
    await sync(installed.installer, person)
    assert "block_hash" not in installed.installer.entry("weather").chain


@pytest.mark.parametrize("proof", [{"name": "weather"}, {}, [], "x", 5, True], ids=str)
async def test_a_proof_in_the_lock_that_does_not_hold_is_refused_however_one_looks(
    installed: Machine, person: Person, no_network: None, proof: Any
) -> None:
    entry = LockStore(installed.home.lock_file).read().packages["weather"]
    edit(installed, chain=entry.chain | {"proof": proof})
    (problem,) = check(installed.installer)
    assert problem["name"] == "weather"
    assert "proof" in problem["why"]
    for frozen in (False, True):
        error = await failed(installed, person, frozen=frozen)
        assert error.code is Code.LOCK_DRIFT
        assert error.why == f"weather: {problem['why']}"
        assert error.fix.endswith("install again: weather")


@pytest.mark.parametrize(
    "changed",
    [
        {"version": "1.0.1"},
        {"chain": {"chain_id": making.CHAIN_ID, "publisher": "0x" + "11" * 20}},
        {"cid": "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"},
    ],
    ids=["version", "publisher", "cid"],
)
async def test_an_entry_that_its_bytes_do_not_bear_out_is_refused(
    installed: Machine, person: Person, changed: dict[str, Any]
) -> None:
    edit(installed, **changed)
    error = await failed(installed, person)
    assert error.code is Code.UNVERIFIED
    assert error.fix == "capdex remove weather, then install it again"
    assert len(check(installed.installer)) == 1


async def test_a_request_that_was_edited_is_resolved_again_unless_frozen(
    installed: Machine, node: SimulatedNode, person: Person
) -> None:
    edit(installed, request="^2")
    node.publish(weather("2.0.0", tools=2))
    assert (await failed(installed, person, frozen=True)).code is Code.LOCK_DRIFT
    (problem,) = check(installed.installer)
    assert "1.0.0 is not a version of ^2" in problem["why"]
    outcomes = {one.name: one.status for one in await sync(installed.installer, person)}
    assert outcomes == {"tides": "unchanged", "weather": "upgraded"}
    assert installed.installer.entry("weather").version == "2.0.0"
    assert len(person.asked) == 1
