"""Adapters between the runtime and agentkit's protocols, for programs that embed the router.

No module of capdex imports this one.

a capability of the runtime ──> Invocable        an Invocable ──> Executor of the runtime
a package ──> CapabilityProvider                 a CapabilityProvider ──> capabilities
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from capdex.errors import Code, ExecutionFailed, InvalidInput, Unavailable
from capdex.json import Json, object_of
from capdex.manifest.prompt import placeholders
from capdex_router.faces.agentkit import (
    CapabilityContext,
    CapabilityError,
    CapabilityExecutionFailed,
    CapabilityInvalidInput,
    CapabilityProvider,
    CapabilityUnavailable,
    Data,
    DataRef,
    Invocable,
    InvocableRequest,
    InvocableResult,
    InvocableSpec,
    Item,
    Items,
    PromptContents,
    PromptDescriptor,
    PromptProvider,
    ResourceContents,
    ResourceDescriptor,
    ResourceProvider,
    Structured,
    Text,
)
from capdex_router.invoke.invoke import Caller, Invoker, prompt_of
from capdex_router.model.capability import NO_INPUT, Capability, Owner, ToolHints
from capdex_router.model.refs import CapabilityRef
from capdex_router.model.requests import Request, ServiceRequest
from capdex_router.policy.consent import Asker, Refuse


@dataclass(frozen=True, slots=True)
class RouterInvocable:
    """A tool of the runtime as an Invocable; each call takes the whole pipeline."""

    capability: Capability
    invoker: Invoker
    asker: Asker

    def spec(self) -> InvocableSpec:
        """Return name, description and schema; `metadata` is the CapabilityRef."""
        tool = self.capability
        return InvocableSpec(tool.name, tool.description, tool.input_schema, tool.ref.to_json())

    async def invoke(self, request: InvocableRequest, ctx: CapabilityContext) -> InvocableResult:
        """Run the tool; raises CapabilityError with CAP's code in its metadata."""
        ref = self.capability.ref
        session = request.session_id or ctx.session_id
        caller = Caller(self.asker, session)
        result = await self.invoker.invoke(ref.capability_id, ref.version, request.input, caller)
        if result.error is not None:
            raise _raised(result.error)
        return InvocableResult(Structured(result.output), {"duration_ms": result.duration_ms})


@dataclass(frozen=True, slots=True)
class RouterSkill:
    """A skill as a PromptProvider and a ResourceProvider.

    Resources that are not held here are given by a URI.
    """

    skill: Capability

    async def list_prompts(self) -> Sequence[PromptDescriptor]:
        """Return the one prompt."""
        skill = self.skill
        return [
            PromptDescriptor(
                skill.ref.capability_id, skill.name, skill.input_schema, skill.description
            )
        ]

    async def get_prompt(self, id: str, args: object, ctx: CapabilityContext) -> PromptContents:
        """Return the prompt with `args` filled in, then their message; raises CapabilityError."""
        if id != self.skill.ref.capability_id or self.skill.prompt is None:
            raise CapabilityUnavailable(f"there is no prompt {id[:64]!r}", {"code": "NOT_FOUND"})
        given = object_of(args)
        try:
            prompt = Item("system", prompt_of(self.skill, given)["prompt"])
        except InvalidInput as error:
            raise CapabilityInvalidInput(error.line, {"code": error.kind.cap}) from None
        message = None if "message" in placeholders(self.skill.prompt) else given.get("message")
        return PromptContents((prompt, Item("user", str(message))) if message else (prompt,))

    async def list_resources(self) -> Sequence[ResourceDescriptor]:
        """Return the resources; a file has the path that it is written to as its name."""
        return [
            ResourceDescriptor(_id(part), part["name"], mime_type=part.get("mimeType"))
            for part in self.skill.resources
        ]

    async def read_resource(self, id: str, ctx: CapabilityContext) -> ResourceContents:
        """Return the bytes, or `ipfs://<cid>`; raises CapabilityUnavailable."""
        name = next((x["name"] for x in self.skill.resources if _id(x) == id), None)
        if name is None or self.skill.read is None:
            raise CapabilityUnavailable(f"there is no resource {id[:64]!r}", {"code": "NOT_FOUND"})
        try:
            return ResourceContents(DataRef(data=self.skill.read(name)))
        except InvalidInput:
            return ResourceContents(DataRef(uri=id))


