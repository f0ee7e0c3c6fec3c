"""Installed packages in the catalogue: agreed to, verified before use, without a restart."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from capdex.errors import CapdexError, Code
from capdex.package import VerifiedPackage, verify
from capdex.registry.events import Announcement
from capdex_router.catalog.catalog import Catalog, Fixed
from capdex_router.catalog.installed import Installed
from capdex_router.catalog.short_forms import ShortForms
from capdex_router.home.directory import Home
from capdex_router.install.facts import locked
from capdex_router.install.fetch import Cache
from capdex_router.install.lock_store import LockStore
from capdex_router.model.refs import CapabilityRef
from capdex_router.policy.grant_file import GrantFile
from tests.indexer import making
from tests.router.simulated import all_grants
from tests.router.small_runtime import Echo, tool

ID = "did:nuwa:cap:weather"
TRIGGERS = [{"type": "keyword", "value": "rain"}]


def package(version: str = "1.0.0", **options: Any) -> VerifiedPackage:
    tools = [making.tool("now", city="A city.")]
    data = making.package_bytes(
        "weather", version, tools=tools, **{"triggers": TRIGGERS, **options}
    )
    told = Announcement(
        making.CHAIN_ID,
        making.checksum_address(making.PUBLISHER),
        f"{ID}@{version}",
        version,
        making.Cid.of(data).text,
        making.Cid.of(data).digest,
    )
    return verify(told, data)


class Machine:
    """A home in which packages are put without any node."""

    def __init__(self, path: Path) -> None:
        self.home = Home.open(path)
        self.rights = GrantFile(self.home.grants)
        self.asked: list[str] = []

    def put(self, found: VerifiedPackage, *, agreed: bool = True) -> None:
        Cache(self.home.blocks).put([found.data])
        announced = found.announcement
        chain = {"chain_id": announced.chain_id, "publisher": announced.publisher}
        store = LockStore(self.home.lock_file)
        store.write(store.read().plus([locked(found, "", chain)]))
        if agreed:
            self.rights.grant(all_grants(found))

    def source(self) -> Installed:
        return Installed(self.home, self.rights, self._executor)

    def _executor(self, found: VerifiedPackage, tool: str) -> None:
        self.asked.append(tool)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with nothing on it."""
    return Machine(tmp_path / "router")


def failure(work: Callable[[], object]) -> CapdexError:
    with pytest.raises(CapdexError) as caught:
        work()
    return caught.value


def test_a_package_is_a_skill_and_its_tools(machine: Machine) -> None:
    machine.put(package(tags=["sky"]))
    skill, tool = machine.source().listed()
    assert (skill.ref, skill.kind) == (CapabilityRef(ID, "1.0.0"), "skill")
    assert [trigger.value for trigger in skill.triggers] == ["rain"]
    assert skill.terms == "sky rain"
    assert (tool.ref.capability_id, tool.kind, tool.name) == (f"{ID}#now", "tool", "now")
    catalog = Catalog([machine.source()])
    assert catalog.find("weather").prompt == "Do it."
    assert catalog.find("weather#now").input_schema["properties"]["city"]
    assert machine.asked == ["now"]


def test_the_phrase_of_an_embedding_trigger_is_found_and_its_vector_is_not(
    machine: Machine,
) -> None:
    phrase, vector = {"value": "do I need an umbrella"}, {"value": "f00ff", "model": "m@1"}
    machine.put(package(triggers=[{"type": "embedding"} | x for x in (phrase, vector)]))
    skill, _ = machine.source().listed()
    assert skill.terms == "do I need an umbrella"


def test_what_nobody_agreed_to_here_is_not_offered(machine: Machine) -> None:
    machine.put(package(), agreed=False)
    assert list(machine.source().listed()) == []


def test_a_changed_lock_is_noticed_without_a_restart(machine: Machine) -> None:
    catalog = Catalog([machine.source()])
    assert list(catalog.listed()) == []
    machine.put(package())
    assert catalog.find("weather").ref.version == "1.0.0"
    machine.put(package("1.1.0"))
    assert catalog.find("weather").ref.version == "1.1.0"
    machine.rights.revoke(ID)
    assert failure(lambda: catalog.find("weather")).code is Code.NOT_FOUND


def test_a_grant_of_something_else_does_not_make_the_list_anew(machine: Machine) -> None:
    machine.put(package())
    source = machine.source()
    before = source.revision
    machine.rights.revoke("mcp:other")
    assert source.revision == before


def test_a_package_is_verified_before_it_is_used(machine: Machine) -> None:
    found = package()
    machine.put(found)
    catalog = Catalog([machine.source()])
    assert len(list(catalog.listed())) == 2
    (block,) = machine.home.blocks.glob("*/*")
    block.write_bytes(b"other")
    assert failure(lambda: catalog.find("weather#now")).code is Code.IPFS_UNAVAILABLE
    store = LockStore(machine.home.lock_file)
    chain = {"chain_id": 1, "publisher": found.announcement.publisher}
    block.write_bytes(found.data)
    store.write(store.read().plus([locked(found, "", chain)]))
    assert failure(lambda: catalog.find("weather#now")).code is Code.UNVERIFIED


def test_short_forms_are_used_and_made_again_when_they_are_lost(machine: Machine) -> None:
    found = package()
    machine.put(found)
    ShortForms(machine.home).add(found)
    (block,) = machine.home.blocks.glob("*/*")
    kept = block.read_bytes()
    block.unlink()
    assert len(list(machine.source().listed())) == 2  # a start reads no package
    machine.home.derived.unlink()
    assert list(machine.source().listed()) == []
    block.write_bytes(kept)
    assert len(list(machine.source().listed())) == 2
    machine.home.derived.write_bytes(b"damaged" * 1000)
    assert len(list(machine.source().listed())) == 2


def test_a_damaged_lock_file_is_why_a_package_is_not_found_and_mounts_go_on(
    machine: Machine,
) -> None:
    machine.put(package())
    kept = machine.home.lock_file.read_bytes()
    echo = tool("echo", Echo())
    catalog = Catalog([machine.source(), Fixed([echo])])
    assert catalog.get(ID).kind == "skill"
    machine.home.lock_file.write_bytes(b"{")
    assert [x.ref for x in catalog.listed()] == [echo.ref]
    for look_up in (catalog.get, catalog.find):
        assert failure(partial(look_up, ID)).code is Code.CONFIG
    assert catalog.find("echo") is echo
    machine.home.lock_file.write_bytes(kept)
    assert catalog.find("weather").kind == "skill"
    assert failure(lambda: catalog.get("x")).code is Code.NOT_FOUND


def test_what_is_removed_between_list_and_load_is_not_found(machine: Machine) -> None:
    machine.put(package())
    source = machine.source()
    for ref in (CapabilityRef(ID, "2.0.0"), CapabilityRef(f"{ID}#gone", "1.0.0")):
        assert failure(lambda ref=ref: source.load(ref)).code is Code.NOT_FOUND  # type: ignore[misc]
