"""Facts about a package: its rights by tool, the digest of its tools, an entry that must agree."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from capdex.encoding.abi import checksum_address
from capdex.encoding.hexadecimal import to_hex
from capdex.errors import CapdexError, Code, InvalidInput, VerificationFailure
from capdex.ipld.cid import Cid
from capdex.manifest.bindings.binding import FIELDS
from capdex.package import VerifiedPackage, verify
from capdex.proof.storage_layout import digest_slot
from capdex.registry.events import Announcement
from capdex_router.install.facts import (
    accesses,
    check,
    check_proof,
    lint_label,
    locked,
    tools_digest,
)
from capdex_router.install.plan import targets_after
from tests.capdex import proving
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


@pytest.mark.parametrize("type_", FIELDS)
def test_what_each_type_of_binding_reaches_is_told(type_: str) -> None:
    written = {name: x for each in BINDINGS.values() for name, x in each.items()}
    binding = {"method": "GET"} | written | {"type": type_}
    assert (
        "nothing here runs" not in accesses(package(weather(bindings={"now": binding})))[1].lines[0]
    )


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


@pytest.mark.parametrize(
    ("binding", "target", "line"),
    [
        ({"url": "https://a.example.org"}, "host:a.example.org", "GET https://a.example.org/"),
        (
            {"url": "https://a.example.org:80"},
            "host:a.example.org:80",
            "GET https://a.example.org:80/",
        ),
        ({"type": "later"}, "", r'has a binding that nothing here runs: "{\"type\": \"later\"}"'),
    ],
)
def test_a_binding_is_shown_with_the_port_of_its_scheme_or_as_it_is_written(
    binding: dict[str, Any], target: str, line: str
) -> None:
    held = {"type": "http_get", **binding}
    (_, access) = accesses(
        package(making.package_bytes("weather", bindings={"now": held}, tools=[making.tool("now")]))
    )
    assert (access.target, access.lines) == (target, (f"now: {line}",))


def test_a_party_that_an_argument_names_is_not_granted() -> None:
    bindings = {"now": {"type": "nuwa_a2a", "target_did": "{city}", "service_method": "x"}}
    (_, access) = accesses(package(weather(bindings=bindings)))
    assert access.target == ""
    assert access.lines == ('now: send "x" to the agent {city} (asks at each call)',)


def test_the_digest_of_tools_changes_with_each_word_of_them() -> None:
    texts = [weather(), weather(tools=2), weather(bindings={"now": BINDINGS["now"]})]
    digests = {tools_digest(package(data).manifest) for data in texts}
    for words in ("Each city.", "Any city."):  # with one binding
        bound, tools = {"now": BINDINGS["now"]}, [making.tool("now", city=words)]
        data = making.package_bytes("weather", bindings=bound, tools=tools)
        digests.add(tools_digest(package(data).manifest))
    assert len(digests) == 5
    assert tools_digest(package(weather("1.0.1"), version="1.0.1").manifest) in digests


def test_what_was_taken_back_is_not_granted_again() -> None:
    old = package(weather())
    new = package(weather(tools=3, bindings=BINDINGS))
    assert targets_after(None, new, ()) == tuple(access.target for access in accesses(new))
    assert "host:tools.example.org" not in targets_after(old, old, ["install"])
    assert "host:api.example.org:8443" in targets_after(old, new, ["install"])


def test_an_entry_that_says_otherwise_is_drift_in_the_field_that_differs() -> None:
    found = package(weather())
    entry = locked(found, "", {"chain_id": 1, "publisher": ""})
    of_the_file: dict[str, Any] = {
        "request": "^1", "chain": {"chain_id": 2}, "lint": ("LINT_OVERRIDE",), "explicit": False,
        "folders": ("skills/weather",), "extra": {"later": 1},
    }  # fmt: skip
    check(replace(entry, **of_the_file), found)
    for name in (x.name for x in fields(entry) if x.name not in of_the_file):
        value: Any = ("other",) if isinstance(getattr(entry, name), tuple) else "other"
        with pytest.raises(InvalidInput) as caught:
            check(replace(entry, **of_the_file | {name: value}), found)
        assert caught.value.code is Code.LOCK_DRIFT
        assert (caught.value.details or {})["fields"] == [name]


def test_a_proof_in_an_entry_is_of_its_name_release_chain_and_block() -> None:
    first, second = proving.Release("1.0.0"), proving.Release("1.1.0")
    copied = {digest_slot("tides", "1.0.0"): first.sha256("weather")}
    world = proving.World({"weather": [first, second], "tides": [first]}, copied)
    chain = {
        "chain_id": world.chain_id,
        "publisher": "",
        "contract": to_hex(proving.CONTRACT),
        "block_hash": to_hex(world.hash),
    }
    entry = replace(locked(package(weather()), "", chain), sha256=first.sha256("weather").hex())
    held = chain | {"proof": world.document("weather", "1.0.0")}
    for good in (chain, held, chain | {"proof": world.document("weather")}):
        check_proof(replace(entry, chain=good))
    wrong: list[dict[str, Any]] = [
        {"chain": chain | {"proof": world.document("weather", "1.1.0")}},
        {"chain": chain | {"proof": world.document("weather", "9.0.0")}},
        {"chain": chain | {"proof": world.document("tides", "1.0.0")}},
        {"chain": held, "name": "tides"},
        {"chain": held, "version": "1.1.0"},
        {"chain": held, "sha256": second.sha256("weather").hex()},
        {"chain": held | {"chain_id": 2}},
        {"chain": held | {"contract": to_hex(proving.OTHER_CONTRACT)}},
        {"chain": held | {"block_hash": "0x" + "ab" * 32}},
        {"chain": {key: value for key, value in held.items() if key != "block_hash"}},
    ]
    for changed in wrong:
        with pytest.raises(VerificationFailure) as caught:
            check_proof(replace(entry, **changed))
        assert caught.value.code is Code.BAD_PROOF
    with pytest.raises(CapdexError):
        check_proof(replace(entry, chain=held | {"contract": None}))


def test_the_label_of_lint_codes_is_the_gravest() -> None:
    assert lint_label(("LINT_OVERRIDE",)) == "high"
    assert lint_label(()) is None


@pytest.mark.parametrize(
    "urls",
    [[f"https://h{number}.example.org/" for number in range(300)], [f"https://{'h' * 5000}/"]],
)
def test_a_package_whose_contacts_no_lock_file_holds_is_refused(urls: list[str]) -> None:
    hosts = {"type": "later", "urls": urls}
    with pytest.raises(CapdexError) as caught:
        locked(package(weather(bindings={"now": hosts})), "", {})
    assert caught.value.code is Code.TOO_LARGE
