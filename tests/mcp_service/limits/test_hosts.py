"""For whom a node answers: which names it knows, and what it does with all other ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import Code, UsageError
from capdex_service.limits.hosts import LOOPBACK, HostCheck, known_hosts

ANY = "0.0.0.0"  # noqa: S104 - nothing is bound here
Headers = list[tuple[bytes, bytes]]


async def answer(headers: Headers, allowed: tuple[str, ...]) -> tuple[int, bytes]:
    """What a request with these headers gets: 200 from the application behind, or a refusal."""

    async def app(_: Any, __: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def receive() -> Any:
        raise AssertionError("a request is judged by its headers")

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await HostCheck(app, allowed=allowed)(
        {"type": "http", "path": "/", "headers": headers}, receive, send
    )
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    return int(sent[0]["status"]), bytes(sent[1]["body"])


async def status(headers: Headers, allowed: tuple[str, ...] = (*LOOPBACK, "Node.Example")) -> int:
    return (await answer(headers, allowed))[0]


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1:8077",
        "localhost",
        "LOCALHOST:1",
        "[::1]",
        "[::1]:65535",
        "node.example",
        "NODE.EXAMPLE:443",
        " localhost\t ",
    ],
)
async def test_our_own_names_are_answered_whatever_their_port_and_case(host: str) -> None:
    assert await status([(b"host", host.encode())]) == 200


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:80",
        "localhost.evil.example",
        "node.example.evil.example",
        "evil.example#localhost",
        "evil@localhost",
        "localhost:",
        "localhost:80:80",
        "localhost:-1",
        "localhost:x",
        "127.0.0.1.",
        "127.1",
        ANY,
        "2130706433",
        "::1",
        "[::1",
        "[::2]",
        "[::1]x",
        "local host",
        "localhost\0",
        "l\xf6calhost",
    ],
)
async def test_any_other_host_is_misdirected(host: str) -> None:
    assert await status([(b"host", host.encode("latin-1"))]) == 421


@pytest.mark.parametrize("host", [b"caps.example:8765", b"[2001:db8::3]:8765", b"Caps.Example"])
async def test_a_refusal_names_the_host_as_the_option_takes_it(host: bytes) -> None:
    _, told = await answer([(b"host", host)], LOOPBACK)
    name = json.loads(told)["message"].split("'")[1]
    assert await status([(b"host", host)], known_hosts(ANY, [name])) == 200


async def test_a_request_without_host_is_misdirected() -> None:
    assert await status([]) == 421


async def test_a_second_host_cannot_hide_behind_ours() -> None:
    ours, evil = (b"host", b"localhost"), (b"host", b"evil.example")
    assert await status([ours, evil]) == 421
    assert await status([evil, ours]) == 421


async def test_a_second_origin_cannot_hide_behind_ours() -> None:
    host = (b"host", b"localhost")
    ours, evil = (b"origin", b"http://localhost"), (b"origin", b"https://evil.example")
    assert await status([host, ours, evil]) == 403
    assert await status([host, evil, ours]) == 403


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("http://localhost", 200),
        ("http://127.0.0.1:3000", 200),
        ("https://[::1]:3000", 200),
        ("https://Node.Example", 200),
        ("https://evil.example", 403),
        ("http://localhost.evil.example", 403),
        ("http://evil.example://localhost", 403),
        ("file://localhost", 403),
        ("moz-extension://localhost", 403),
        ("localhost", 403),
        ("null", 403),
        ("", 403),
        ("http://", 403),
        ("http://localhost/", 403),
        ("http://user@localhost", 403),
    ],
)
async def test_a_browser_may_ask_only_from_our_own_pages(origin: str, expected: int) -> None:
    headers = [(b"host", b"localhost:8077"), (b"origin", origin.encode())]
    assert await status(headers) == expected


async def test_a_foreign_host_is_refused_before_its_origin_is_read() -> None:
    assert await status([(b"host", b"evil.example"), (b"origin", b"https://evil.example")]) == 421


async def test_what_is_no_request_passes() -> None:
    passed: list[str] = []

    async def app(scope: Any, _: Any, __: Any) -> None:
        passed.append(scope["type"])

    nothing: Any = None
    await HostCheck(app, allowed=())({"type": "lifespan"}, nothing, nothing)
    assert passed == ["lifespan"]


@given(
    st.lists(st.tuples(st.sampled_from([b"host", b"origin", b"accept"]), st.binary(max_size=300)))
)
async def test_no_header_bytes_break_the_check(headers: Headers) -> None:
    assert await status(headers) in (200, 403, 421)


@given(st.from_regex(r"[a-z0-9.:\[\]]{1,20}", fullmatch=True))
async def test_only_a_known_name_with_or_without_a_port_is_ours(host: str) -> None:
    name, colon, port = host.rpartition(":")
    ours = host in LOOPBACK or (bool(colon) and port.isdigit() and name in LOOPBACK)
    assert await status([(b"host", host.encode())], LOOPBACK) == (200 if ours else 421)


@pytest.mark.parametrize(
    ("host", "allowed", "known"),
    [
        ("127.0.0.1", (), LOOPBACK),
        ("localhost", (), LOOPBACK),
        ("::1", (), LOOPBACK),
        ("127.0.0.2", (), (*LOOPBACK, "127.0.0.2")),
        ("127.0.0.1", ("node.example",), (*LOOPBACK, "node.example")),
        (ANY, ("node.example",), (*LOOPBACK, "node.example")),
        ("::", ("node.example",), (*LOOPBACK, "node.example")),
        ("192.0.2.1", ("node.example",), (*LOOPBACK, "192.0.2.1", "node.example")),
        ("2001:db8::1", ("node.example",), (*LOOPBACK, "[2001:db8::1]", "node.example")),
        (ANY, ("2001:db8::1", "192.0.2.1"), (*LOOPBACK, "[2001:db8::1]", "192.0.2.1")),
        (ANY, ("[2001:DB8:0::1]",), (*LOOPBACK, "[2001:db8::1]")),
    ],
)
def test_a_node_knows_its_own_names_and_the_ones_it_was_told(
    host: str, allowed: tuple[str, ...], known: tuple[str, ...]
) -> None:
    assert set(known_hosts(host, allowed)) == set(known)


@pytest.mark.parametrize("host", [ANY, "::", "192.0.2.1", "2001:db8::1", "node.example"])
def test_a_node_that_others_can_reach_must_be_told_its_names(host: str) -> None:
    with pytest.raises(UsageError) as raised:
        known_hosts(host, ())
    assert raised.value.code is Code.CONFIG
    assert "--allowed-host" in raised.value.fix


@pytest.mark.parametrize(
    "name",
    ["https://caps.example", "caps.example/", "caps.example:443", "a.example,b.example", "*.a"],
)
def test_a_name_that_no_client_could_send_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="no name that clients could send"):
        known_hosts("127.0.0.1", (name,))


async def test_an_allowed_address_is_answered_as_browsers_write_it() -> None:
    known = known_hosts("::", ("2001:DB8::0001",))
    assert await status([(b"host", b"[2001:db8::1]:8077")], known) == 200
