"""Decisions about calls: the rights that a person is asked for, and what is denied. Pure.

The rights of a capability are what its package declares and a person granted. A right is written as
a target: `host:api.example.org`, `service:<URI>`, `agent:<DID>`, `process:<path>`, `state.create`,
`state.delete hard`, or `effects` for a tool that may destroy something.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from capdex.errors import Code, Refused
from capdex_router.model.capability import Capability, ToolHints
from capdex_router.model.refs import AUTHOR
from capdex_router.model.requests import (
    AgentRequest,
    HostRequest,
    ProcessRequest,
    Request,
    ServiceRequest,
    StateRequest,
)
from capdex_router.policy.quoting import escaped, quoted, shortened

EFFECTS: Final = "effects"
HARD_DELETE: Final = "state.delete hard"
_PORTS: Final = {"http": 80, "https": 443}
MAX_PART_CHARS: Final = 2_048  # of a request: as long as the URL of a binding may be


def missing(
    capability: Capability, requests: Sequence[Request], granted: Collection[str]
) -> tuple[str, ...]:
    """Return the rights that one call needs, for its `requests`, and that no person granted yet.

    Raises Refused PERMISSION_DENIED for a state verb that its package does not declare, and for
    the objects of another scope.
    """
    needed = dict.fromkeys(target(request) for request in requests)
    for request in requests:
        if isinstance(request, StateRequest):
            _check_state(capability, request)
    if asks_each_time(capability.owner.source, capability.annotations, requests):
        needed[EFFECTS] = None
    return tuple(name for name in needed if name not in granted)


def destroys(rights: Collection[str]) -> bool:
    """True if a yes to some rights is for one call: what one of them allows cannot be undone."""
    return EFFECTS in rights or HARD_DELETE in rights


def target(request: Request) -> str:
    """Return the right that a request needs."""
    match request:
        case HostRequest():
            return f"host:{host_and_port(request)}"
        case ServiceRequest():
            return f"service:{request.service_uri}"
        case AgentRequest():
            return f"agent:{request.did}"
        case ProcessRequest():
            return f"process:{request.argv[0]}"
        case StateRequest():
            return HARD_DELETE if request.hard else request.verb


def host_and_port(request: HostRequest) -> str:
    """Return the host, with its port unless that is the scheme's own."""
    host = f"[{request.host}]" if ":" in request.host else request.host
    return host if _PORTS.get(request.scheme) == request.port else f"{host}:{request.port}"


def line(request: Request) -> str:
    """Return one line that shows a person what a request does, without the package's words."""
    match request:
        case HostRequest():
            place = f"{request.scheme}://{escaped(host_and_port(request))}"
            return f"{request.method} {place}{shortened(request.path, MAX_PART_CHARS)}"
        case ServiceRequest():
            action, uri = quoted(request.action), escaped(request.service_uri)
            return f"call {action} of the MCP service {uri}"
        case AgentRequest():
            return f"send {quoted(request.method)} to the agent {escaped(request.did)}"
        case ProcessRequest():
            program, *arguments = request.argv
            return " ".join([f'run "{escaped(program)}"', *map(quoted, arguments)])
        case StateRequest():
            verb = f"{request.verb}, for good," if request.hard else request.verb
            where = f"in the scope {quoted(request.scope)}" if request.scope else "without a scope"
            return f"{verb} on its own objects of {escaped(request.schema_uri)} {where}"


def _check_state(capability: Capability, request: StateRequest) -> None:
    owner = capability.owner
    if request.verb not in owner.permissions:
        what, why = request.verb, "permissions.require of its package does not name it"
    elif request.scope != owner.scope:
        what, why = "the objects of another scope", f"its memory_scope is {owner.scope}"
    else:
        return
    raise Refused(f"{owner.name} may not use {what}", Code.PERMISSION_DENIED, why=why, fix=AUTHOR)


def asks_each_time(source: str, hints: ToolHints, requests: Sequence[Request]) -> bool:
    """Return True if each call of a tool is asked about, until a person grants `effects`.

    A package that calls itself harmless is believed only where its requests say so: a method that
    writes, another agent and an MCP service may do anything. Hints of a mounted server, which its
    user chose, are shown before the first use.
    """
    if source == "package" and any(_may_write(request) for request in requests):
        return True
    if hints.read_only or not hints.destructive:
        return False
    # The verbs on state say themselves what they do: only a delete for good cannot be undone.
    return not requests or any(not isinstance(request, StateRequest) for request in requests)


def _may_write(request: Request) -> bool:
    if isinstance(request, HostRequest):
        return request.method != "GET"  # no other method of a binding is safe (RFC 9110, 9.2.1)
    return isinstance(request, ServiceRequest | AgentRequest)
