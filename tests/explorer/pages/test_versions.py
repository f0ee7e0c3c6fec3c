"""Versions of a name, how their rights grew, what differs, and long histories, page by page."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import urljoin
from xml.etree import ElementTree

import pytest
from sqlalchemy import Engine, event

from capdex.diff.semver_step import Rule
from capdex_explorer.pages.growth import _NOUNS
from capdex_explorer.pages.versions import EVENTS
from tests.explorer.addresses import ACCOUNT
from tests.explorer.conftest import Growing
from tests.explorer.http.test_answers import ask
from tests.indexer import making

MORE: dict[str, Any] = {"permissions": {"require": ["state.query"]}}


def page(base: str, address: str) -> str:
    return ask(base, address, Accept="text/html")[2].decode()


def pages(base: str, address: str, more: str) -> list[str]:
    """A page and those that its link `more` leads to, one after the other."""
    found = [page(base, address)]
    while next_one := re.search(f'href="([^"]*)">{more}', found[-1]):
        found.append(page(base, urljoin(address, unescape(next_one[1]))))
    return found


@pytest.mark.parametrize("part", ["", "/versions", "/history", "/1.0.0/checks"])
def test_a_page_of_a_package_is_of_one_state_of_the_index(growing: Growing, part: str) -> None:
    page(growing.base, "/recent")  # the node looks at what changed
    begun: list[object] = []
    note = begun.append
    event.listen(Engine, "begin", note)
    try:
        assert "first" in page(growing.base, f"/c/first{part}")
    finally:
        event.remove(Engine, "begin", note)
    assert len(begun) == 1


def test_every_kind_of_growth_has_words() -> None:
    assert {rule.section for rule in Rule if rule.risk} == set(_NOUNS)


def test_a_new_script_is_growth(growing: Growing) -> None:
    growing.publish("skill", "1.0.0", files={"a.md": b"# A\n"})
    growing.publish("skill", "1.1.0", files={"a.md": b"# A\n", "run.sh": b"#!/bin/sh\n"})
    assert "New since 1.0.0:</b> +1 file that may be run." in page(growing.base, "/c/skill")
    said = "asks for more than 1.0.0: +1 file that may be run"
    assert said in page(growing.base, "/c/skill/versions")


def test_growth_is_told_from_the_version_before_that_is_not_yanked(growing: Growing) -> None:
    growing.publish("note", "1.0.0")
    growing.publish("note", "1.1.0", **MORE)
    growing.publish("note", "1.1.1", **MORE)
    growing.chain.mine(making.yanked("note", "1.1.0"))
    making.follow(growing.store, growing.chain)
    assert "New since 1.0.0:</b> +1 permission." in page(growing.base, "/c/note")


def test_a_release_by_another_account_or_author_is_marked_as_such(growing: Growing) -> None:
    growing.publish("note", "1.0.0")
    growing.publish("note", "1.1.0", publisher=making.OTHER)
    growing.publish("note", "1.2.0", publisher=making.OTHER, key=making.OTHER_KEY)
    said = re.findall("by another [a-z ]+ than [0-9.]+", page(growing.base, "/c/note/versions"))
    newest = "by another author than 1.1.0"  # once above the table
    assert said == [newest, newest, "by another account than 1.0.0"]
    assert "by another author than 1.1.0" in page(growing.base, "/search?q=note")
    assert "New since" not in page(growing.base, "/c/note")


def test_a_name_whose_releases_are_all_yanked_has_no_latest_version(growing: Growing) -> None:
    for version in ("1.0.0", "1.1.0"):
        growing.publish("note", version)
    assert "see the latest version" in page(growing.base, "/c/note/1.0.0")
    growing.chain.mine(*(making.yanked("note", x) for x in ("1.0.0", "1.1.0")))
    making.follow(growing.store, growing.chain)
    for address in ("/c/note", "/c/note/1.0.0"):
        assert "latest version" not in page(growing.base, address)
    assert "Did you mean" not in page(growing.base, "/c/note/latest")


def test_a_transfer_is_shown_as_one_from_the_former_owner(growing: Growing) -> None:
    growing.publish("note")
    growing.chain.mine(making.of_name("Transferred", address="0x" + "ab" * 20))
    making.follow(growing.store, growing.chain)
    for address in ("/c/note/history", f"/block/{growing.chain.head.number}"):
        assert "<br>from <a" in page(growing.base, address)


def test_a_page_beyond_the_last_one_says_so_or_is_the_last_one(growing: Growing) -> None:
    tools = [making.tool(f"do_{i}") for i in range(3)]
    growing.publish("note", tools=tools, files={"a.md": b"# A\n", "b.md": b"# B\n"})
    assert ask(growing.base, "/c/note/versions?page=2", Accept="text/html")[0] == 404
    assert "do_2" in page(growing.base, "/c/note/1.0.0/tools?from=99")
    assert "b.md" in page(growing.base, "/c/note/1.0.0/files?from=99")


def test_an_empty_list_says_what_it_is_of(growing: Growing) -> None:
    assert "There are no older releases." in page(growing.base, "/recent?before=1")
    assert "</q> with these filters, in words" in page(growing.base, "/search?q=first&domain=art")


def test_a_comparison_shows_the_versions_that_it_compares(growing: Growing) -> None:
    text = "x" * 600
    for i in range(101):
        growing.chain.mine(growing.chain.release("note", f"1.{i}.0", prompt=f"{text} {i}"))
    growing.publish("note", "1.200.0", prompt=f"{text} last")
    shown = page(growing.base, "/c/note/diff?old=1.0.0&new=1.200.0")
    assert re.findall("<option selected>(.*)</option>", shown) == ["1.0.0", "1.200.0"]


def test_the_last_version_of_a_page_has_its_step_too(growing: Growing) -> None:
    releases = [growing.chain.release("note", f"1.{i}.0") for i in range(100)]
    growing.chain.mine(*releases)
    growing.publish("note", "1.100.0")
    shown = "".join(pages(growing.base, "/c/note/versions", "Lower versions"))
    assert re.findall("minor step since ([0-9.]+)", shown) == [
        f"1.{i}.0" for i in range(99, -1, -1)
    ]


def test_only_versions_that_this_node_serves_are_offered_for_comparison(growing: Growing) -> None:
    growing.publish("note", "1.0.0")
    growing.publish("note", "1.1.0", homepage="no address")
    growing.publish("note", "1.2.0")
    links = re.findall(r'href="([^"]*/diff[?][^"]*)"', page(growing.base, "/c/note/versions"))
    assert [unescape(x) for x in links] == ["/c/note/diff?old=1.0.0&new=1.2.0"]
    for one in ("/c/note/diff", unescape(links[0])):
        shown = page(growing.base, one)
        assert re.findall("<option(?: selected)?>(.*)</option>", shown)[:2] == ["1.2.0", "1.0.0"]
    assert '<a aria-hidden="true"></a><code dir="auto">@@' in shown


def test_an_entry_of_a_feed_is_as_new_as_its_deprecation(growing: Growing) -> None:
    def updated() -> list[str]:
        address = f"/c/note/feed.atom?{growing.chain.head.number}"  # none that is kept
        return re.findall("<updated>(.*?)</updated>", page(growing.base, address))

    for version in ("1.0.0", "1.1.0"):
        growing.publish("note", version)
    feed, newer, older = updated()
    assert feed == newer > older
    growing.chain.mine(making.deprecated("note", "1.0.0", "Use 1.1.0."))
    making.follow(growing.store, growing.chain)
    feed, same, changed = updated()
    assert (same, feed) == (newer, changed)
    assert changed > newer
    growing.chain.mine(making.name_deprecated("note", "It ends."))
    making.follow(growing.store, growing.chain)
    assert len(set(updated())) == 1
    assert updated()[0] > changed


def test_only_a_name_of_several_versions_promises_that_they_differ(growing: Growing) -> None:
    assert "How each version differs" not in page(growing.base, "/c/first")
    growing.publish("first", "1.0.1")
    assert "How each version differs" in page(growing.base, "/c/first")


def test_a_link_to_a_tool_leads_to_the_page_that_has_it(growing: Growing) -> None:
    many = {f"field_{i}": "A field." for i in range(50)}
    growing.publish("note", tools=[making.tool(f"do_{i}", "Does.", **many) for i in range(9)])
    links = re.findall(
        r'href="(/c/note/1.0.0/tools[^"]*)#(tool-do_\d)"', page(growing.base, "/c/note")
    )
    assert [anchor for _, anchor in links] == [f"tool-do_{i}" for i in range(9)]
    for address, anchor in links:
        assert f'id="{anchor}"' in page(growing.base, unescape(address)), anchor
    assert '<a href="/c/note/1.0.0/tools">← First tools</a>' in page(growing.base, links[-1][0])


def test_the_first_page_lists_what_a_tool_takes_and_not_what_its_lists_hold(
    growing: Growing,
) -> None:
    tool = making.tool("find", "Finds.", **{"ids[]": "Of things."})
    days = {"type": "array", "items": {"enum": ["mon", "tue"]}}
    tool["parameters"]["properties"]["days"] = days
    growing.publish("note", tools=[tool])
    shown = unescape(page(growing.base, "/c/note"))
    assert re.findall('<bdi class="mono">([^<]+)</bdi> \\(', shown) == ['"ids[]"', "days"]


def test_the_page_of_tools_says_of_each_what_it_may_do(growing: Growing) -> None:
    tools = [making.tool("look"), making.tool("wipe")]
    kinds = {"look": "http_get", "wipe": "http_post"}
    urls = {name: {"type": x, "url": "https://api.acme.dev/"} for name, x in kinds.items()}
    growing.publish("note", tools=tools, bindings=urls)
    for address in ("/c/note", "/c/note/1.0.0/tools"):
        marks = re.findall(
            "(may change or delete|said to only read)</span>", page(growing.base, address)
        )
        assert marks == ["said to only read", "may change or delete"], address


def test_a_line_that_is_cut_in_a_comparison_says_so(growing: Growing) -> None:
    for version in ("1.0.0", "1.0.1"):
        growing.publish("note", version, prompt=f"{'x' * 600}{version}")
    shown = page(growing.base, "/c/note/diff?old=1.0.0&new=1.0.1")
    assert shown.count("x… (cut: capdex diff shows all)") == 2


def test_no_event_of_a_full_block_is_left_out(growing: Growing) -> None:
    releases = [growing.chain.release("note", f"1.{i}.0") for i in range(130)]
    block = growing.chain.mine(*releases).number
    growing.publish("note", "2.0.0")
    account = "0x" + making.PUBLISHER.hex()
    for address, more, events in (
        ("/c/note/history", "Older events", 131),
        (f"/p/{account}", "Older events", 132),  # with that of the node's first release
        (f"/block/{block}", "More events", 130),
    ):
        text = "".join(pages(growing.base, address, more))
        seen = re.findall(r", event (\d+)<br>", text)
        assert len(seen) == len(set(seen)) == events, address


def test_older_events_keep_the_order_of_names_and_lead_back(base: str) -> None:
    address, words = f"/p/{ACCOUNT}?sort=name", ("Older events", "Newest events")
    text = page(base, address)
    assert text.count(", event ") == EVENTS
    older, newest = (re.compile(f'href="([^"]+)">[← ]*{x}') for x in words)
    assert newest.search(text) is None
    link = older.search(text)
    assert link is not None
    text = page(base, link[1].replace("&amp;", "&"))
    assert re.search('aria-current="page">By name', text)
    back = newest.search(text)
    assert back is not None
    assert back[1] == address
    assert "There are no earlier events." in page(base, "/c/city-weather/history?before=1")


def test_the_text_of_a_badge_has_its_marks(growing: Growing) -> None:
    growing.publish("gone")
    growing.chain.mine(making.yanked("gone"))
    making.follow(growing.store, growing.chain)
    assert 'alt="gone: authentic, yanked"' in page(growing.base, "/c/gone/1.0.0")
    assert 'alt="first: authentic"' in page(growing.base, "/c/first")


def test_the_badge_of_any_address_is_an_image(growing: Growing) -> None:
    growing.publish("gone")
    growing.chain.mine(making.yanked("gone"))
    making.follow(growing.store, growing.chain)
    for address, said in (
        ("/c/gone/latest/badge.svg", "gone: ✓ authentic 1.0.0, yanked"),
        ("/c/gone/%5E1/badge.svg", "gone: ? missing not found"),
        ("/c/none/latest/badge.svg", "none: ? missing not found"),
        ("/c/a%01b/badge.svg", "a⟨U+0001⟩b: ? missing not found"),
        ("/c/a%EF%BF%BEb/badge.svg", "a⟨U+FFFE⟩b: ? missing not found"),
        ("/c/a%E2%80%AEb/badge.svg", "a⟨U+202E⟩b: ? missing not found"),
    ):
        status, _, body = ask(growing.base, address, Accept="image/*")
        title = ElementTree.fromstring(body).findtext("{http://www.w3.org/2000/svg}title")  # noqa: S314
        assert (status, title) == (200, said)


def test_a_tool_has_no_address_of_a_part_of_the_page(growing: Growing) -> None:
    growing.publish("note", tools=[making.tool(x) for x in ("said", "main", "theme", "top-q")])
    ids = re.findall(r' id="([^"]*)"', page(growing.base, "/c/note/1.0.0/tools"))
    assert sorted(ids) == sorted(set(ids))
    assert 'href="/c/note/1.0.0/tools#tool-said"' in page(growing.base, "/c/note")


def test_a_tool_that_asks_any_agent_says_so_among_the_contacts(growing: Growing) -> None:
    tool = {
        "name": "ask",
        "parameters": {"type": "object", "properties": {"who": {"type": "string"}}},
    }
    agent = {"type": "nuwa_a2a", "target_did": "{who}", "service_method": "tell"}
    growing.publish("note", tools=[tool], bindings={"ask": agent})
    for address in ("/c/note", "/c/note/1.0.0/tools"):
        assert "whichever party a call names ({who})" in page(growing.base, address)


def test_a_tool_names_the_secrets_that_it_sends_and_in_what(growing: Growing) -> None:
    sent = {"type": "header", "name": "X-Key", "secret": "WEATHER"}
    binding = {"type": "http_get", "url": "https://api.example.org/", "auth": sent}
    growing.publish("note", tools=[making.tool("look")], bindings={"look": binding})
    shown = page(growing.base, "/c/note/1.0.0/tools")
    assert 'WEATHER</bdi> as <bdi class="mono">X-Key</bdi>' in shown
