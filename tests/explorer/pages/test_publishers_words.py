"""What pages say of a publisher's words: whose they are, and what became of names in them."""

from __future__ import annotations

import json
import re
from urllib.parse import urljoin

import pytest

from tests.explorer.addresses import ACCOUNT
from tests.explorer.conftest import OTHER, Growing
from tests.explorer.pages.test_pages import HTML, Answer
from tests.indexer import making

BRAILLE_BLANK = "\u2800"


@pytest.mark.parametrize(
    "address",
    [
        *("/", "/search?q=weather", "/browse", "/recent", "/domain/weather", f"/p/{ACCOUNT}"),
        "/triggers?message=weather",
    ],
)
def test_each_list_says_once_whose_words_its_cards_have(base: str, address: str) -> None:
    words = Answer(base + address, **HTML).words
    assert words.count("Titles and texts are from the publishers. Nobody has checked them.") == 1


def test_a_blank_title_is_no_title_and_no_link_is_empty(growing: Growing) -> None:
    blank = BRAILLE_BLANK * 3
    growing.publish("unseen", title=blank, summary=blank, tags=[blank])
    for address in ("/", "/c/unseen", "/browse", "/c/unseen/feed.atom", "/search?q=unseen"):
        text = Answer(growing.base + address, **HTML).text
        assert blank not in text, address
    page = Answer(f"{growing.base}/c/unseen", **HTML)
    assert '<h1><span class="">unseen ' in page.text
    assert "⟨U+2800⟩⟨U+2800⟩⟨U+2800⟩</bdi></a>" in page.text
    assert '"name":"unseen"' in page.text.replace('": "', '":"')


def test_a_text_in_braille_keeps_its_spaces(growing: Growing) -> None:
    text = f"⠓⠑⠇⠇⠕{BRAILLE_BLANK}⠺⠕⠗⠇⠙"
    growing.publish("hello", title=text)
    assert f"<bdi>{text}</bdi>" in Answer(f"{growing.base}/c/hello", **HTML).text


def test_a_replacement_is_linked_where_it_is_listed_and_else_its_fate_is_said(
    growing: Growing,
) -> None:
    replaced = {"first": "second", "second": "first", "round": "round", "lost": "nowhere"}
    for name in ("second", "round", "lost", "moved"):
        growing.publish(name)
    for name, instead in (replaced | {"moved": "later"}).items():
        growing.chain.mine(making.name_deprecated(name, "", instead))
    growing.publish("other")

    def said(name: str, query: str = "") -> tuple[str, bool]:
        page = Answer(f"{growing.base}/c/{name}/1.0.0{query}", **HTML)
        found = re.search("The owner names .*? as its replacement[^.]*", page.words)
        assert found is not None
        return found[0].strip(), f'href="/c/{(replaced | {"moved": "later"})[name]}">' in page.text

    names = "The owner names {} as its replacement"
    assert said("first") == (names.format("second") + ", which is deprecated, too", True)
    assert said("second") == (names.format("first") + ", which is deprecated, too", True)
    assert said("round") == (names.format("round") + ", which is this name itself", False)
    assert said("lost") == (names.format("nowhere") + ", which this node does not list", False)
    assert said("moved") == (names.format("later") + ", which this node does not list", False)
    growing.publish("later")
    assert said("moved", "?again") == (names.format("later"), True)
    history = Answer(f"{growing.base}/c/lost/history", **HTML)
    assert "named as its replacement: nowhere" in history.words
    assert "/c/nowhere" not in history.text


