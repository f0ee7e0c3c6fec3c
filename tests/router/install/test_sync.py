"""The lock file and the machine: checked and synchronised, offline when all bytes are here."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from capdex.errors import CapdexError, Code
from router.install.lock_store import LockStore
from router.install.sync import check, sync
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


async def failed(work: Any) -> CapdexError:
    with pytest.raises(CapdexError) as caught:
        await work
    return caught.value


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


async def test_what_is_missing_without_a_node_is_one_error(
    installed: Machine, machine: Open, person: Person
) -> None:
    for block in installed.home.blocks.glob("*/bafk*"):
        block.unlink()
    assert (await failed(sync(machine().installer, person))).code is Code.IPFS_UNAVAILABLE


async def test_packages_that_nobody_agreed_to_here_are_asked_about_once(
    installed: Machine, machine: Open, person: Person
) -> None:
    installed.home.grants.unlink()
    person.agrees = False
    assert (await failed(sync(machine().installer, person))).code is Code.NO_CONSENT
    assert installed.rights.read().all == ()
    assert any("nobody agreed" in one["why"] for one in check(machine().installer))
    person.agrees = True
    person.asked.clear()
    await sync(machine().installer, person)
    assert len(person.asked) == 1
    assert "Install 2 packages" in person.lines
    assert "weather 1.0.0" in person.lines
    assert "tools.example.org" in person.lines
    assert check(machine().installer) == []


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"permissions": ("state.delete",)}, "permissions"),
        ({"hosts": ()}, "hosts"),
        ({"tools": "ab" * 32}, "tools"),
        ({"signer": "did:key:z6MkOther"}, "signer"),
    ],
)
async def test_a_lock_edited_by_hand_is_refused(
    installed: Machine, person: Person, changed: dict[str, Any], field: str
) -> None:
    edit(installed, **changed)
    for work in (sync(installed.installer, person), sync(installed.installer, person, frozen=True)):
        error = await failed(work)
        assert error.code is Code.LOCK_DRIFT
        assert field in error.why
    (problem,) = check(installed.installer)
    assert problem["name"] == "weather"


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
    assert (await failed(sync(installed.installer, person))).code is Code.UNVERIFIED
    assert len(check(installed.installer)) == 1


async def test_a_request_that_was_edited_is_resolved_again_unless_frozen(
    installed: Machine, node: SimulatedNode, person: Person
) -> None:
    edit(installed, request="^2")
    node.publish(weather("2.0.0", tools=2))
    assert (await failed(sync(installed.installer, person, frozen=True))).code is Code.LOCK_DRIFT
    (problem,) = check(installed.installer)
    assert "1.0.0 is not a version of ^2" in problem["why"]
    outcomes = {one.name: one.status for one in await sync(installed.installer, person)}
    assert outcomes == {"tides": "unchanged", "weather": "upgraded"}
    assert installed.installer.entry("weather").version == "2.0.0"
    assert len(person.asked) == 1
