"""The web platform's URL cases: no URL is taken whose host a browser would read otherwise (P10).

Cases of the other schemes that browsers parse alike are tried with https as well.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

from capdex.manifest.urls import url_fault

SUITE = Path(__file__).parents[2] / "vectors" / "wpt-url"
# Input, base, scheme, host (null where a browser refuses), user name, password.
URLS: list[tuple[str, str | None, str | None, str | None, str, str]] = json.loads(
    (SUITE / "urls.json").read_text("utf-8")
)
TO_ASCII: list[tuple[str, str | None]] = json.loads((SUITE / "toascii.json").read_text("utf-8"))
NO_BASE = "http://[0:0:0:0:0:0:0:0"  # a case about its base alone, which our URLs do not have

_SPECIAL = re.compile(r"(?:http|https|ws|wss|ftp):(?=//)", re.IGNORECASE)
_HOST = re.compile(r"https?://(\[[^\]]*\]|[^/:?#]*)", re.IGNORECASE)


def host_of(url: str) -> str:
    """The host as a reader sees it who knows nothing of the odd spellings."""
    match = _HOST.match(url)
    assert match is not None
    return match[1].lower()


def outcome(url: str, host: str | None, user: str = "", password: str = "") -> str:
    if url_fault(url, schemes=("https", "http")) is not None:
        return "refused by policy" if host is not None else "passed: refused"
    if host is None or user or password:
        return "failed: taken"
    return "passed: the same host" if host_of(url) == host else f"failed: {host_of(url)}"


def test_a_url_is_refused_or_has_the_host_that_a_browser_sees() -> None:
    cases = {(url, host, user, word) for url, base, _, host, user, word in URLS if base != NO_BASE}
    with_https = {(_SPECIAL.sub("https:", case[0], count=1), *case[1:]) for case in cases}
    outcomes = {case: outcome(*case) for case in cases | with_https}
    assert {case: x for case, x in outcomes.items() if x.startswith("failed")} == {}
    assert Counter(outcomes.values()) == {
        "passed: the same host": 116,
        "passed: refused": 444,
        "refused by policy": 628,  # other schemes, private hosts, user names, odd spellings
    }


def test_a_host_is_refused_or_the_ascii_that_a_browser_makes_of_it() -> None:
    outcomes = {host: outcome(f"https://{host}/", ascii_ or None) for host, ascii_ in TO_ASCII}
    assert {host: x for host, x in outcomes.items() if x.startswith("failed")} == {}
    assert Counter(outcomes.values()) == {
        "passed: the same host": 8,
        "passed: refused": 19,
        "refused by policy": 60,  # what is not ASCII already
    }