@dataclass(frozen=True, slots=True)
class RouterProvider:
    """A package of the runtime as a CapabilityProvider: tools, prompt, resources."""

    skill: Capability | None
    tools: Sequence[Capability]
    invoker: Invoker
    asker: Asker = field(default_factory=Refuse)

    def invocables(self) -> Sequence[Invocable]:
        """Return the tools."""
        return [RouterInvocable(tool, self.invoker, self.asker) for tool in self.tools]

    def resources(self) -> Sequence[ResourceProvider]:
        """Return the provider of the package's own file, its schema and the files it names."""
        return [RouterSkill(self.skill)] if self.skill is not None else []

    def prompts(self) -> Sequence[PromptProvider]:
        """Return the provider of the package's prompt, if it has one."""
        skill = self.skill
        return [RouterSkill(skill)] if skill is not None and skill.prompt is not None else []


@dataclass(frozen=True, slots=True)
class InvocableExecutor:
    """An Invocable as an executor of the runtime; `service` is the name that grants are for."""

    invocable: Invocable
    service: str

    def requests(self, arguments: Json) -> Sequence[Request]:
        """Return one call of the service: more is not known of a foreign tool."""
        return [ServiceRequest(self.service, self.invocable.spec().name)]

    async def run(self, arguments: Json, *, timeout_s: float) -> Json:
        """Run the invocable; raises Unavailable, InvalidInput or ExecutionFailed."""
        try:
            result = await self.invocable.invoke(InvocableRequest(arguments), CapabilityContext())
        except CapabilityUnavailable as error:
            raise Unavailable(str(error), Code.NODE_UNAVAILABLE, fix="try again later") from None
        except CapabilityInvalidInput as error:
            raise InvalidInput(str(error), fix="change the input by what it says") from None
        except CapabilityError as error:
            raise ExecutionFailed(str(error), fix="change the input, or call another") from None
        return _json(result)


def capabilities(
    provider: CapabilityProvider, *, name: str, version: str, digest: str
) -> Iterator[Capability]:
    """Yield the invocables of a provider as tools `<name>#<tool>`.

    Nothing is known of their effects: each first use is asked, and each call that is not said to
    read only, by `read_only` in the metadata of its spec.
    """
    owner = Owner("mcp", name, digest)
    for invocable in provider.invocables():
        spec = invocable.spec()
        reads = spec.metadata.get("read_only") is True
        yield Capability(
            CapabilityRef(f"{name}#{spec.name}", version),
            "tool",
            spec.name,
            spec.description,
            spec.input_schema or NO_INPUT,
            owner,
            annotations=ToolHints(read_only=reads, destructive=not reads),
            executor=InvocableExecutor(invocable, name),
        )


def _id(part: Json) -> str:
    """Return the URI of a resource; that of a file in a folder is its path there."""
    return str(part.get("uri", part["name"]))


def _json(result: InvocableResult) -> Json:
    match result.output:
        case Text(text):
            return {"text": text}
        case Structured(value):
            return value if isinstance(value, dict) else {"value": value}
        case Items(items):
            return {"items": [{"role": item.role, "text": item.text} for item in items]}
        case Data(data):
            if data.data is not None:
                what = "the output is binary data"
                raise ExecutionFailed(what, Code.OUTPUT_INVALID, fix="call another")
            return {"text": data.text} if data.text is not None else {"uri": data.uri}


def _raised(error: Json) -> CapabilityError:
    """Return agentkit's error for CAP's, whose code stays in the metadata."""
    metadata = {key: error[key] for key in ("code", "reason", "retryable", "details")}
    if error["code"] == "NOT_FOUND" or (error["retryable"] and error["code"] != "TIMEOUT"):
        return CapabilityUnavailable(error["message"], metadata)
    if error["code"] == "INVALID_INPUT":
        return CapabilityInvalidInput(error["message"], metadata)
    return CapabilityExecutionFailed(error["message"], metadata)
