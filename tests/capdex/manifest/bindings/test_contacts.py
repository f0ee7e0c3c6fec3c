"""The parties that bindings contact, and the secrets that they send there."""

from __future__ import annotations

from typing import Any

from capdex.manifest.bindings.contacts import SecretUse, contacts, party, secret_uses

URL = "https://API.example.com:8443/v1"


def http(auth: Any = None, **fields: Any) -> dict[str, Any]:
    return {"type": "http_get", "url": URL, "auth": auth, **fields}


def test_what_a_request_carries_contacts_nobody() -> None:
    headers = {"User-Agent": "weather (https://example.org/)"}
    assert contacts({"look": http(headers=headers)}) == {"api.example.com:8443": "look"}


def test_an_unknown_type_hides_no_party() -> None:
    binding = {"type": "http_patch", "headers": {"X-Forward": "https://example.org/"}}
    assert contacts({"look": binding}) == {"example.org": "look"}


def test_a_secret_is_told_with_its_host_and_its_header() -> None:
    bindings = {
        "a": http({"type": "bearer", "secret": "KEY"}),
        "b": http({"type": "bearer", "secret": "KEY"}),
        "c": http({"type": "basic", "secret": "KEY"}, url="https://example.org/"),
        "d": http({"type": "header", "secret": "OTHER", "name": "X-Key"}),
        "e": http(),
        "f": {"type": "other", "auth": {"secret": "NOT_READ"}},
    }
    assert secret_uses(bindings) == {
        SecretUse("KEY", "api.example.com", "Authorization: Bearer"): "a",
        SecretUse("KEY", "example.org", "Authorization: Basic"): "c",
        SecretUse("OTHER", "api.example.com", "X-Key"): "d",
    }


def test_a_party_that_each_call_names_is_said_in_words() -> None:
    bound = {"ask": {"type": "nuwa_a2a", "target_did": "{who}", "service_method": "tell"}}
    assert [party(x) for x in contacts(bound)] == ["whichever party a call names ({who})"]
    assert party("api.example.com") == "api.example.com"
