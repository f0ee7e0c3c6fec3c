"""The trustless gateway over a real HTTP server: blocks, CARs, and what it refuses."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers, QueryParams

from capdex.encoding.multiformats import read_varint
from capdex.errors import InvalidInput, Unavailable
from capdex.ipld.car import read_car, write_car
from capdex.ipld.cid import Cid
from capdex.ipld.unixfs import walk
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.net.ipfs.gateway import Gateway
from capdex.net.ipfs.multi_source import MultiSource
from capdex_indexer.http.gateway import BlockFormat, ByteRange, read_request
from capdex_indexer.http.status import Surface
from capdex_indexer.monitoring.health import Health
from capdex_indexer.query.index import Index

CARS = Path(__file__).parents[2] / "vectors" / "car" / "gateway-conformance"
PACKAGE = b"metadata: {}\n"
RAW_TYPE, CAR_TYPE = "application/vnd.ipld.raw", "application/vnd.ipld.car"
ACCEPT_RAW = {"Accept": RAW_TYPE}
# Of the fixtures: 1026 bytes in four leaves of 256 and one of 2; three leaves of dag-pb with the
# middle one missing.
FILE = "bafybeigcisqd7m5nf3qmuvjdbakl5bdnh4ocrmacaqkpuh77qjvggmt2sa"
GAPPY = "QmYhmPjhFjYFyaoiuNzYv8WGavpSRDwdHWe5B4M5du5Rtk"


@pytest.fixture
def database_url(tmp_path: Path) -> str:
    """SQLite alone: what the routes read is tested on both databases where it is made."""
    return f"sqlite:///{tmp_path / 'index.db'}"


@pytest.fixture
def surface(search_index: Index, block_directory: BlockDirectory) -> Surface:
    return Surface(search_index, block_directory, Health())


@pytest.fixture
async def node(surface: Surface, serving: Any) -> AsyncIterator[Any]:
    async with serving.serve(surface) as node:
        yield node


def sections(car: bytes) -> list[tuple[str, bytes]]:
    """The blocks of a CAR, as they stand."""
    size, at = read_varint(car, 0)
    at += size
    found = []
    while at < len(car):
        size, at = read_varint(car, at)
        section = car[at : at + size]
        cid_bytes = 34 if section[:2] == b"\x12\x20" else 36
        found.append((str(Cid.from_bytes(section[:cid_bytes])), section[cid_bytes:]))
        at += size
    return found


def keep(blocks: BlockDirectory, name: str) -> None:
    """Keep the blocks of a fixture that a package could be made of."""
    [path] = CARS.glob(f"*{name}.car")
    for text, block in sections(path.read_bytes()):
        blocks.keep(Cid.parse(text), block)


# raw blocks -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "headers"),
    [
        ("?format=raw", {}),
        ("?format=raw", {"Accept": "text/html"}),  # the query goes first
        ("", ACCEPT_RAW),
        ("", {"Accept": "text/html, Application/VND.ipld.raw;q=0.5, */*"}),
    ],
)
async def test_a_block_is_served_raw_and_inert(
    node: Any, query: str, headers: dict[str, str]
) -> None:
    cid = node.surface.blocks.write(PACKAGE)
    answer = await node(f"/ipfs/{cid}{query}", **headers)
    assert (answer.status, answer.body) == (200, PACKAGE)
    sent = {key.lower(): value for key, value in answer.headers.items()}
    # A URL that does not say the form by itself is told the one that does.
    assert sent.pop("content-location", None) == (None if query else f"/ipfs/{cid}?format=raw")
    assert sent.pop("vary", None) == (None if query else "Accept")
    assert {x: sent[x] for x in sent.keys() - {"date", "server"}} == {
        "content-type": RAW_TYPE,
        "content-length": str(len(PACKAGE)),
        "content-disposition": f'attachment; filename="{cid}.bin"',
        "content-security-policy": "sandbox; default-src 'none'",
        "cache-control": "public, max-age=29030400, immutable",
        "etag": f'"{cid}.raw"',
        "accept-ranges": "none",
        "x-ipfs-path": f"/ipfs/{cid}",
        "x-ipfs-roots": str(cid),
    }


@pytest.mark.parametrize("template", ["{}", "W/{}", '"other", {}', '"x" ,W/{} , "y"', "*"])
async def test_a_block_the_client_has_is_not_sent_again(node: Any, template: str) -> None:
    cid = node.surface.blocks.write(PACKAGE)
    condition = template.format(f'"{cid}.raw"')
    answer = await node(f"/ipfs/{cid}?format=raw", If_None_Match=condition)
    assert (answer.status, answer.body) == (304, b"")
    assert answer.headers["ETag"] == f'"{cid}.raw"'
    assert "immutable" in answer.headers["Cache-Control"]


@pytest.mark.parametrize("template", ["{}x", '"{}"', '"other"', "", ","])
async def test_a_block_under_another_tag_is_sent(node: Any, template: str) -> None:
    cid = node.surface.blocks.write(PACKAGE)
    answer = await node(f"/ipfs/{cid}?format=raw", If_None_Match=template.format(cid))
    assert (answer.status, answer.body) == (200, PACKAGE)


async def test_a_tag_confirms_no_block_that_is_not_held(node: Any) -> None:
    assert (await node(f"/ipfs/{Cid.of(b'x')}?format=raw", If_None_Match="*")).status == 404


@pytest.mark.parametrize(
    ("query", "accept"),
    [
        ("", "*/*"),
        ("", "text/html"),
        ("", f"{RAW_TYPE}est"),
        ("", f"{RAW_TYPE};q=0"),
        ("", f"{RAW_TYPE};q=some"),
        ("", f"{CAR_TYPE};version=2"),
        ("", f"{CAR_TYPE};order=rnd"),
        ("?format=", RAW_TYPE),
        ("?format=RAW", "*/*"),
        ("?format=tar", "*/*"),
        ("?format=ipns-record", "*/*"),
        ("?format=car&car-version=2", "*/*"),
        ("?format=car&car-order=bfs", "*/*"),
        ("?format=car&car-dups=maybe", "*/*"),
    ],
)
def test_forms_that_cannot_be_verified_are_not_acceptable(query: str, accept: str) -> None:
    assert read_request(QueryParams(query.removeprefix("?")), Headers({"accept": accept})) is None


async def test_a_package_is_never_shown_as_a_page(node: Any) -> None:
    cid = node.surface.blocks.write(PACKAGE)
    answer = await node(f"/ipfs/{cid}", Accept="text/html, */*;q=0.8")
    assert answer.status == 406
    assert PACKAGE not in answer.body


@pytest.mark.parametrize(
    "spell",
    [
        str.upper,
        lambda text: text + "a",
        lambda text: text[:-1],
        lambda _: "x",
        lambda _: "..x",
        lambda _: "b" * 5000,
        lambda _: "%00",
        lambda _: "%F0%9F%92%A9",
        lambda _: "bafkqabtbmjrwizlg",  # an identity hash with bytes in it
    ],
)
async def test_what_is_no_cid_is_refused(node: Any, spell: Any) -> None:
    cid = node.surface.blocks.write(PACKAGE)
    answer = await node(f"/ipfs/{spell(str(cid))}?format=raw")
    assert answer.status == 400
    assert PACKAGE not in answer.body


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/ipfs/", 404),
        ("/ipfs/{}/metadata?format=raw", 400),
        ("/ipfs/{}/metadata?format=car", 404),
        ("/ipfs/{}/..?format=car", 404),
        ("/ipfs/%2e%2e%2f{}?format=raw", 400),
    ],
)
async def test_paths_below_a_block_lead_nowhere(node: Any, path: str, status: int) -> None:
    cid = node.surface.blocks.write(PACKAGE)
    answer = await node(path.format(cid))
    assert answer.status == status
    assert PACKAGE not in answer.body


async def test_a_slash_behind_a_cid_is_no_path(node: Any) -> None:
    cid = node.surface.blocks.write(PACKAGE)
    assert (await node(f"/ipfs/{cid}/?format=raw")).body == PACKAGE


@pytest.mark.parametrize(
    "cid",
    [
        "QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG",
        "bafybeie5nqv6kd3qnfjupgvz34woh3oksc3iau6abmyajn7qvtf6d2ho34",
        Cid.of(b"nobody has this").text,
    ],
    ids=["CIDv0", "dag-pb", "raw"],
)
async def test_blocks_that_are_not_held_are_not_found(node: Any, cid: str) -> None:
    assert (await node(f"/ipfs/{cid}?format=raw")).status == 404


async def test_a_directory_node_is_never_answered_with_a_raw_block_of_its_digest(
    node: Any,
) -> None:
    node.surface.blocks.write(PACKAGE)
    digest = hashlib.sha256(PACKAGE).digest()
    for codec in (b"\x01\x70", b"\x01\x71"):  # dag-pb, dag-cbor
        other = "b" + _base32(codec + b"\x12\x20" + digest)
        assert (await node(f"/ipfs/{other}?format=raw")).status in (400, 404)


async def test_head_tells_the_headers_and_sends_no_body(node: Any) -> None:
    cid = node.surface.blocks.write(PACKAGE)
    get = await node(f"/ipfs/{cid}?format=raw")
    head = await node(f"/ipfs/{cid}?format=raw", method="HEAD")
    assert (head.status, head.body) == (200, b"")
    names = get.headers.keys() - {"date"}
    assert {x: head.headers[x] for x in names} == {x: get.headers[x] for x in names}


@pytest.mark.parametrize("damage", [b"", b"metadata: {x}\n", PACKAGE[:-1], PACKAGE + b"\n"])
async def test_a_block_damaged_on_disk_is_absent_and_never_served_wrong(
    node: Any, damage: bytes
) -> None:
    cid = node.surface.blocks.write(PACKAGE)
    [file] = [x for x in node.surface.blocks.path.rglob("*") if x.name == str(cid)]
    file.write_bytes(damage)
    answer = await node(f"/ipfs/{cid}?format=raw")
    assert answer.status == 404
    node.surface.blocks.write(PACKAGE)
    assert (await node(f"/ipfs/{cid}?format=raw")).body == PACKAGE


async def test_our_own_gateway_client_fetches_from_a_node(node: Any) -> None:
    cid = node.surface.blocks.write(PACKAGE)
    gateway = Gateway(node.url)
    try:
        assert await gateway.get(cid) == PACKAGE
        with pytest.raises(Unavailable):
            await gateway.get(Cid.of(b"something else"))
    finally:
        await gateway.close()


@pytest.mark.parametrize("query", ["", "?filename=x"])
async def test_whoever_says_no_form_at_all_is_told_to(node: Any, query: str) -> None:
    cid = node.surface.blocks.write(PACKAGE)
    answer = await node(f"/ipfs/{cid}{query}")
    assert answer.status == 400
    assert b"format" in answer.body


async def test_a_client_that_wants_only_what_is_at_hand_hears_412(node: Any) -> None:
    absent, cid = Cid.of(b"x"), node.surface.blocks.write(PACKAGE)
    only = {"Cache_Control": "only-if-cached"}
    assert (await node(f"/ipfs/{absent}?format=raw", **only)).status == 412
    assert (await node(f"/ipfs/{absent}?format=car", method="HEAD", **only)).status == 412
    assert (await node(f"/ipfs/{cid}?format=raw", **only)).status == 200


async def test_no_package_becomes_a_service_worker(node: Any) -> None:
    cid = node.surface.blocks.write(PACKAGE)
    assert (await node(f"/ipfs/{cid}?format=raw", Service_Worker="script")).status == 400


@pytest.mark.parametrize("path", ["/ipfs/x", f"/ipfs/{Cid.of(b'')}?format=raw", "/ipfs/x/y"])
async def test_what_is_refused_may_be_had_later_and_is_not_cached(node: Any, path: str) -> None:
    answer = await node(path)
    assert answer.status in (400, 404)
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("filename", "said"),
    [
        ("hello.yaml", 'attachment; filename="hello.yaml"'),
        (
            "test%D1%82.pdf",
            "attachment; filename=\"test_.pdf\"; filename*=UTF-8''test%D1%82.pdf",
        ),
        ("a%0D%0ASet-Cookie:%20x=1", 'attachment; filename="a__Set-Cookie: x=1"'),
        ("%22;%20filename=x", 'attachment; filename="_; filename=x"'),
        ("..%2F..%5Cetc", 'attachment; filename=".._.._etc"'),
        ("", 'attachment; filename="{}.bin"'),
    ],
)
async def test_a_file_name_is_said_so_that_it_can_do_nothing_else(
    node: Any, filename: str, said: str
) -> None:
    cid = node.surface.blocks.write(PACKAGE)
    answer = await node(f"/ipfs/{cid}?format=raw&filename={filename}")
    assert answer.headers["Content-Disposition"] == said.format(cid)
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_the_probe_finds_a_trustless_gateway(node: Any, method: str) -> None:
    answer = await node("/ipfs/bafkqaaa?format=raw", method=method)
    assert (answer.status, answer.body) == (200, b"")
    answer = await node("/ipfs/bafkqaaa", method=method, Accept=CAR_TYPE)
    assert answer.status == 200
    if method == "GET":
        assert answer.body == write_car(bytes.fromhex("01550000"), [])


async def test_another_node_reads_a_file_of_several_blocks_from_this_one(node: Any) -> None:
    keep(node.surface.blocks, "dir-with-duplicate-files")
    async with Gateway(node.url) as gateway:
        data = (await MultiSource([gateway]).file(Cid.parse(FILE))).data
    assert len(data) == 1026
    assert data.startswith(b"Lorem ipsum")


# CARs -----------------------------------------------------------------------------------------


async def test_a_car_of_a_package_holds_its_one_block(node: Any) -> None:
    cid = node.surface.blocks.write(PACKAGE)
    answer = await node(f"/ipfs/{cid}?format=car")
    assert answer.status == 200
    assert read_car(answer.body, cid) == PACKAGE
    assert answer.headers["Content-Type"] == f"{CAR_TYPE}; version=1; order=dfs; dups=n"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{cid}.car"'
    assert answer.headers["Cache-Control"] == "public, max-age=29030400, immutable"
    assert answer.headers["X-Ipfs-Roots"] == str(cid)


async def test_a_file_of_several_blocks_is_given_whole_and_in_order(node: Any) -> None:
    keep(node.surface.blocks, "dir-with-duplicate-files")
    root = Cid.parse(FILE)
    car = (await node(f"/ipfs/{FILE}?format=car")).body
    assert len(read_car(car, root)) == 1026
    assert sections(car) == [(str(x), y) for x, y in walk(root, node.surface.blocks.read)]
    assert (await node(f"/ipfs/{FILE}?format=car&dag-scope=entity")).body == car
    [only] = sections((await node(f"/ipfs/{FILE}?format=car&dag-scope=block")).body)
    assert only == (FILE, (await node(f"/ipfs/{FILE}?format=raw")).body)


@pytest.mark.parametrize(
    ("span", "leaves"),
    [
        ("0:*", 5),
        ("0:0", 1),
        ("0:255", 1),
        ("255:256", 2),
        ("256:511", 1),
        ("-2:*", 1),
        ("-3:*", 2),
        ("-5000:*", 5),
        ("1024:999999", 1),
        ("1024:9223372036854775807", 1),  # as far as 64 bits count
        ("-9223372036854775808:*", 5),
        ("9223372036854775807:0", 0),
        ("0:-1000", 1),
        ("512:-514", 1),
        ("512:-515", 0),  # no byte at all: as dag-scope=block
        ("9:3", 0),
        ("0:-5000", 0),
    ],
)
async def test_a_range_comes_with_the_blocks_that_verify_it(
    node: Any, span: str, leaves: int
) -> None:
    keep(node.surface.blocks, "dir-with-duplicate-files")
    answer = await node(f"/ipfs/{FILE}?format=car&entity-bytes={span}")
    assert answer.status == 200
    assert len(sections(answer.body)) == 1 + leaves


@pytest.mark.parametrize("span", ["1026:*", "5000:6000"])
async def test_a_range_past_the_end_is_refused(node: Any, span: str) -> None:
    keep(node.surface.blocks, "dir-with-duplicate-files")
    assert (await node(f"/ipfs/{FILE}?format=car&entity-bytes={span}")).status == 400
    cid = node.surface.blocks.write(b"short")
    assert (await node(f"/ipfs/{cid}?format=car&entity-bytes={span}")).status == 400
    assert (await node(f"/ipfs/{cid}?format=raw&entity-bytes={span}")).status == 200  # not for raw


@pytest.mark.parametrize(
    "query",
    [
        *("entity-bytes=", "entity-bytes=1", "entity-bytes=*:1", "entity-bytes=1:2:3"),
        *("entity-bytes=a:b", "entity-bytes=1:%2B2", "entity-bytes=%D9%A1:2", "dag-scope=tree"),
        *("dag-scope=", "entity-bytes=1:" + "9" * 40),
    ],
)
def test_parameters_that_cannot_be_are_refused(query: str) -> None:
    with pytest.raises(InvalidInput):
        read_request(QueryParams(f"format=car&{query}"), Headers({}))


async def test_blocks_that_are_there_are_given_though_another_is_missing(node: Any) -> None:
    keep(node.surface.blocks, "file-3k-and-3-blocks-missing-block")
    for query, blocks in (("dag-scope=block", 1), ("entity-bytes=0:1023", 2)):
        answer = await node(f"/ipfs/{GAPPY}?format=car&{query}")
        assert (answer.status, len(sections(answer.body))) == (200, blocks)
    last = await node(f"/ipfs/{GAPPY}?format=car&entity-bytes=2048:*")
    assert len(sections(last.body)) == 2
    for query in ("", "&entity-bytes=1024:*", "&entity-bytes=0:1024"):
        assert (await node(f"/ipfs/{GAPPY}?format=car{query}")).status == 404


async def test_a_block_that_repeats_is_sent_again_to_those_who_keep_none(node: Any) -> None:
    leaf = b"again"
    link = b"\x0a\x24" + Cid.of(leaf).to_bytes()
    inner = b"\x08\x02\x18\x0a\x20\x05\x20\x05"
    block = (b"\x12" + bytes([len(link)]) + link) * 2 + b"\x0a" + bytes([len(inner)]) + inner
    root = Cid.from_bytes(b"\x01\x70\x12\x20" + hashlib.sha256(block).digest())
    node.surface.blocks.keep(root, block)
    node.surface.blocks.write(leaf)
    once = await node(f"/ipfs/{root}?format=car")
    twice = await node(f"/ipfs/{root}?format=car&car-dups=y")
    asked_by_type = await node(f"/ipfs/{root}", Accept=f"{CAR_TYPE};dups=y")
    assert [len(sections(x.body)) for x in (once, twice)] == [2, 3]
    assert once.headers["Content-Type"].endswith("dups=n")
    assert twice.headers["Content-Type"].endswith("dups=y")
    assert asked_by_type.body == twice.body
    assert asked_by_type.headers["Content-Location"] == f"/ipfs/{root}?format=car&car-dups=y"
    assert read_car(once.body, root) == read_car(twice.body, root) == leaf * 2
    assert len({once.headers["ETag"], twice.headers["ETag"]}) == 2


async def test_what_the_url_alone_does_not_decide_is_not_given_to_all_by_a_cache(node: Any) -> None:
    cid = node.surface.blocks.write(PACKAGE)
    raw, car = [await node(f"/ipfs/{cid}", Accept=x) for x in (RAW_TYPE, CAR_TYPE)]
    assert raw.body != car.body
    assert [x.headers.get("Vary") for x in (raw, car)] == ["Accept", "Accept"]
    same = await node(f"/ipfs/{cid}", Accept=CAR_TYPE, **{"If-None-Match": car.headers["ETag"]})
    assert (same.status, same.headers.get("Vary")) == (304, "Accept")
    for form in ("raw", "car"):  # for every client one entry in the cache
        said = await node(f"/ipfs/{cid}?format={form}", Accept="text/html")
        assert "Vary" not in said.headers


async def test_each_car_has_a_tag_of_its_own_and_is_not_sent_again(node: Any) -> None:
    keep(node.surface.blocks, "dir-with-duplicate-files")
    queries = ["", "&dag-scope=block", "&dag-scope=entity", "&entity-bytes=0:5", "&car-dups=y"]
    answers = [await node(f"/ipfs/{FILE}?format=car{query}") for query in queries]
    tags = [answer.headers["ETag"] for answer in answers]
    assert len(set(tags)) == len(queries)
    assert not any(tag.startswith("W/") for tag in tags)  # one request, one answer, byte for byte
    for query, tag in zip(queries, tags, strict=True):
        answer = await node(f"/ipfs/{FILE}?format=car{query}", If_None_Match=f"W/{tag}")
        assert (answer.status, answer.body) == (304, b"")
        assert answer.headers["ETag"] == tag


async def test_a_car_can_be_asked_for_by_head(node: Any) -> None:
    keep(node.surface.blocks, "dir-with-duplicate-files")
    get = await node(f"/ipfs/{FILE}?format=car")
    head = await node(f"/ipfs/{FILE}?format=car", method="HEAD")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["Content-Length"] == str(len(get.body))
    assert head.headers["ETag"] == get.headers["ETag"]


@pytest.mark.parametrize(
    ("query", "accept", "form", "elsewhere"),
    [
        ("format=raw", None, BlockFormat.RAW, None),
        ("format=raw", RAW_TYPE, BlockFormat.RAW, None),
        ("format=raw", CAR_TYPE, BlockFormat.RAW, "format=raw"),
        ("format=raw", "text/html", BlockFormat.RAW, None),
        ("", f"{CAR_TYPE};q=0.1, {RAW_TYPE};q=0.2", BlockFormat.RAW, "format=raw"),
        ("", f"{RAW_TYPE};q=0.1, {CAR_TYPE}", BlockFormat.CAR, "format=car"),
        ("", f"{CAR_TYPE};order=x, {CAR_TYPE};q=0.5", BlockFormat.CAR, "format=car"),
        (
            "",
            f"{CAR_TYPE}; order=dfs; dups=n",
            BlockFormat.CAR,
            "format=car&car-order=dfs&car-dups=n",
        ),
        ("format=car", f"{CAR_TYPE};dups=y", BlockFormat.CAR, "format=car&car-dups=y"),
        ("format=car&car-dups=n", f"{CAR_TYPE};dups=y", BlockFormat.CAR, None),
        ("dag-scope=block", CAR_TYPE, BlockFormat.CAR, "format=car&dag-scope=block"),
        ("x=%0D%0A&filename=%0D%0A", RAW_TYPE, BlockFormat.RAW, "format=raw&filename=%0D%0A"),
    ],
)
def test_what_is_asked_for_is_read_from_url_and_header(
    query: str, accept: str | None, form: BlockFormat, elsewhere: str | None
) -> None:
    headers = Headers({} if accept is None else {"accept": accept})
    wanted = read_request(QueryParams(query), headers)
    assert wanted is not None
    assert (wanted.format_, wanted.full_query) == (form, elsewhere)


@given(query=st.text(), accept=st.text(st.characters(max_codepoint=255)))
def test_whatever_is_asked_is_read_or_refused(query: str, accept: str) -> None:
    for text in (query, f"format=car&entity-bytes={query}", f"format=car&{query}"):
        try:
            wanted = read_request(QueryParams(text), Headers({"accept": accept}))
        except InvalidInput:
            continue
        if wanted is not None:
            header = wanted.etag("bafk") + wanted.content_type + (wanted.full_query or "")
            assert header.isascii()
            assert header.isprintable()


@given(first=st.integers(-40, 40), last=st.none() | st.integers(-40, 40), size=st.integers(0, 20))
def test_a_span_never_leaves_its_entity(first: int, last: int | None, size: int) -> None:
    try:
        part = ByteRange(first, last).within(size)
    except InvalidInput:
        assert first >= size > 0
        return
    places = range(size)
    start = max(0, first + size) if first < 0 else first
    stop = size - 1 if last is None else last + size if last < 0 else last
    assert [x for x in places if start <= x <= stop] == list(part)


async def test_the_files_of_every_fixture_come_back_whole(node: Any) -> None:
    """What other gateways are held against, as far as this one keeps such blocks: files."""
    files = 0
    for path in sorted(CARS.glob("*.car")):
        data = path.read_bytes()
        try:
            blocks = sections(data)
        except InvalidInput:
            continue  # codecs that no package has
        for text, block in blocks:
            node.surface.blocks.keep(Cid.parse(text), block)
        for text, _ in blocks:
            root = Cid.parse(text)
            try:
                want = read_car(data, root)
            except (InvalidInput, Unavailable):
                continue  # a directory, or a file with a gap
            answer = await node(f"/ipfs/{root}?format=car")
            assert read_car(answer.body, root) == want
            files += 1
    assert files == 74


def _base32(data: bytes) -> str:
    return base64.b32encode(data).decode().rstrip("=").lower()
