"""The accesses that a call would make, stated before it runs: what policy and consent judge."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HostRequest:
    """A request to a host; `host` is in lower case, `path` has no query.

    `query`, `headers` and `body` are what is sent beside. `secrets` are names of secrets that go
    with it, each with its place (a header, `query NAME`, `cookie NAME`); never their values.
    """

    method: str
    scheme: str
    host: str
    port: int
    path: str = "/"
    query: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    secrets: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ServiceRequest:
    """A call of an action of an MCP service."""

    service_uri: str
    action: str


@dataclass(frozen=True, slots=True)
class MountedRequest(ServiceRequest):
    """A call of a tool of a mounted server, which is the program `argv`."""

    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """A message to another agent (NIP-7, `nuwa_a2a`)."""

    did: str
    method: str


@dataclass(frozen=True, slots=True)
class StateRequest:
    """A state verb (`state.create` and so on) on the objects of a schema in a scope.

    `hard` deletes for good.
    """

    verb: str
    scope: str
    schema_uri: str
    hard: bool = False


@dataclass(frozen=True, slots=True)
class ProcessRequest:
    """A process: its argument list, the first of it a resolved path, and the folder it sees."""

    argv: tuple[str, ...]
    folder: str = ""
    writable: bool = False


Request = HostRequest | ServiceRequest | AgentRequest | StateRequest | ProcessRequest
