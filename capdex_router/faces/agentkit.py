"""agentkit's capability layer as Python protocols, for programs that embed the router.

No module of capdex imports this one, except `agentkit_adapters`.

The names and shapes are those of agentkit-capabilities; an enum of Rust is a union of dataclasses
here, and its errors are exceptions. The adapters keep CAP's code of an error in `metadata`, which
agentkit's own tool adapter loses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, runtime_checkable

from capdex.json import Json

Metadata = Mapping[str, Any]
NO_METADATA: Final[Metadata] = {}


@dataclass(frozen=True, slots=True)
class CapabilityContext:
    """The session and the turn that a call belongs to; no more than that."""

    session_id: str | None = None
    turn_id: str | None = None
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InvocableSpec:
    """The name, description and input schema of an invocable."""

    name: str
    description: str
    input_schema: Json
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InvocableRequest:
    """The input of a call."""

    input: Any
    session_id: str | None = None
    turn_id: str | None = None
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DataRef:
    """Data as inline text or bytes, or by a URI."""

    text: str | None = None
    data: bytes | None = None
    uri: str | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a conversation."""

    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """An output that is plain text."""

    text: str


@dataclass(frozen=True, slots=True)
class Structured:
    """An output that is a JSON value."""

    value: Any


@dataclass(frozen=True, slots=True)
class Items:
    """An output of several items."""

    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Data:
    """An output that is data, inline or elsewhere."""

    data: DataRef


InvocableOutput = Text | Structured | Items | Data


@dataclass(frozen=True, slots=True)
class InvocableResult:
    """The output of a call."""

    output: InvocableOutput
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResourceDescriptor:
    """A resource that can be read."""

    id: str
    name: str
    description: str | None = None
    mime_type: str | None = None
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResourceContents:
    """What a resource holds."""

    data: DataRef
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PromptDescriptor:
    """A prompt, with a JSON Schema for its arguments."""

    id: str
    name: str
    input_schema: Json
    description: str | None = None
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PromptContents:
    """The items that a prompt gives."""

    items: tuple[Item, ...]
    metadata: Metadata = field(default_factory=dict)


class CapabilityError(Exception):
    """Base of the three errors; `metadata` has CAP's `code` and the `reason` of capdex."""

    def __init__(self, message: str, metadata: Metadata = NO_METADATA) -> None:
        super().__init__(message)
        self.metadata = metadata


class CapabilityUnavailable(CapabilityError):
    """The capability is not found or offline (agentkit: Unavailable)."""


class CapabilityInvalidInput(CapabilityError):
    """The arguments failed validation (agentkit: InvalidInput)."""


class CapabilityExecutionFailed(CapabilityError):
    """The capability failed while it ran (agentkit: ExecutionFailed)."""


@runtime_checkable
class Invocable(Protocol):
    """An operation with a request and a response."""

    def spec(self) -> InvocableSpec:
        """Return name, description and schema."""
        ...

    async def invoke(self, request: InvocableRequest, ctx: CapabilityContext) -> InvocableResult:
        """Run it; raises CapabilityError."""
        ...


@runtime_checkable
class ResourceProvider(Protocol):
    """Data that can be listed and read, without side effects."""

    async def list_resources(self) -> Sequence[ResourceDescriptor]:
        """Return the resources; raises CapabilityError."""
        ...

    async def read_resource(self, id: str, ctx: CapabilityContext) -> ResourceContents:
        """Return one resource; raises CapabilityError."""
        ...


@runtime_checkable
class PromptProvider(Protocol):
    """Templates that give items of a conversation."""

    async def list_prompts(self) -> Sequence[PromptDescriptor]:
        """Return the prompts; raises CapabilityError."""
        ...

    async def get_prompt(self, id: str, args: object, ctx: CapabilityContext) -> PromptContents:
        """Return one prompt with its arguments filled in; raises CapabilityError."""
        ...


@runtime_checkable
class CapabilityProvider(Protocol):
    """A bundle of invocables, resources and prompts: an MCP server, a package."""

    def invocables(self) -> Sequence[Invocable]:
        """Return the invocables."""
        ...

    def resources(self) -> Sequence[ResourceProvider]:
        """Return the providers of resources."""
        ...

    def prompts(self) -> Sequence[PromptProvider]:
        """Return the providers of prompts."""
        ...
