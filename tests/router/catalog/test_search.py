"""Search over a catalogue: names first, then words, a package's best capability before others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from capdex_router.catalog.catalog import Catalog, Listed
from capdex_router.catalog.search import Search
from capdex_router.model.capability import Capability, Kind
from capdex_router.model.refs import CapabilityRef


class Shelf:
    """Capabilities in short, which can be exchanged."""

    def __init__(self, entries: Iterable[Listed]) -> None:
        self.revision = 0
        self.put(entries)

    def put(self, entries: Iterable[Listed]) -> None:
        self._entries = list(entries)
        self.revision += 1

    def listed(self) -> list[Listed]:
        return self._entries

    def load(self, ref: CapabilityRef) -> Capability:
        raise NotImplementedError


def listed(
    id_: str, description: str = "", kind: Kind = "tool", terms: str = "", version: str = "1.0.0"
) -> Listed:
    name = id_.rpartition("#")[2].rpartition(":")[2]
    return Listed(CapabilityRef(id_, version), kind, name, description, terms=terms)


NOTE = "did:nuwa:cap:note"
ENTRIES = [
    listed(NOTE, "Takes notes", "skill", terms="memo"),
    listed(f"{NOTE}#create", "Writes a note"),
    listed(f"{NOTE}#delete", "Removes a note"),
    listed("did:nuwa:cap:letters", "Writes letters, and a note with each", "skill"),
    listed("mcp:weather#forecast", "Says whether it will rain"),
]


def found(search: Search, want: str, limit: int = 5) -> list[str]:
    return [hit.listed.ref.capability_id for hit in search.find(want, limit)]


def test_an_exact_name_leads_and_says_so() -> None:
    search = Search(Catalog([Shelf(ENTRIES)]))
    for want in ("letters", "did:nuwa:cap:letters", "did:nuwa:cap:letters@1.0.0", " LETTERS "):
        (first, *_) = search.find(want, 5)
        assert (first.listed.name, first.why) == ("letters", "exact name")
    assert found(search, "forecast")[0] == "mcp:weather#forecast"


def test_words_are_found_in_any_form_and_named() -> None:
    search = Search(Catalog([Shelf(ENTRIES)]))
    (hit,) = search.find("will it be raining tomorrow?", 5)
    assert (hit.listed.name, hit.why) == ("forecast", "rain")
    assert found(search, "memos")[0] == NOTE
    assert found(search, "forecst") == ["mcp:weather#forecast"]
    assert found(search, "???") == []


def test_the_best_of_each_package_comes_before_others_of_it() -> None:
    search = Search(Catalog([Shelf(ENTRIES)]))
    packages = [id_.partition("#")[0] for id_ in found(search, "a note")]
    assert sorted(packages[:2]) == ["did:nuwa:cap:letters", NOTE]
    assert packages[2:] == [NOTE, NOTE]
    assert len(found(search, "a note", limit=2)) == 2


def test_what_changes_in_the_catalogue_is_found_and_what_goes_is_not() -> None:
    shelf = Shelf(ENTRIES)
    search = Search(Catalog([shelf]))
    assert found(search, "rain") == ["mcp:weather#forecast"]
    shelf.put([*ENTRIES[:4], replace(ENTRIES[4], description="Says how windy it is")])
    assert (found(search, "rain"), found(search, "wind")) == ([], ["mcp:weather#forecast"])
    shelf.put(ENTRIES[:4])
    assert found(search, "wind") == []
    shelf.put([*ENTRIES, listed("did:nuwa:cap:letters", "Paints", "skill", version="2.0.0")])
    assert [hit.listed.ref.version for hit in search.find("paint", 5)] == ["2.0.0"]
    assert found(search, "rain") == ["mcp:weather#forecast"]


def test_what_is_said_of_parameters_finds_a_tool_and_its_package() -> None:
    search = Search(
        Catalog([Shelf([*ENTRIES, listed("mcp:post#send", "Sends", terms="postcode")])])
    )
    assert found(search, "which postcode") == ["mcp:post#send"]


def test_packages_that_a_node_has_found_come_first_and_say_why() -> None:
    search = Search(Catalog([Shelf(ENTRIES)]))
    first = {"did:nuwa:cap:letters": "meaning", "did:nuwa:cap:unknown": "meaning"}
    hits = search.find("rain", 5, first)
    assert [(x.listed.ref.capability_id, x.why) for x in hits] == [
        ("did:nuwa:cap:letters", "meaning"),
        ("mcp:weather#forecast", "rain"),
    ]