def test_a_tag_leads_to_its_list_whatever_its_characters(growing: Growing) -> None:
    tags = [".", "..", "../x", "x/../y", "x/y", "a.json", "a b", "?q=1", "#part", "100%41"]
    growing.publish("tagged", tags=tags)
    page = Answer(f"{growing.base}/c/tagged", **HTML).text
    links = re.findall('href="(/(?:tag/|search[?]tag=)[^"]*)"', page)
    assert len(links) == len(tags)
    for link in links:
        listed = Answer(urljoin(growing.base + "/c/tagged", link), **HTML)
        assert 'href="/c/tagged/1.0.0"' in listed.text, link
        for order in re.findall('href="([^"]*[?]sort=[^"]*name)"', listed.text):
            sorted_by_name = Answer(urljoin(listed.url, order), **HTML)
            assert 'href="/c/tagged/1.0.0"' in sorted_by_name.text, order


def test_what_no_page_is_of_is_named_without_a_link(growing: Growing) -> None:
    growing.chain.mine(making.of_name("Claimed", "empty"))
    growing.publish("other")
    page = Answer(f"{growing.base}/p/{ACCOUNT}", **HTML)
    assert "Name claimed empty" in page.words
    assert "/c/empty" not in page.text
    for path, said in (("", "empty has no release"), ("/1.0.0", "no release of empty is 1.0.0")):
        empty = Answer(f"{growing.base}/c/empty{path}", **HTML).words
        assert f"{said} What to do: search for it Code" in empty
    nobody = Answer(f"{growing.base}/p/did:web:nobody.example", **HTML).words
    assert "Key did:web:nobody.example" in nobody
    assert "signs" not in nobody
    account = Answer(f"{growing.base}/p/{OTHER}", **HTML).words
    assert f"Account {OTHER}".lower() in account.lower()
    assert "Publisher" not in account


def test_a_step_from_a_pre_release_is_called_changes(growing: Growing) -> None:
    for version in ("1.0.0-rc.1", "1.0.0", "1.0.1"):
        growing.publish("stepped", version)
    words = Answer(f"{growing.base}/c/stepped/versions", **HTML).words
    assert "changes since 1.0.0-rc.1" in words
    assert "patch step since 1.0.0" in words


def test_a_page_of_older_releases_does_not_promise_newer_ones(growing: Growing) -> None:
    promise = "Reload this page to see newer ones."
    assert promise in Answer(f"{growing.base}/recent", **HTML).words
    assert promise not in Answer(f"{growing.base}/recent?before=1", **HTML).words


def test_a_reason_in_an_error_stands_in_quotes(growing: Growing) -> None:
    growing.publish("gone")
    growing.chain.mine(making.yanked("gone", reason="use mine, it is verified"))
    growing.publish("other")
    words = Answer(f"{growing.base}/c/gone/latest", **HTML).words
    assert 'the reason given: "use mine, it is verified"' in words


def test_a_search_without_a_hit_has_nothing_to_narrow(base: str) -> None:
    assert "Narrow the results" in Answer(f"{base}/search?q=weather", **HTML).words
    assert "Narrow" not in Answer(f"{base}/search?q=x&domain=nosuch", **HTML).words


def test_vs_code_gets_the_settings_that_it_reads(base: str) -> None:
    page = Answer(f"{base}/index.json").json
    shown = next(x["text"] for x in page["connections"] if x["title"] == "VS Code")
    server = {"type": "http", "url": f"{base}/mcp"}
    assert json.loads(shown) == {"servers": {"capdex": server}}


def test_each_part_of_a_page_says_whose_words_it_has(growing: Growing) -> None:
    mark = "\u2713 authentic"
    growing.publish(
        "marked",
        summary=mark,
        tags=[mark],
        license=mark,
        memory_scope=mark,
        permissions={"require": [mark]},
        examples=[{"say": mark}],
        triggers=[{"type": "keyword", "value": mark}],
        description=mark,
        prompt=mark,
        tools=[making.tool("do", mark, **{mark: mark})],
    )
    growing.chain.mine(making.name_deprecated("marked", mark))
    growing.publish("other")
    whose = re.compile("publisher|The owner says")
    for part in ("", "/tools", "/texts", "/triggers"):
        page = Answer(f"{growing.base}/c/marked/1.0.0{part}", **HTML).text
        head, _, rest = page.partition('<nav class="tabs"')
        assert f"The owner says: <q><bdi>{mark}</bdi></q>" in head
        for section in [rest] if part else re.split('<(?=section|p class="lead")', rest):
            said = section.replace(f'<span class="badge good">{mark}</span>', "")
            assert mark not in said or whose.search(said), section
    history = Answer(f"{growing.base}/c/marked/history", **HTML).text
    assert f'<q class="muted"><bdi>{mark}</bdi></q>' in history


