"""How pages are answered: kept, compressed, asked for again, and refused."""

from __future__ import annotations

import gzip
import hashlib
import http.client
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from starlette.requests import Request

from capdex.errors import InvalidInput
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.problems import Verdict
from capdex.search.encoder import SentenceEncoder
from capdex_cli.node.explorer import build_explorer
from capdex_explorer.http.page_cache import MAX_STALE_S, PageCache
from capdex_explorer.http.rendered import weight
from capdex_explorer.http.routes import PAGES
from capdex_explorer.samples import DAY, HOUR, Samples, read_sample
from capdex_explorer.site import PageRequest
from capdex_indexer.http.status import Surface
from capdex_indexer.monitoring.health import Health
from capdex_indexer.query.index import Index
from capdex_service.http.parameters import MAX_PARAMETERS
from capdex_service.queries.reader import Reader
from tests.explorer.conftest import Growing, Served

Reply = tuple[int, dict[str, str], bytes]


def ask(base: str, path: str, method: str = "GET", body: bytes = b"", **headers: str) -> Reply:
    """A request whose headers are written with `_` for `-`; status, headers and body."""
    connection = http.client.HTTPConnection(urlsplit(base).netloc)
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    connection.request(method, path, body or None, named)
    reply = connection.getresponse()
    found = reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read()
    connection.close()
    return found


def test_a_page_that_the_browser_has_is_not_sent_again(base: str) -> None:
    status, headers, body = ask(base, "/c/city-weather", Accept="text/html")
    assert (status, headers["cache-control"]) == (200, "no-cache")
    again = ask(base, "/c/city-weather", Accept="text/html", If_None_Match=headers["etag"])
    assert (again[0], again[2]) == (304, b"")
    assert again[1]["etag"] == headers["etag"]
    other = ask(base, "/c/city-weather", Accept="text/html", If_None_Match='W/"other"')
    assert (other[0], other[2]) == (200, body)


def test_a_page_is_made_anew_when_the_index_changes(growing: Growing) -> None:
    page = "/c/first/versions"
    _, headers, _ = ask(growing.base, page, Accept="text/html")
    growing.publish("first", "1.1.0")
    status, fresh, body = ask(growing.base, page, Accept="text/html", If_None_Match=headers["etag"])
    assert status == 200
    assert fresh["etag"] != headers["etag"]
    assert b"1.1.0" in body


async def test_a_search_by_words_is_made_anew_once_meaning_has_come(growing: Growing) -> None:
    index, encoder, now = Index(growing.url), SentenceEncoder(), 0.0
    with closing(index), closing(Reader(index, serve=frozenset({Verdict.VERIFIED}))) as reader:
        explorer = build_explorer(reader, Surface(index, BlockDirectory(growing.blocks), Health()))
        explorer.answers.cache = PageCache(clock=lambda: now)
        search = explorer.answers.endpoint(PAGES["/search"])
        scope = {"type": "http", "method": "GET", "scheme": "http", "server": ("127.0.0.1", 80)}
        asked = {
            "path": "/search",
            "query_string": b"q=first",
            "headers": [(b"accept", b"text/html")],
        }

        async def page() -> str:
            return bytes((await search(Request(scope | asked))).body).decode()

        index.live.encoder = encoder
        assert "in words." in await page()
        while index.live.encode(index.read, encoder, lambda: False):
            pass
        now = MAX_STALE_S
        assert "in words and in meaning." in await page()


def test_the_files_of_a_package_are_a_table_with_hash_and_size(growing: Growing) -> None:
    files = {"scripts/fill.py": b"print()\n", "a&b.md": b"A" * 3000}
    growing.publish("filled", files=files)
    _, _, body = ask(growing.base, "/c/filled", Accept="text/html")
    table = body.decode().partition('<h2 id="files">')[2].partition("</section>")[0]
    assert "2 files, 3.0 kB, on IPFS" in table
    assert [hashlib.sha256(x).hexdigest() in table for x in files.values()] == [True, True]
    assert table.count("may be run") == 1
    assert "a&amp;b.md" in table
    _, _, bare = ask(growing.base, "/c/first", Accept="text/html")
    assert b'id="files"' not in bare


