"""Which client a request is counted for."""

from __future__ import annotations

from typing import Any

import pytest

from capdex.errors import Code, UsageError
from capdex_service.limits.addresses import LOOPBACK, UNKNOWN, Addresses, client_key

PROXIES = ("10.0.0.0/8", "2001:db8:ffff::1", "127.0.0.1")


def scope(peer: str | None, *forwarded: str) -> Any:
    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    return {"type": "http", "client": peer and (peer, 1), "headers": headers}


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:1", "2001:db8::/64"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("127.0.0.1", LOOPBACK),
        ("127.9.9.9", LOOPBACK),
        ("::1", LOOPBACK),
        ("::ffff:127.0.0.1", LOOPBACK),
        ("", UNKNOWN),
        ("somebody", UNKNOWN),
        ("1.2.3.4:5", UNKNOWN),
    ],
)
def test_a_client_is_an_ipv4_address_an_ipv6_network_or_this_machine(
    address: str, key: str
) -> None:
    assert client_key(address) == key


def test_forwarded_addresses_of_a_peer_that_is_no_proxy_are_not_believed() -> None:
    assert Addresses().address_of(scope("203.0.113.7", "198.51.100.1")) == "203.0.113.7"
    assert Addresses(PROXIES).address_of(scope("203.0.113.7", "198.51.100.1")) == "203.0.113.7"


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        (("198.51.100.1",), "198.51.100.1"),
        (("1.1.1.1, 198.51.100.1",), "198.51.100.1"),
        (("127.0.0.1, 198.51.100.1",), "198.51.100.1"),
        (("1.1.1.1", "198.51.100.1"), "198.51.100.1"),
        (("198.51.100.1, 10.9.9.9",), "198.51.100.1"),
        (("198.51.100.1,::ffff:10.9.9.9, 2001:db8:ffff::1",), "198.51.100.1"),
        (("2001:db8::1",), "2001:db8::1"),
        (("10.1.1.1, 10.2.2.2",), "10.1.1.1"),
        (("198.51.100.1, rubbish",), "rubbish"),
        (("1.1.1.1, 198.51.100.1:50123",), "198.51.100.1"),
        (("198.51.100.1:50123, 10.9.9.9:443",), "198.51.100.1"),
        (("[2001:db8::1]:50123",), "2001:db8::1"),
        (("[2001:db8::1]",), "2001:db8::1"),
        (("198.51.100.1:x",), "198.51.100.1:x"),
        ((), "10.0.0.1"),
    ],
)
def test_a_trusted_proxy_names_the_client(forwarded: tuple[str, ...], client: str) -> None:
    assert Addresses(PROXIES).address_of(scope("10.0.0.1", *forwarded)) == client


@pytest.mark.parametrize(
    ("peer", "named", "scheme"),
    [
        ("10.0.0.1", ("https",), "https"),
        ("10.0.0.1", (" HTTPS ",), "https"),
        ("10.0.0.1", ("https", "http"), "http"),
        ("10.0.0.1", ("javascript",), "http"),
        ("10.0.0.1", ("\xff",), "http"),
        ("10.0.0.1", (), "http"),
        ("203.0.113.7", ("https",), "http"),
        (None, ("https",), "http"),
    ],
)
def test_only_a_trusted_proxy_names_the_scheme(
    peer: str | None, named: tuple[str, ...], scheme: str
) -> None:
    headers = [(b"x-forwarded-proto", value.encode("latin-1")) for value in named]
    request: Any = scope(peer) | {"scheme": "http", "headers": headers}
    assert Addresses(PROXIES).scheme_of(request) == scheme
    assert Addresses().scheme_of(request) == "http"


def test_only_this_machine_and_the_proxies_have_no_limits_of_their_own() -> None:
    known = "127.0.0.1", "10.3.3.3", "203.0.113.7", "rubbish", "2001:db8:ffff::1"
    assert [Addresses(PROXIES).unlimited(one) for one in known] == [True, True, False, False, True]
    assert [Addresses().unlimited(one) for one in known] == [True, False, False, False, False]
    assert not Addresses(limit_loopback=True).unlimited("127.0.0.1")
    assert Addresses(["10.1.2.3/8"]).unlimited("10.9.9.9")


def test_a_request_without_a_peer_is_of_an_unknown_client() -> None:
    assert client_key(Addresses(PROXIES).address_of(scope(None, "1.1.1.1"))) == UNKNOWN


@pytest.mark.parametrize("proxy", ["proxy.example", "10.0.0.0/33", ""])
def test_a_proxy_is_named_by_its_address(proxy: str) -> None:
    with pytest.raises(UsageError) as refused:
        Addresses([proxy])
    assert refused.value.code is Code.CONFIG
