"""Files of a skill as pages show them: texts in a frame, never run, and only with their hash."""

from __future__ import annotations

import gzip
import json
from html import unescape
from typing import Any
from urllib.parse import quote

import pytest

from capdex.ipld.cid import Cid
from capdex.net.ipfs.block_store import BlockDirectory, files_of
from capdex_explorer.pages.files import kind_of
from tests.explorer import hostile
from tests.explorer.conftest import Growing
from tests.explorer.http.test_answers import ask

FILES = "/c/folder/1.0.0/files"


def page(base: str, address: str) -> tuple[int, str]:
    """The status of a page and its text."""
    status, _, body = ask(base, address, Accept="text/html")
    return status, body.decode()


def lines_of(base: str, path: str) -> list[str]:
    """The lines of a file on all its pages."""
    found: list[str] = []
    address = f"{FILES}.json?path={quote(path)}"
    while address:
        data: Any = json.loads(ask(base, address, Accept="application/json")[2])
        found += data["lines"]
        address = (data["after"] or "").replace("/files?", "/files.json?")
    return found


def test_a_text_is_shown_escaped_in_the_frame_of_its_publisher(base: str) -> None:
    status, text = page(base, f"{FILES}?path=references/guide.md")
    assert status == 200
    frame = text.partition('<figure class="publisher">')[2].partition("</figure>")[0]
    assert "From the publisher." in frame
    assert "&lt;script&gt;alert(1)&lt;/script&gt; ⟨U+202E⟩" in frame
    assert "<script" not in frame
    assert 'href="javascript' not in text
    script = page(base, f"{FILES}?path=scripts/fill.py")[1]
    assert "may be run" in script
    assert "#!/usr/bin/env python3" in unescape(script)


def test_a_long_file_comes_in_light_pages_with_all_its_lines(base: str) -> None:
    path = next(x for x, data in hostile.FILES.items() if len(data) > 5000)
    assert "\n".join(lines_of(base, path)).encode() == hostile.FILES[path]
    address = f"{FILES}?path={quote(path)}"
    _, headers, body = ask(base, address, Accept="text/html", Accept_Encoding="gzip")
    assert headers["content-encoding"] == "gzip"
    assert len(body) < 20_000 < len(gzip.decompress(body))


def test_a_binary_file_is_named_as_what_it_is(base: str) -> None:
    text = page(base, f"{FILES}?path=assets/picture.png")[1]
    assert "By its bytes this is a PNG image, so it is not shown." in text
    assert 'class="lines"' not in text


def test_a_file_that_the_node_does_not_keep_is_named_with_the_command_that_gets_it(
    base: str,
) -> None:
    text = page(base, f"{FILES}?path={hostile.NOT_KEPT}")[1]
    assert "This node keeps no files of this package." in text
    assert "capdex get folder@1.0.0 --output folder/" in text
    assert hostile.FILES[hostile.NOT_KEPT].decode().strip() not in text


def test_bytes_with_another_hash_than_the_listed_one_are_not_shown(growing: Growing) -> None:
    growing.publish("skill", files={"a.md": b"as it was signed"})
    cid = Cid.of(b"as it was signed")
    kept = files_of(BlockDirectory(growing.blocks))
    address = "/c/skill/1.0.0/files?path=a.md"
    kept.write(b"as it was signed")
    assert "as it was signed" in page(growing.base, address)[1]
    (kept.path / cid.text[-2:] / cid.text).write_bytes(b"as it was forged")
    text = page(growing.base, address)[1]
    assert "as it was" not in text
    assert "This node keeps no files of this package." in text


@pytest.mark.parametrize("part", ["1.0.0", "1.0.0/tools", "versions", "history", "diff"])
def test_every_page_of_a_package_with_files_leads_to_them(part: str, base: str) -> None:
    assert f'<a href="{FILES}">Files ' in page(base, f"/c/folder/{part}")[1]


def test_files_that_a_release_does_not_list_have_no_page(base: str) -> None:
    for path in ("nothing.md", "../1.0.0", "references/../references/guide.md", " "):
        assert page(base, f"{FILES}?path={quote(path)}")[0] == 404
    assert page(base, "/c/city-weather/1.0.0/files")[0] == 200
    assert page(base, "/c/forged/1.0.0/files?path=a")[0] == 404


def test_a_table_of_many_files_goes_on_at_the_next_page(growing: Growing) -> None:
    names = [f"references/part-{number:03}.md" for number in range(130)]
    growing.publish("skill", files={name: name.encode() for name in names})
    overview = page(growing.base, "/c/skill")[1]
    assert "All 130 files" in overview
    assert overview.count("/files?path=") == 20
    seen: list[str] = []
    address = "/c/skill/1.0.0/files.json"
    while address:
        data: Any = json.loads(ask(growing.base, address, Accept="application/json")[2])
        seen += [x["path"] for x in data["rows"]]
        address = (data["after"] or "").replace("/files?", "/files.json?")
    assert seen == names


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"plain\n", None),
        ("caf\u00e9".encode(), None),
        (b"", None),
        (b"\x7fELF\x02\x00", "a program for Linux (ELF)"),
        (b"MZ\x90\x00", "a program for Windows"),
        (b"%PDF-1.7\xe2\xe3", "a PDF document"),
        (b"a\x00b", "not a text in UTF-8"),
        (b"MZ is a word, too", None),
        (b"\xff\xfeh\x00", "not a text in UTF-8"),
    ],
)
def test_a_file_is_what_its_bytes_say(data: bytes, kind: str | None) -> None:
    assert kind_of(data) == kind
