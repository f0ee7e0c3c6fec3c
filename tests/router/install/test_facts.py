"""Facts about a package: its rights by tool, the digest of its tools, an entry that must agree."""

from __future__ import annotations

from typing import Any

import pytest

from capdex.encoding.abi import checksum_address
from capdex.errors import CapdexError, Code, InvalidInput
from capdex.ipld.cid import Cid
from capdex.package import VerifiedPackage, verify
from capdex.registry.events import Announcement
from capdex_router.install.facts import accesses, check, lint_label, locked, tools_digest
from capdex_router.install.plan import targets_after
from tests.indexer import making
from tests.router.simulated import weather

BINDINGS: dict[str, Any] = {
    "now": {"type": "http_get", "url": "https://API.example.org:8443/{city}"},
    "later": {"type": "mcp_service", "service_uri": "did:nuwa:mcp:sky", "mcp_action": "look"},
    "past": {"type": "nuwa_a2a", "target_did": "did:web:agent.example.org", "service_method": "x"},
}


def package(data: bytes, name: str = "weather", version: str = "1.0.0") -> VerifiedPackage:
    cid, publisher = Cid.of(data), checksum_address(making.PUBLISHER)
    uri = f"did:nuwa:cap:{name}@{version}"
    said = Announcement(making.CHAIN_ID, publisher, uri, version, cid.text, cid.digest)
    return verify(said, data)


def test_rights_are_written_as_policy_writes_them() -> None:
    permissions = {"require": ["state.query", "email.send"]}
    found = accesses(package(weather(tools=3, bindings=BINDINGS, permissions=permissions)))
    assert [access.target for access in found] == [
        "install",
        "host:api.example.org:8443",
        "service:did:nuwa:mcp:sky",
        "agent:did:web:agent.example.org",
        "state.query",
        "",  # a permission that nothing here knows
    ]
    assert [access.lines[0] for access in found[1:4]] == [
        "now: GET https://api.example.org:8443/{city}",
        'later: call "look" of the MCP service did:nuwa:mcp:sky (asks at each call)',
        'past: send "x" to the agent did:web:agent.example.org (asks at each call)',
    ]


def test_all_that_a_request_sends_beside_its_arguments_is_shown() -> None:
    binding = {
        "type": "http_post",
        "url": "https://api.example.org/items/{place}?action=read",
        "headers": {"X-Mode": "fast"},
        "parameters": {"city": {"in": "path", "name": "place"}},
        "auth": {"type": "bearer", "secret": "ITEMS_KEY"},
    }
    (_, access) = accesses(package(weather(bindings={"now": binding})))
    assert access.lines == (
        "now: POST https://api.example.org/items/{place} (asks at each call)",
        "now:   with the query action=read",
        'now:   with the header X-Mode: "fast"',
        "now:   with the secret ITEMS_KEY in the header Authorization: Bearer",
        'now:   with the argument "city" in the path as "place"',
    )


def test_a_name_that_a_package_chose_is_quoted() -> None:
    binding = {
        "type": "http",
        "method": "GET",
        "url": "https://api.example.org/items",
        "auth": [{"type": "query", "name": 'k, which "stays" here', "secret": "ITEMS_KEY"}],
    }
    held = weather(
        bindings={"now": binding},
        memory_scope="own, proven",
        permissions={"require": ["state.query"]},
    )
    (_, access, verb) = accesses(package(held))
    assert access.lines[1:] == (
        r'now:   with the secret ITEMS_KEY in the query "k, which \"stays\" here"',
    )
    assert verb.lines[0].endswith(' in the scope "own, proven"')


def test_how_arguments_and_the_body_of_a_request_are_written_is_shown() -> None:
    binding = {
        "type": "http",
        "method": "POST",
        "url": "https://api.example.org/items",
        "parameters": {"city": {"in": "query", "style": "deepObject", "explode": True}},
        "body": {"content": "application/vnd.items+json", "parameter": "text"},
    }
    tool = making.tool("now", city="A city.", text="A text.")
    data = making.package_bytes("weather", tools=[tool], bindings={"now": binding})
    (_, access) = accesses(package(data))
    assert access.lines[1:] == (
        'now:   with the body content "application/vnd.items+json", parameter "text"',
        'now:   with the argument "city" in the query as "city", style "deepObject", explode true',
    )


def test_a_party_that_an_argument_names_is_not_granted() -> None:
    bindings = {"now": {"type": "nuwa_a2a", "target_did": "{city}", "service_method": "x"}}
    (_, access) = accesses(package(weather(bindings=bindings)))
    assert access.target == ""
    assert access.lines == ('now: send "x" to the agent {city} (asks at each call)',)


def test_the_digest_of_tools_changes_with_each_word_of_them() -> None:
    texts = [weather(), weather(tools=2), weather(bindings={"now": BINDINGS["now"]})]
    digests = {tools_digest(package(data).manifest) for data in texts}
    assert len(digests) == 3
    assert tools_digest(package(weather("1.0.1"), version="1.0.1").manifest) in digests


def test_what_was_taken_back_is_not_granted_again() -> None:
    old = package(weather())
    new = package(weather(tools=3, bindings=BINDINGS))
    assert targets_after(None, new, ()) == tuple(access.target for access in accesses(new))
    assert "host:tools.example.org" not in targets_after(old, old, ["install"])
    assert "host:api.example.org:8443" in targets_after(old, new, ["install"])


def test_an_entry_that_says_otherwise_is_drift_and_newer_lint_rules_are_none() -> None:
    from dataclasses import replace

    found = package(weather())
    entry = locked(found, "", {"chain_id": 1, "publisher": ""})
    check(entry, found)
    check(replace(entry, lint=("LINT_OVERRIDE",), extra={"later": 1}), found)
    with pytest.raises(InvalidInput) as caught:
        check(replace(entry, permissions=("state.delete",)), found)
    assert caught.value.code is Code.LOCK_DRIFT
    assert lint_label(("LINT_OVERRIDE",)) == "high"
    assert lint_label(()) is None


def test_a_package_that_contacts_too_many_is_refused() -> None:
    hosts = {"type": "later", "urls": [f"https://h{number}.example.org/" for number in range(300)]}
    with pytest.raises(CapdexError) as caught:
        locked(package(weather(bindings={"now": hosts})), "", {})
    assert caught.value.code is Code.TOO_LARGE
