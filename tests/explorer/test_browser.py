"""The pages in a real browser: all sizes, both themes, with and without script."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

import pytest

from capdex_explorer.views.markdown import markdown
from tests.conftest import missing
from tests.explorer import hostile
from tests.explorer.addresses import PAGES
from tests.explorer.browser import Visit, find, launch, visit
from tests.explorer.conftest import Growing
from tests.indexer import making

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.real
CSS = files("capdex_explorer").joinpath("static", "app.css").read_text("utf-8")
WIDTHS = (320, 800, 1400)  # the first is that of a window at 400 %
MAX_SHIFT = 0.02  # the sum of what moved, in the measure of the Layout Instability API
NARROW = 1000  # two columns with hardly any margin: what leaves its column leaves the window
# How axe sees a page: in each theme once, folded and unfolded. Themes differ in colours alone, and
# between these widths a page is laid out as on one side or the other.
LOOKED_AT: tuple[tuple[int, Literal["light", "dark"]], ...] = ((360, "light"), (1400, "dark"))

_STRUCTURE = """() => {
  const seen = (one) => one.checkVisibility() && one.getBoundingClientRect().width > 0;
  const faults = [];
  const levels = [...document.querySelectorAll("h1,h2,h3,h4")].map((one) => +one.tagName[1]);
  levels.forEach((level, i) => {
    if (level > (levels[i - 1] ?? 0) + 1) faults.push(`h${level} after h${levels[i - 1] ?? 0}`);
  });
  if (levels.filter((level) => level === 1).length !== 1) faults.push("not one h1");
  if (document.documentElement.lang !== "en") faults.push("no language");
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  if (new Set(ids).size !== ids.length)
    faults.push(`ids twice: ${ids.filter((id, i) => ids.indexOf(id) !== i)}`);
  for (const one of document.querySelectorAll("input:not([type=hidden]),select,textarea"))
    if (!one.labels.length) faults.push(`no label: ${one.id}`);
  const buttons = [...document.querySelectorAll("button")];
  const names = buttons.map((one) => one.ariaLabel ?? one.innerText);
  if (new Set(names).size !== names.length)
    faults.push(`buttons twice: ${names.filter((name, i) => names.indexOf(name) !== i)}`);
  for (const one of document.querySelectorAll("[tabindex]"))
    if (one.tabIndex > 0) faults.push(`tab order set by hand: ${one.outerHTML.slice(0, 80)}`);
  for (const one of document.querySelectorAll("*")) {
    for (const { name } of one.attributes)
      if (name.startsWith("on") || name === "style") faults.push(`${name} on ${one.tagName}`);
  }
  for (const one of document.scripts)
    if (one.type !== "application/ld+json" && !one.src.startsWith(`${location.origin}/static/`))
      faults.push(`a script of its own: ${one.outerHTML.slice(0, 80)}`);
  for (const one of document.images)
    if (!one.src.startsWith(location.origin)) faults.push(`an image of others: ${one.src}`);
  const rtl = /[\\u0590-\\u08ff\\ufb1d-\\ufdff\\ufe70-\\ufefc]/;
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const parent = texts.currentNode.parentElement;
    if (parent.closest("script, textarea") || !rtl.test(texts.currentNode.data)) continue;
    let around = parent;
    while (around && !/isolate|plaintext/.test(getComputedStyle(around).unicodeBidi))
      around = around.parentElement;
    if (!around) faults.push(`not isolated: ${parent.outerHTML.slice(0, 120)}`);
  }
  return faults;
}"""

# Where the first column is, on the whole page and on one of which the rest has not come.
_COLUMN = """() => {
  const [first, ...later] = document.querySelector(".facets, .columns").children;
  const place = () => [first.getBoundingClientRect().x, first.getBoundingClientRect().width];
  const whole = place();
  later.forEach((one) => one.remove());
  return [whole, place()];
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = find()
    if program is None:
        missing("Chromium", "make chromium")
    with launch(program) as found:
        yield found


@pytest.fixture(scope="module")
def window(browser: Browser, base: str) -> Iterator[Visit]:
    """A window that tests go on with, as a new one takes longer than most pages."""
    with visit(browser, base) as seen:
        yield seen


@pytest.fixture(scope="module")
def window_without_script(browser: Browser, base: str) -> Iterator[Visit]:
    with visit(browser, base, script=False) as seen:
        yield seen


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_sound_at_every_size_and_in_both_themes(window: Visit, name: str) -> None:
    window.faults.clear()
    for width, scheme in LOOKED_AT:
        window.page.emulate_media(color_scheme=scheme)
        window.page.set_viewport_size({"width": width, "height": 900})
        window.go(PAGES[name])
        assert window.shift() <= MAX_SHIFT, f"it moves while it loads at {width} px"
        assert window.axe() == [], f"{width} px, {scheme}"
    assert window.page.evaluate(_STRUCTURE) == []
    for width in WIDTHS:
        window.page.set_viewport_size({"width": width, "height": 900})
        assert window.overflow() <= 0, f"{width} px"
    assert window.faults == []


@pytest.mark.parametrize("name", ["search", "hostile-search", "browse", "package"])
def test_a_column_has_its_place_before_the_other_one_has_come(window: Visit, name: str) -> None:
    window.page.set_viewport_size({"width": 1400, "height": 900})
    window.go(PAGES[name])
    whole, alone = window.page.evaluate(_COLUMN)
    assert whole == alone


@pytest.mark.parametrize("name", PAGES)
def test_a_page_works_without_script(window_without_script: Visit, name: str) -> None:
    seen = window_without_script
    seen.faults.clear()
    seen.page.set_viewport_size({"width": WIDTHS[0], "height": 900})
    seen.go(PAGES[name])
    for width in (*WIDTHS, NARROW):
        seen.page.set_viewport_size({"width": width, "height": 900})
        assert seen.overflow() <= 0, f"{width} px"
    assert seen.page.locator("h1").is_visible()
    assert seen.page.locator("button[hidden]:visible").count() == 0
    assert seen.faults == []


@pytest.mark.parametrize("number", range(11))
def test_hostile_text_is_inert_on_every_page_of_its_package(
    browser: Browser, base: str, number: int
) -> None:
    name = f"naughty-{number}"
    assert len(list(hostile.packages())) == 11  # all of them are looked at
    with visit(browser, base) as seen:
        for part in ("", "/tools", "/texts", "/bytes", "/triggers", "/checks"):
            seen.go(f"/c/{name}/1.0.0{part}")
            assert seen.page.locator("summary.good").count() == 1, part  # its texts are shown
            _look(seen, f"{name}{part}")
        seen.go(f"/c/{name}/history")
        _look(seen, f"{name} history")
        assert seen.faults == []


def _look(seen: Visit, what: str) -> None:
    """Nothing of a page is wider than the window, runs, or reorders the text around it."""
    assert seen.page.evaluate(_STRUCTURE) == [], what
    for width in (WIDTHS[0], WIDTHS[-1]):
        seen.page.set_viewport_size({"width": width, "height": 900})
        assert seen.overflow() <= 0, f"{what} at {width} px"


def test_results_appear_while_a_person_types(browser: Browser, base: str) -> None:
    with visit(browser, base) as seen:
        seen.go("/search")
        seen.page.locator("#q").press_sequentially("air quality")
        seen.page.locator("#results mark", has_text="quality").first.wait_for()
        assert seen.page.locator("#results h2 a").first.inner_text() == "city-weather"
        assert seen.page.locator("#q").evaluate("one => one === document.activeElement")
        assert seen.page.url.endswith("/search?q=air+quality")
        seen.page.locator("#q").fill("xyzzyqq")
        seen.page.get_by_text("Nothing was found").wait_for()
        assert seen.faults == []


def test_traps_are_inert_on_a_phone(browser: Browser, base: str) -> None:
    traps = [*hostile.MARKS, *hostile.DESCRIPTIONS, *hostile.COPIES, "trap-prompt"]
    assert len(traps) >= 24
    with visit(browser, base, width=WIDTHS[0]) as seen:
        for name in traps:
            for part in ("", "/1.0.0/texts"):
                seen.go(f"/c/{name}{part}")
                assert seen.page.evaluate(_STRUCTURE) == [], name
                assert seen.overflow() <= 0, name
        assert seen.faults == []


def test_lists_to_narrow_results_are_folded_below_them_on_a_phone(
    browser: Browser, base: str
) -> None:
    with visit(browser, base, width=WIDTHS[0], script=False) as seen:
        seen.go("/search?q=weather")
        fold = seen.page.locator("summary", has_text="Narrow the results")
        last = seen.page.locator(".card").last.bounding_box()
        box = fold.bounding_box()
        assert last is not None
        assert box is not None
        assert box["y"] > last["y"] + last["height"]
        assert not seen.page.locator(".narrow a").first.is_visible()
        fold.click()
        assert seen.page.locator(".narrow a").first.is_visible()
        seen.page.set_viewport_size({"width": WIDTHS[-1], "height": 900})
        seen.go("/search?q=weather")
        assert not fold.is_visible()
        assert seen.page.locator(".narrow a").first.is_visible()


def test_a_chosen_theme_is_there_before_the_first_paint(browser: Browser, base: str) -> None:
    with visit(browser, base) as seen:
        seen.go("/")
        seen.page.get_by_role("button", name="Dark").click()
        seen.page.route("**/app.js", lambda route: route.abort())
        seen.page.goto(f"{base}/browse")
        assert seen.page.evaluate("document.documentElement.dataset.theme") == "dark"


def _weather(seen: Visit) -> None:
    page = seen.page
    seen.follow(page.get_by_role("link", name="what is the weather in Oslo tomorrow"))
    seen.follow(page.locator(".card h2 a", has_text="city-weather"))


def test_five_tasks_take_three_clicks_at_most_from_the_start_page(
    browser: Browser, base: str
) -> None:
    with visit(browser, base, script=False) as seen:
        page = seen.page
        seen.go("/")  # find a weather tool, and connect it to Cursor
        _weather(seen)
        link = page.get_by_role("link", name="Add this node to Cursor").get_attribute("href")
        assert link is not None
        assert link.startswith("cursor://")
        assert page.locator(".picker pre:visible").inner_text().startswith("capdex add-to cursor")
        seen.go("/")  # what it may do, and what is new
        page.locator("#q").fill("forecast")
        seen.follow(page.get_by_role("button", name="Search"))
        seen.follow(page.locator(".card h2 a", has_text=re.compile("^forecast$")))
        told = page.locator("section[aria-labelledby=may]").inner_text()
        assert "New since 1.0.0: +1 host, +1 permission" in told
        assert "other.example.net" in told
        seen.go("/")  # tell the copy from the original
        page.locator("#q").fill("city weather")
        seen.follow(page.get_by_role("button", name="Search"))
        names = page.locator(".card h2").all_inner_texts()
        assert names.index("city-weather") < names.index("city-weathr")
        assert page.get_by_text("like the older name city-weather of another owner").is_visible()
        seen.go("/")  # prove it
        _weather(seen)
        seen.follow(page.get_by_role("link", name="Prove it now").first)
        assert page.get_by_text("Not proven:").is_visible()  # this reader has no endpoint
        seen.go("/")  # what a publisher has
        seen.follow(page.get_by_role("link", name="what is the weather in Oslo tomorrow"))
        seen.follow(page.locator(".card", has_text="city-weather").first.locator("a[href^='/p/']"))
        assert "Publisher of " in page.locator("h1").inner_text()
        assert page.locator(".card").count() > 20


def test_rights_stand_on_the_first_screens_of_a_phone(browser: Browser, base: str) -> None:
    with visit(browser, base, width=360) as seen:
        for name in ("city-weather", "forecast", "naughty-0"):
            seen.go(f"/c/{name}")
            assert seen.page.locator("#may").bounding_box()["y"] < 2 * 640  # type: ignore[index]


def test_marks_of_versions_are_on_the_screen_of_a_phone(browser: Browser, base: str) -> None:
    with visit(browser, base, width=360) as seen:
        for address in ("/c/forecast", "/c/forecast/versions"):
            seen.go(address)
            table = seen.page.locator(".scroll", has_text="What a reader should know")
            assert table.evaluate("(x) => x.scrollWidth - x.clientWidth") <= 0


def test_rights_of_a_package_with_many_hosts_stand_together(
    browser: Browser, growing: Growing
) -> None:
    names = [f"do_{i}" for i in range(40)]
    own: dict[str, Any] = {f"x-acme-field-{i}": 1 for i in range(40)}
    growing.publish(
        "many",
        tools=[making.tool(x, "It does something. " * 9) for x in names],
        bindings={
            x: {
                "type": "http_get",
                "url": f"https://{x.replace('_', '-')}.a-long-name.example.org/",
                "auth": {"type": "bearer", "secret": f"TOKEN_{i}"},
            }
            for i, x in enumerate(names)
        },
        description="| column " * 150 + "\n" + "|---" * 150,
        permissions={"require": [f"right.{i}" for i in range(40)]},
        prompt="Do it.\n" * 3000,
        **own,
    )
    with visit(browser, growing.base, width=360) as seen:
        seen.go("/c/many")
        assert seen.page.locator("#may ~ dl").bounding_box()["height"] < 2 * 640  # type: ignore[index]
        assert seen.page.get_by_text("and 32 more").count() == 4
        assert seen.page.locator(".prose th").first.bounding_box()["height"] < 50  # type: ignore[index]
        assert seen.axe() == []
        seen.page.get_by_text("and 32 more").first.click()
        assert seen.page.get_by_text("do-39.a-long-name.example.org").first.is_visible()
        seen.go("/c/many/1.0.0/bytes")
        assert seen.page.locator("nav.pager").count() == 2
        assert seen.axe() == []


def test_a_host_is_picked_without_script(browser: Browser, base: str) -> None:
    with visit(browser, base, script=False) as seen:
        seen.go("/c/city-weather")
        assert seen.page.locator(".picker pre:visible").count() == 1
        seen.page.get_by_text("Codex", exact=True).click()
        assert (
            seen.page.locator(".picker pre:visible").inner_text().startswith("capdex add-to codex")
        )


def test_a_search_goes_on_without_script(browser: Browser, base: str) -> None:
    with visit(browser, base, script=False) as seen:
        seen.go("/")
        seen.page.locator("#q").fill("weather")
        seen.follow(seen.page.get_by_role("button", name="Search"))
        seen.follow(seen.page.locator(".narrow a", has_text="weather").first)
        assert "domain=weather" in seen.page.url
        seen.follow(seen.page.locator("#results h2 a").first)
        assert seen.page.url.endswith("/c/city-weather/1.0.0")


def test_a_keyboard_alone_leads_from_search_to_a_copied_hash(browser: Browser, base: str) -> None:
    with visit(browser, base) as seen:
        page = seen.page
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        seen.go("/")
        page.keyboard.press("Tab")
        assert page.locator(":focus").inner_text() == "Skip to the content"
        assert page.locator(":focus").bounding_box()["x"] >= 0  # type: ignore[index]
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        page.keyboard.type("air quality")
        page.keyboard.press("Enter")
        page.wait_for_url("**/search?*")
        page.locator("#results h2 a").first.focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/c/city-weather/1.0.0")
        page.locator(".evidence > summary").focus()
        page.keyboard.press("Enter")
        _tab_to(page, "Copy the sha256")
        page.keyboard.press("Enter")
        page.get_by_text("Copied.").wait_for(state="attached")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert len(copied) == 64
        assert page.locator(":focus").inner_text() == "Copied"
        assert f'data-copy="{copied}"' in page.content()
        assert seen.faults == []


def _tab_to(page: Any, label: str) -> None:
    """Press Tab until the button with this label has the focus; each stop must be seen."""
    for _ in range(120):
        page.keyboard.press("Tab")
        stop = page.locator(":focus")
        outline = stop.evaluate("one => getComputedStyle(one).outlineStyle")
        assert outline != "none", stop.evaluate("one => one.outerHTML")
        if stop.get_attribute("aria-label") == label:
            return
    pytest.fail(f"the button {label!r} has no place in the tab order")


def test_what_is_no_word_of_a_text_is_24_pixels_high(browser: Browser, base: str) -> None:
    with visit(browser, base) as seen:
        for address in ("/", "/c/forecast/1.1.0", "/c/city-weathr", "/search?q=weather", "/browse"):
            seen.go(address)
            low = seen.page.evaluate(
                """() => [...document.querySelectorAll("a,button,summary")].filter((one) =>
                  one.checkVisibility() && getComputedStyle(one).display !== "inline" &&
                  one.offsetHeight < 24 && one.offsetWidth > 1).map((one) => one.outerHTML)"""
            )
            assert low == [], address


def test_without_script_no_place_is_kept_for_what_needs_one(browser: Browser, base: str) -> None:
    with visit(browser, base, script=False) as seen:
        seen.go("/c/city-weather")
        assert seen.page.locator(".copy").first.bounding_box() is None
        assert seen.page.locator("#theme").bounding_box() is None


def test_no_name_covers_the_verdict_on_its_badge(browser: Browser, growing: Growing) -> None:
    with visit(browser, growing.base) as seen:
        for name in ("m" * 60, "i" * 60, "city-weather"):
            growing.publish(name)
            seen.go(f"/c/{name}/badge.svg")
            ends = seen.page.evaluate(
                """() => [...document.querySelectorAll("text")].map((one) =>
                  [one.getBBox().x, one.getBBox().x + one.getBBox().width])"""
            )
            assert ends[0][1] < ends[1][0], name
            assert ends[1][1] < seen.page.evaluate("document.documentElement.width.baseVal.value")


def test_a_long_badge_keeps_its_shape(browser: Browser, base: str) -> None:
    with visit(browser, base, script=False) as seen:
        seen.go("/c/forecast")
        assert (
            seen.page.locator("#embed ~ p img").evaluate("x => getComputedStyle(x).objectFit")
            == "contain"
        )


def test_a_page_has_one_way_to_its_proof_at_a_time(browser: Browser, base: str) -> None:
    with visit(browser, base, script=False) as seen:
        for name in ("city-weather", "forged"):  # folded evidence, and open evidence
            seen.go(f"/c/{name}")
            assert seen.page.get_by_role("link", name="Prove it now").count() == 1, name
        seen.go("/c/city-weather")
        seen.page.locator(".evidence > summary").click()
        assert seen.page.get_by_role("link", name="Prove it now").count() == 1


def test_the_badge_opens_the_checks_behind_it(browser: Browser, base: str) -> None:
    with visit(browser, base, script=False) as seen:
        seen.go("/c/city-weather")
        assert not seen.page.get_by_text("What it does not mean.").is_visible()
        seen.page.locator("summary", has_text="authentic").click()
        assert seen.page.get_by_text("What it does not mean.").is_visible()
        assert seen.page.locator(".checks li.held").count() == 7


def test_each_paragraph_of_a_text_has_the_direction_of_its_words(browser: Browser) -> None:
    text = "API\n\nשלום עולם\n\n* שלום\n* Hello\n\n```\n# שלום\n```\n"
    page = browser.new_page(viewport={"width": 360, "height": 640})
    page.set_content(f'<style>{CSS}</style><div class="prose" dir="auto">{markdown(text)}</div>')
    from_left = page.evaluate("""() => [...document.querySelectorAll("p, li, code")].map((one) => {
      const range = document.createRange();
      range.selectNodeContents(one);
      return range.getBoundingClientRect().left < 100;
    })""")
    assert from_left == [True, False, False, True, True]
    page.close()


def test_a_text_that_is_shown_as_it_was_written_keeps_its_indents(
    browser: Browser, base: str
) -> None:
    with visit(browser, base) as seen:
        seen.go("/c/trap-indented")
        assert "- x\n    - y" in seen.page.locator(".as-written").inner_text()


def test_the_open_part_of_a_package_alone_is_underlined_in_forced_colours(
    browser: Browser, base: str
) -> None:
    with visit(browser, base) as seen:
        seen.page.emulate_media(forced_colors="active")
        seen.go("/c/city-weather")
        underlined = """all => all
            .filter((x) => parseFloat(getComputedStyle(x).borderBottomWidth) > 0)
            .map((x) => x.innerText)"""
        assert seen.page.locator(".tabs a").evaluate_all(underlined) == ["Overview"]


def test_the_theme_is_kept_for_the_next_page(browser: Browser, base: str) -> None:
    with visit(browser, base) as seen:
        seen.go("/")
        paper = "getComputedStyle(document.body).backgroundColor"
        light = seen.page.evaluate(paper)
        seen.page.get_by_role("button", name="Dark").click()
        assert seen.page.evaluate(paper) != light
        seen.go("/browse")
        assert seen.page.evaluate(paper) != light


def test_a_dropped_file_is_checked(browser: Browser, base: str) -> None:
    with visit(browser, base) as seen:
        seen.go("/try")
        seen.page.evaluate(
            """() => {
              const moved = new DataTransfer();
              moved.items.add(new File(["metadata: 1\\n"], "tea.acp.yaml"));
              document.querySelector("[data-drop]").dispatchEvent(
                new DragEvent("drop", { dataTransfer: moved, bubbles: true, cancelable: true }));
            }"""
        )
        seen.page.get_by_text("Not valid.").wait_for()
        seen.page.locator("textarea").fill("metadata:\n  id: x\n")
        seen.page.get_by_role("button", name="Check", exact=True).click()
        seen.page.get_by_role("link", name="BAD_ID").first.wait_for()
        for scheme in ("light", "dark"):
            seen.page.emulate_media(color_scheme=scheme)
            assert seen.axe() == []
        assert seen.faults == []


def test_a_new_release_appears_by_itself(browser: Browser, growing: Growing) -> None:
    with visit(browser, growing.base) as seen:
        seen.go("/recent")
        seen.page.get_by_text("New releases appear by themselves.").wait_for()
        assert seen.page.locator(".card h2").all_inner_texts() == ["first"]
        growing.publish("second")
        seen.page.locator(".card h2", has_text="second").wait_for()
        assert seen.page.locator(".card h2").all_inner_texts() == ["second", "first"]
        assert seen.faults == []


def test_a_page_prints_its_content_alone(browser: Browser, base: str) -> None:
    with visit(browser, base) as seen:
        seen.go("/c/city-weather/1.0.0/checks")
        seen.page.emulate_media(media="print")
        assert not seen.page.locator(".top nav").is_visible()
        assert not seen.page.locator(".copy").first.is_visible()
        assert seen.page.get_by_text("sha256sum").is_visible()
        size = "x => parseFloat(getComputedStyle(x).fontSize)"
        small, text = seen.page.locator(".small").first, seen.page.locator("main p").last
        assert small.evaluate(size) < text.evaluate(size)
        seen.page.evaluate("document.documentElement.dataset.theme = 'dark'")
        paper = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == "rgb(255, 255, 255)"
