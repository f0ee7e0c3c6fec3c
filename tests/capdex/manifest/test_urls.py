"""URLs that a package names: https, a public host, and one reading."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.manifest.urls import url_fault

LOCAL = """127.0.0.1 127.1 10.0.0.1 172.16.0.1 169.254.169.254 100.64.0.1 [::] [::1]
[::ffff:127.0.0.1] [fe80::1] [fe80::1%25eth0] [2600::1%25eth0] [2600::1%eth0] [fc00::1]
[2002:7f00:1::] 2130706433 017700000001 0177.0.0.1 0x7f.1 0x7f000001 0x
localhost localhost. foo.localhost metadata.google.internal 224.0.0.1 192.0.0.192 255.255.255.255
printer router.lan a.home.arpa
[2001:db8::1] [not] [] 1.2.3.4.5 256.1.1.1 a..b .a exämple.org ①.①.①.① -a.org a_.-.org
""".split()  # noqa: SIM905


@pytest.mark.parametrize("host", LOCAL)
def test_a_host_inside_a_network_or_without_one_reading_is_refused(host: str) -> None:
    assert url_fault(f"https://{host}/")
    assert url_fault(f"https://{host}:8443/x?y")


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example.com",
        "https://api.example.com/a/{b}?c={d}#e",
        "https://api.example.com:8443/",
        "https://8.8.8.8/",
        "https://[2606:4700:4700::1111]/",
        "https://xn--exmple-cua.org/ü",
        "HTTPS://API.EXAMPLE.COM/",
    ],
)
def test_public_https_is_fine(url: str) -> None:
    assert url_fault(url) is None


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://example.org/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https:example.org",
        "https:///example.org",
        "https://",
        "https:\\\\example.org",
        "https://example.org\\@evil.example/",
        "https://user@example.org/",
        "https://api.good.example@evil.example/",
        "https://{host}/",
        "https://{host}.example.org/",
        "https://example.org{path}",
        "https://example.org:0/",
        "https://example.org:65536/",
        "https://example.org:{port}/",
        "https://example.org:80:80/",
        "https://example.org/a b",
        "https://example.org/\n",
        "{scheme}://example.org/",
        "https://example.org/" + "a" * 2048,
    ],
)
def test_other_urls_are_refused(url: str) -> None:
    assert url_fault(url)


def test_links_for_people_may_be_http() -> None:
    assert url_fault("http://example.org/", schemes=("https", "http")) is None


@given(st.text().map(lambda text: "https://" + text))
def test_any_text_is_judged(url: str) -> None:
    assert url_fault(url) is None or url_fault(url)