def test_compression_is_for_those_who_take_it(base: str) -> None:
    plain = ask(base, "/c/city-weather", Accept="text/html")
    packed = ask(base, "/c/city-weather", Accept="text/html", Accept_Encoding="br, gzip")
    refused = ask(base, "/c/city-weather", Accept="text/html", Accept_Encoding="gzip;q=0")
    assert "content-encoding" not in plain[1] | refused[1]
    assert packed[1]["content-encoding"] == "gzip"
    assert gzip.decompress(packed[2]) == plain[2] == refused[2]
    assert packed[1]["etag"] == plain[1]["etag"]
    assert "Accept-Encoding" in packed[1]["vary"]


def test_a_head_has_the_headers_of_the_page(base: str) -> None:
    status, headers, body = ask(base, "/c/city-weather", "HEAD", Accept="text/html")
    assert (status, body) == (200, b"")
    assert int(headers["content-length"]) > 1000


def test_what_is_of_this_moment_is_not_stored(base: str) -> None:
    for page in ("/node", "/c/city-weather?proof", "/no/such/page"):
        assert ask(base, page, Accept="text/html")[1]["cache-control"] == "no-store"


def test_static_files_are_kept_for_ever_by_their_content(base: str) -> None:
    page = ask(base, "/", Accept="text/html")[2].decode()
    address = page.partition('rel="stylesheet" href="')[2].partition('"')[0]
    status, headers, _ = ask(base, address)
    assert (status, headers["content-type"]) == (200, "text/css; charset=utf-8")
    assert "immutable" in headers["cache-control"]
    name = address.rpartition("/")[2]
    for wrong in (f"/static/000000000000/{name}", "/static/../site.py", "/static/%2e%2e/site.py"):
        assert ask(base, wrong)[0] == 404
    assert ask(base, "/favicon.ico")[1]["location"].endswith("icon.svg")


def test_errors_are_pages_for_browsers_and_problems_for_programs(base: str) -> None:
    for path in ("/c/no-such-name", "/nothing", "/c/Bad_Name/1.0.0", "/c/note/zz"):
        browser = ask(base, path, Accept="text/html,*/*;q=0.8")
        assert (browser[0], browser[1]["content-type"]) == (404, "text/html; charset=utf-8")
        assert b"NOT_FOUND" in browser[2]
        program = ask(base, path, Accept="application/json")
        assert (program[0], program[1]["content-type"]) == (404, "application/problem+json")
    assert ask(base, "/search?limit=1&cursor=x", Accept="text/html")[0] == 400
    assert ask(base, "/search?q=a%00b", Accept="text/html")[0] == 400
    assert ask(base, "/c/unit-converter/versions?page=0", Accept="text/html")[0] == 400


def test_forms_of_other_sites_are_refused(base: str) -> None:
    form: dict[str, str] = {"Content_Type": "application/x-www-form-urlencoded"}
    body = b"package=metadata%3A"
    assert ask(base, "/try", "POST", body, Origin="https://evil.example", **form)[0] == 403
    assert ask(base, "/try", "POST", body, Origin=base, **form)[0] == 200
    assert ask(base, "/", "POST", body, **form)[0] == 405
    broken = {"Content_Type": "multipart/form-data; boundary=x"}
    assert ask(base, "/try", "POST", b"--x\r\nno header", **broken)[0] in (200, 400)


def test_a_mounted_node_keeps_its_other_routes(base: str) -> None:
    assert ask(base, "/status")[1]["content-type"] == "application/json"
    assert ask(base, "/v1/resolve?uri=did:nuwa:cap:city-weather")[0] == 200
    assert ask(base, "/c/city-weather.json")[1]["content-type"] == "application/json"
    assert ask(base, "/index/root.json", Accept="text/html")[0] in (200, 404)


