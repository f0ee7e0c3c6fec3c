"""401 and 429: what a client gets, what it is counted as, and what stays open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from capdex.errors import UsageError
from capdex_service.limits.addresses import CLIENT
from capdex_service.limits.clients import ClientCheck, client_check
from capdex_service.limits.options import ClientLimits

TOKEN = b"0123456789abcdef"
Answer = tuple[int, dict[str, str], Any]


class Checked:
    """An application behind the check, which answers 200 with the client it was told."""

    def __init__(self, limits: ClientLimits) -> None:
        middleware = client_check(limits)
        self._check = ClientCheck(self._app, **middleware.kwargs)  # type: ignore[arg-type]

    async def _app(self, scope: Any, _: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": orjson.dumps(scope[CLIENT])})

    async def get(self, peer: str, *headers: tuple[bytes, bytes], path: str = "/v1/x") -> Answer:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            raise AssertionError("a request is judged by its head")

        scope = {"type": "http", "path": path, "client": (peer, 1), "headers": list(headers)}
        await self._check(scope, receive, send)
        start, body = sent
        said = {key.decode(): value.decode() for key, value in start["headers"]}
        return start["status"], said, orjson.loads(body["body"])


@pytest.fixture
def token_file(tmp_path: Path) -> str:
    path = tmp_path / "tokens"
    path.write_text(f"router {TOKEN.decode()}\n", "utf-8")
    return str(path)


def bearer(token: bytes, scheme: bytes = b"Bearer") -> tuple[bytes, bytes]:
    return b"authorization", scheme + b" " + token


async def test_a_client_over_its_rate_gets_429_and_others_do_not() -> None:
    checked = Checked(ClientLimits(rate=0.5))
    assert (await checked.get("203.0.113.7"))[::2] == (200, "203.0.113.7")
    status, headers, body = await checked.get("203.0.113.7")
    assert status == 429
    assert headers["content-type"] == "application/problem+json"
    assert 1 <= int(headers["retry-after"]) <= 2
    assert headers["connection"] == "close"  # with all that is in its pipeline
    assert (body["code"], body["retryable"]) == ("RATE_LIMITED", True)
    assert (await checked.get("203.0.113.8"))[0] == 200


async def test_a_caller_of_mcp_gets_429_with_an_error_it_can_read() -> None:
    checked = Checked(ClientLimits(rate=0.5))
    await checked.get("203.0.113.7", path="/mcp")
    status, headers, body = await checked.get("203.0.113.7", path="/mcp")
    assert (status, headers["content-type"]) == (429, "application/json")
    assert "retry-after" in headers
    assert body["error"]["data"]["code"] == "RATE_LIMITED"


async def test_neighbours_in_one_ipv6_network_share_a_rate() -> None:
    checked = Checked(ClientLimits(rate=0.5))
    peers = "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"
    assert [(await checked.get(peer))[0] for peer in peers] == [200, 429, 200]


async def test_this_machine_is_limited_only_where_that_is_said() -> None:
    for limited, second in ((False, 200), (True, 429)):
        checked = Checked(ClientLimits(rate=0.5, limit_loopback=limited))
        assert [(await checked.get("127.0.0.1"))[0] for _ in range(2)] == [200, second]


async def test_without_a_rate_nobody_is_limited() -> None:
    checked = Checked(ClientLimits(rate=0))
    assert {(await checked.get("203.0.113.7"))[0] for _ in range(1000)} == {200}


async def test_clients_of_a_trusted_proxy_are_told_apart() -> None:
    checked = Checked(ClientLimits(rate=0.5, trusted_proxies=("127.0.0.1",)))
    first, second = ((b"x-forwarded-for", x) for x in (b"198.51.100.1", b"198.51.100.2"))
    found = [(await checked.get("127.0.0.1", one))[0] for one in (first, second, first)]
    assert found == [200, 200, 429]


async def test_a_forwarded_address_buys_nothing_elsewhere() -> None:
    checked = Checked(ClientLimits(rate=0.5))
    found = [
        await checked.get("203.0.113.7", (b"x-forwarded-for", b"9.9.9.%d" % i)) for i in (1, 2)
    ]
    assert [one[0] for one in found] == [200, 429]


async def test_with_a_token_file_every_path_but_health_and_ready_needs_a_token(
    token_file: str,
) -> None:
    checked = Checked(ClientLimits(token_file=token_file))
    for path in ("/mcp", "/v1/resolve", "/status", "/metrics", "/", "/health/"):
        status, headers, body = await checked.get("203.0.113.7", path=path)
        assert (status, headers["www-authenticate"]) == (401, 'Bearer realm="capdex"')
        assert "UNAUTHENTICATED" in str(body)
        assert (await checked.get("203.0.113.7", bearer(TOKEN), path=path))[0] == 200
    for path in ("/health", "/ready"):
        assert (await checked.get("203.0.113.7", path=path))[0] == 200


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([bearer(TOKEN, b"bEARER")], 200),
        ([bearer(TOKEN + b" ")], 200),
        ([bearer(TOKEN[:-1])], 401),
        ([bearer(b"")], 401),
        ([bearer(TOKEN, b"Basic")], 401),
        ([bearer(TOKEN, b"Digest")], 401),  # as long as Bearer
        ([(b"authorization", TOKEN)], 401),
        ([bearer(TOKEN), bearer(b"another")], 401),
        ([(b"x-authorization", b"Bearer " + TOKEN)], 401),
    ],
)
async def test_a_token_is_read_as_rfc_6750_says(
    token_file: str, headers: list[tuple[bytes, bytes]], expected: int
) -> None:
    assert (await Checked(ClientLimits(token_file=token_file)).get("1.2.3.4", *headers))[
        0
    ] == expected


async def test_a_token_is_one_client_wherever_it_is_sent_from(token_file: str) -> None:
    checked = Checked(ClientLimits(rate=0.5, token_file=token_file))
    assert (await checked.get("1.2.3.4", bearer(TOKEN)))[::2] == (200, "token router")
    assert (await checked.get("127.0.0.1", bearer(TOKEN)))[0] == 429
    assert (await checked.get("1.2.3.4", path="/health"))[::2] == (200, "1.2.3.4")


async def test_tokens_cannot_be_tried_faster_than_the_rate(token_file: str) -> None:
    checked = Checked(ClientLimits(rate=0.5, token_file=token_file))
    found = [(await checked.get("1.2.3.4", bearer(b"%016d" % i)))[0] for i in range(3)]
    assert found == [401, 429, 429]


def test_a_wrong_file_or_proxy_stops_the_start(tmp_path: Path) -> None:
    for limits in (
        ClientLimits(token_file=str(tmp_path / "absent")),
        ClientLimits(trusted_proxies=("proxy.example",)),
    ):
        with pytest.raises(UsageError):
            client_check(limits)