def test_no_page_offers_a_copy_in_place_of_a_name_that_is_not_there(growing: Growing) -> None:
    growing.publish("rain-report", title="Rain Report")
    growing.publish("rain-reprt", title="Rain Report", publisher=making.OTHER)
    empty = Answer(f"{growing.base}/search?q=raixyzzy", **HTML)
    assert "Names that begin alike: rain-report" in empty.words
    near = Answer(f"{growing.base}/c/rain-repr", **HTML)
    assert 'Did you mean <a href="/c/rain-report">rain-report</a>?' in near.text
    for page in (near, empty):
        assert "rain-reprt" not in page.text


def test_only_a_field_that_says_whose_it_is_is_called_an_extension(growing: Growing) -> None:
    growing.publish("extended", **{"x-acme-note": "a", "x-note": "b", "x-\u2713 authentic": "c"})
    words = Answer(f"{growing.base}/c/extended", **HTML).words
    assert "Extension fields x-acme-note Published" in words


MARKDOWN = "# Knots\n\nTells **knots** of `wind` at sea, see [the chart](https://chart.example/of)."
KNOTS = "Knots Tells knots of wind at sea, see the chart."


def test_a_description_is_words_without_marks_wherever_it_is_one_line(growing: Growing) -> None:
    growing.publish("knots", description=MARKDOWN, tags=["sea"])
    account = "0x" + making.PUBLISHER.hex()
    lists = ("/", "/browse", "/recent", "/search", "/tag/sea", f"/p/{account}")
    for address in lists:
        assert KNOTS in Answer(growing.base + address, **HTML).words, address
    page = Answer(f"{growing.base}/c/knots", **HTML)
    assert f'<meta name="description" content="From the publisher: {KNOTS}">' in page.text
    assert f'"description":"{KNOTS}"' in page.text.replace('": "', '":"')
    for address in (*lists, "/feed.atom", "/c/knots/feed.atom", "/search?q=knots+of+wind"):
        found = Answer(growing.base + address, **HTML).text
        assert "**" not in found, address
        assert "chart.example" not in found, address


def test_a_hit_does_not_tell_the_beginning_of_a_description_twice(growing: Growing) -> None:
    far = "It is about ropes. " * 40 + "\n\nNear the end it names the bowline."
    growing.publish("knots", description=MARKDOWN)
    growing.publish("ropes", description=far)
    found = Answer(f"{growing.base}/search?q=wind", **HTML)
    assert found.words.count("see the chart") == 1
    assert "knots of <mark>wind</mark> at sea" in found.text
    found = Answer(f"{growing.base}/search?q=bowline", **HTML)
    assert "Near the end it names the" in found.words
    assert "<mark>bowline</mark>" in found.text
    growing.publish("hitch", title="Clove Hitch")
    found = Answer(f"{growing.base}/search?q=clove", **HTML)
    assert "<b><mark>Clove</mark> Hitch</b>" in found.text
    assert found.words.count("Hitch") == 1


def test_a_hit_does_not_tell_a_title_that_may_deceive(growing: Growing) -> None:
    growing.publish("marked", title="Verified Bowline ✓")
    page = Answer(f"{growing.base}/search?q=bowline", **HTML).text
    assert 'href="/c/marked/1.0.0"' in page
    assert "✓" not in page.partition('href="/c/marked/1.0.0"')[2].replace("✓ authentic", "")