@pytest.fixture
def bare(growing: Growing, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a node without pages over the same index."""
    from tests.explorer import conftest

    monkeypatch.setattr(conftest, "build_explorer", lambda *_: None)
    with Served(growing.url, growing.blocks, frozenset()) as found:
        yield found


def test_a_node_without_pages_answers_a_name_in_json(bare: str) -> None:
    assert ask(bare, "/c/first", Accept="text/html")[1]["content-type"] == "application/json"
    assert ask(bare, "/", Accept="text/html")[0] == 404


def test_a_query_is_read_within_its_bounds() -> None:
    asked = PageRequest.read("/search", {}, b"q=+a+b+&tag=x&tag=&tag=y&n=12", "http://node")
    assert (asked.text("q"), asked.text("none", "d")) == ("a b", "d")
    assert asked.values("tag") == ("x", "y")
    assert (asked.number("n", 1), asked.number("none", 7)) == (12, 7)
    assert asked.address(tag=None, q="c d") == "/search?n=12&q=c+d"
    for query in (b"&".join([b"a=1"] * (MAX_PARAMETERS + 1)), b"a=%00", b"a=%ff"):
        with pytest.raises(InvalidInput):
            PageRequest.read("/", {}, query, "")
    for number in (b"n=0", b"n=-1", b"n=x", b"n=9999999999999999"):
        with pytest.raises(InvalidInput):
            PageRequest.read("/", {}, number, "").number("n", 1)


@pytest.mark.parametrize(
    ("header", "kind", "weighed"),
    [
        ("text/html,application/xml;q=0.9", "text/html", 1.0),
        ("application/json", "text/html", 0.0),
        ("gzip;q=0", "gzip", 0.0),
        ("br, GZIP;q=0.5", "gzip", 0.5),
        ("", "gzip", 0.0),
        ("text/html;level=1; q=.2", "text/html", 0.2),
        ("text/html;q=x", "text/html", 1.0),
    ],
)
def test_a_kind_has_the_weight_that_the_header_gives_it(
    header: str, kind: str, weighed: float
) -> None:
    assert weight(header, kind) == weighed


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("text/html;q=0.1, application/json", "application/json"),
        ("application/json;q=0.9, text/html", "text/html; charset=utf-8"),
        ("application/json, text/html", "text/html; charset=utf-8"),
    ],
)
def test_a_page_comes_in_the_form_that_its_reader_prefers(
    base: str, accept: str, media_type: str
) -> None:
    assert ask(base, "/c/city-weather", Accept=accept)[1]["content-type"] == media_type
    problem = media_type.replace("/json", "/problem+json")
    for path in ("/c/no-such-name", "/nothing"):
        assert ask(base, path, Accept=accept)[1]["content-type"] == problem


def test_samples_of_an_hour_are_fine_and_of_a_day_coarse() -> None:
    samples = Samples()
    status = {
        "lag_seconds": 1.5,
        "releases": {"total": 9, "by_availability": {"pending": 2, "parked": 1, "available": 6}},
        "reorgs": {"1": 1, "2-12": 2},
        "chain": {"block_number": 7},
        "index_digest": "0xaa",
    }
    one = read_sample(status, 100.0)
    assert tuple(one) == (100.0, 1.5, 9, 3, 3)
    assert tuple(read_sample({}, 1.0)) == (1.0, None, 0, 0, 0)
    for count in range(20 * (DAY + 5)):
        samples.add(one, count)
    assert (len(samples.hour), len(samples.day)) == (HOUR, DAY)
    samples.note(status)
    samples.note(status | {"index_digest": "0xbb"})
    samples.note({"chain": {"block_number": None}, "index_digest": None})
    assert samples.digests == {7: "0xbb"}


def test_every_template_is_used_and_every_page_has_one() -> None:
    root = Path(__file__).resolve().parents[3] / "capdex_explorer"
    code = "".join(path.read_text("utf-8") for path in root.rglob("*.py"))
    texts = "".join(path.read_text("utf-8") for path in (root / "templates").iterdir())
    for path in (root / "templates").iterdir():
        assert f'"{path.name}"' in code + texts, path.name
