"""Decisions: what a call needs, what was granted, and what is never allowed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from capdex.errors import Code, Refused
from capdex.manifest.bindings.http_request import METHODS
from capdex_router.model.capability import Capability, Owner, ToolHints
from capdex_router.model.refs import CapabilityRef
from capdex_router.model.requests import (
    AgentRequest,
    HostRequest,
    ProcessRequest,
    Request,
    ServiceRequest,
    StateRequest,
)
from capdex_router.policy.permissions import (
    EFFECTS,
    HARD_DELETE,
    asks_each_time,
    destroys,
    line,
    missing,
    target,
)

READS = ToolHints(read_only=True, destructive=False)
OSLO = HostRequest("GET", "https", "api.example.org", 443, "/oslo")
CREATE = StateRequest("state.create", "sc:note", "did:nuwa:state:note#v1")


def capability(annotations: ToolHints = READS, **owner: Any) -> Capability:
    return Capability(
        CapabilityRef("did:nuwa:cap:note#t", "1.0.0"),
        "tool",
        "t",
        "",
        {},
        Owner("package", "did:nuwa:cap:note", "aa", **{"scope": "sc:note", **owner}),
        annotations=annotations,
    )


def test_nothing_is_granted_at_first() -> None:
    found = missing(capability(), [OSLO], ())
    assert found == ("host:api.example.org",)
    assert not destroys(found)


def test_a_granted_host_is_allowed_and_another_is_not() -> None:
    assert missing(capability(), [OSLO], {"host:api.example.org"}) == ()
    other = HostRequest("GET", "https", "api.example.org", 8443)
    assert missing(capability(), [OSLO, other], {"host:api.example.org"}) == (
        "host:api.example.org:8443",
    )


def test_an_address_and_a_port_are_told_apart() -> None:
    one = HostRequest("GET", "https", "2606:4700::1", 8443, "/x")
    other = HostRequest("GET", "https", "2606:4700::1:8443", 443, "/x")
    assert (line(one), target(one)) == (
        "GET https://[2606:4700::1]:8443/x", "host:[2606:4700::1]:8443",
    )  # fmt: skip
    assert target(other) == "host:[2606:4700::1:8443]"


def test_a_tool_that_may_destroy_something_asks_although_its_host_is_granted() -> None:
    found = missing(capability(ToolHints()), [OSLO], {"host:api.example.org"})
    assert found == (EFFECTS,)
    assert destroys(found)


@pytest.mark.parametrize(
    "request_",
    [
        *(HostRequest(x, "https", "api.example.org", 443) for x in METHODS if x != "GET"),
        ServiceRequest("did:nuwa:mcp:web", "fetch"),
        AgentRequest("did:key:z6Mk", "send"),
    ],
    ids=str,
)
def test_a_package_that_calls_a_writing_request_harmless_is_not_believed(request_: Request) -> None:
    found = missing(capability(READS), [request_], {target(request_)})
    assert found == (EFFECTS,)
    assert missing(capability(READS), [request_], {target(request_), EFFECTS}) == ()


@pytest.mark.parametrize("source", ["package", "mcp", "learned"])
@pytest.mark.parametrize(
    ("hints", "asks"),
    [
        (ToolHints(), True),
        (ToolHints(read_only=True), False),
        (ToolHints(destructive=False), False),
        (READS, False),
    ],
    ids=str,
)
@pytest.mark.parametrize("requests", [[], [OSLO], [CREATE, OSLO]], ids=len)
def test_a_tool_that_destroys_nothing_is_not_asked_about_each_time(
    source: str, hints: ToolHints, asks: bool, requests: list[Request]
) -> None:
    assert asks_each_time(source, hints, requests) is asks


def test_a_mounted_server_is_believed_where_a_package_is_not() -> None:
    call = [ServiceRequest("mcp:web", "fetch")]
    assert asks_each_time("package", READS, call)
    assert not asks_each_time("mcp", READS, call)
    assert not asks_each_time("mcp", ToolHints(), [CREATE])


def test_a_state_verb_is_allowed_if_declared_and_granted() -> None:
    declared = capability(ToolHints(), permissions=("state.create",))
    assert missing(declared, [CREATE], ()) == ("state.create",)
    assert missing(declared, [CREATE], {"state.create"}) == ()


def test_a_verb_that_is_not_declared_is_denied_even_if_granted() -> None:
    with pytest.raises(Refused) as refused:
        missing(capability(), [CREATE], {"state.create"})
    assert refused.value.code == Code.PERMISSION_DENIED


def test_another_scope_is_denied() -> None:
    declared = capability(permissions=("state.create",), scope="sc:other")
    with pytest.raises(Refused, match="another scope"):
        missing(declared, [CREATE], {"state.create"})


def test_a_delete_for_good_is_a_right_of_its_own() -> None:
    declared = capability(permissions=("state.delete",))
    soft = StateRequest("state.delete", "sc:note", "x")
    hard = StateRequest("state.delete", "sc:note", "x", hard=True)
    assert missing(declared, [soft], {"state.delete"}) == ()
    found = missing(declared, [hard], {"state.delete"})
    assert found == (HARD_DELETE,)
    assert destroys(found)


def test_each_request_has_a_target_and_a_line() -> None:
    requests: list[Request] = [
        OSLO,
        ServiceRequest("did:nuwa:mcp:web", "fetch"),
        AgentRequest("did:key:z6Mk", "send"),
        ProcessRequest(("/usr/bin/rg", "--", "a b")),
        CREATE,
    ]
    assert tuple(dict.fromkeys(map(target, requests))) == (
        "host:api.example.org",
        "service:did:nuwa:mcp:web",
        "agent:did:key:z6Mk",
        "process:/usr/bin/rg",
        "state.create",
    )
    assert [line(request) for request in requests] == [
        "GET https://api.example.org/oslo",
        'call "fetch" of the MCP service did:nuwa:mcp:web',
        'send "send" to the agent did:key:z6Mk',
        'run "/usr/bin/rg" "--" "a b"',
        'state.create on its own objects of did:nuwa:state:note#v1 in the scope "sc:note"',
    ]
    assert line(replace(CREATE, scope="")) == (
        "state.create on its own objects of did:nuwa:state:note#v1 without a scope"
    )
    assert target(HostRequest("GET", "http", "localhost", 8080)) == "host:localhost:8080"
    assert target(HostRequest("GET", "http", "localhost", 80)) == "host:localhost"
    assert target(HostRequest("GET", "https", "localhost", 80)) == "host:localhost:80"
