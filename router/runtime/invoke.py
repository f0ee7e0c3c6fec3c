"""The one pipeline of every call, from whatever face it comes.

    look up ─> validate input ─> preflight ─> policy ─> consent ─> scope token ─> executor
            ─> output check ─> InvokeResult ─> audit

Nothing reaches an executor's `run` without the decision on what it would touch, and a call that a
person agreed to has that yes in the audit log before it runs.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import shlex
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import orjson
import structlog

from capdex.errors import CapdexError, Code, ExecutionFailed, InvalidInput, Refused, Unavailable
from router.model.capability import Capability, Executor
from router.model.refs import InvokeResult, Json
from router.model.requests import Request, StateRequest
from router.policy.consent import AnswerLater, Asker, Question, Refuse, clean
from router.policy.grants import Grant
from router.policy.permissions import Decision, decide, line
from router.policy.tokens import Authority, Token, carrying
from router.policy.turns import Turns
from router.runtime.audit import Audit
from router.runtime.catalog import Catalog

MAX_REQUESTS: Final = 64  # of one call
DAY_S: Final = 86_400.0

log = structlog.get_logger(part="router")


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on calls, shared between owners. A call waits for its turn within its deadline."""

    calls_at_once: int = 8
    calls_waiting: int = 1_024
    deadline_s: float = 30.0
    longest_deadline_s: float = 600.0
    input_bytes: int = 1024 * 1024
    output_bytes: int = 8 * 1024 * 1024
    first_use_days: float = 30.0  # how long a yes to the first use of a host lasts


class Rights(Protocol):
    """What persons granted, kept by this installation."""

    def granted(self, digest: str, tool: str) -> frozenset[str]:
        """Return the targets granted to a tool of the content with this digest."""
        ...

    def grant(self, grants: Sequence[Grant]) -> None:
        """Keep some more grants."""
        ...


@dataclass(frozen=True, slots=True)
class Caller:
    """The side that calls: who can be asked, its session, and its deadline in seconds."""

    asker: Asker = field(default_factory=Refuse)
    session: str | None = None
    timeout_s: float | None = None


Check = Callable[[Json, Any], str | None]
"""Returns why a value breaks a schema, and None if it does not (router.runtime.schema)."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that policy has passed: what runs, and what it may touch."""

    capability: Capability
    executor: Executor
    arguments: Json
    requests: Sequence[Request]
    consent: str


class Invoker:
    """Invokes capabilities of a catalogue."""

    def __init__(
        self,
        catalog: Catalog,
        *,
        rights: Rights,
        audit: Audit,
        authority: Authority,
        check: Check,
        redact: Callable[[Any], Any] = lambda value: value,
        renew: Callable[[str], Awaitable[None]] | None = None,
        limits: Limits = Limits(),
    ) -> None:
        self._catalog = catalog
        self._rights = rights
        self._audit = audit
        self._authority = authority
        self._check = check
        self._redact = redact
        self._renew = renew
        self._limits = limits
        self._turns = Turns(limits.calls_at_once, limits.calls_waiting)

    async def invoke(
        self, capability_id: str, version: str | None, arguments: Any, caller: Caller
    ) -> InvokeResult:
        """Invoke a capability (CAP, Invocation); every error is a result with one of CAP's codes.

        Without a version the highest that is there is taken.
        """
        started = time.perf_counter()
        noted: Json = {"call": secrets.token_hex(8), "capability_id": str(capability_id)[:256]}
        if caller.session is not None:
            noted["session"] = caller.session
        failure: CapdexError | None = None
        output: Json | None = None
        try:
            if self._renew is not None:  # a program that changed is learned again
                await self._renew(capability_id)
            capability = self._catalog.get(capability_id, version)
            output = await self._run(capability, arguments, caller, noted)
        except CapdexError as error:
            failure = error
        except AnswerLater:
            raise
        except asyncio.CancelledError:
            self._audit.write("call", **noted, ok=False, code="CANCELLED")
            raise
        except Exception as error:  # a bug of ours: its details only in the log
            log.exception("call failed", capability_id=capability_id)
            failure = ExecutionFailed(
                "a fault of the router", Code.INTERNAL, why=type(error).__name__
            )
        took = round((time.perf_counter() - started) * 1000)
        result = (
            InvokeResult(output, None, took)
            if failure is None
            else self._redacted(InvokeResult.of_error(failure, took))
        )
        code = None if result.error is None else result.error["reason"]
        self._audit.write("call", **noted, ok=result.ok, code=code, duration_ms=took)
        return result

    async def _run(
        self, capability: Capability, arguments: Any, caller: Caller, noted: Json
    ) -> Json:
        noted |= {"version": capability.ref.version, "digest": capability.owner.digest}
        self._check_input(capability, arguments, noted)
        if capability.executor is None:
            return prompt_of(capability, arguments)
        requests = capability.executor.requests(arguments)
        if len(requests) > MAX_REQUESTS:
            raise InvalidInput(f"the call would make {len(requests)} accesses at once")
        noted["touches"] = [self._redact(line(request)) for request in requests]
        consent = await self._consent(capability, arguments, requests, caller, noted)
        noted["consent"] = consent
        call = _Call(capability, capability.executor, arguments, requests, consent)
        return self._check_output(capability, await self._execute(call, caller))

    def _check_input(self, capability: Capability, arguments: Any, noted: Json) -> None:
        try:
            data = orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS)
        except orjson.JSONEncodeError as error:
            raise InvalidInput("the input is not JSON", why=str(error)) from None
        noted["input_sha256"] = hashlib.sha256(data).hexdigest()
        if len(data) > self._limits.input_bytes:
            raise InvalidInput(f"the input has {len(data)} bytes", Code.TOO_LARGE)
        why = self._check(capability.input_schema, arguments)
        if why is None and not isinstance(arguments, dict):
            why = "it is not an object"
        if why is not None:
            raise InvalidInput("the input breaks the input schema", why=self._redact(why))

    async def _consent(
        self,
        capability: Capability,
        arguments: Json,
        requests: Sequence[Request],
        caller: Caller,
        noted: Json,
    ) -> str:
        """Return how the call was agreed to; raises Refused."""
        owner, tool = capability.owner, tool_of(capability)
        decision = decide(capability, requests, self._rights.granted(owner.digest, tool))
        if decision.answer == "allow":
            return "granted"
        shown = orjson.dumps(self._redact(arguments)).decode("utf-8")
        asked = question(capability, requests, decision, shown)
        agreed = await caller.asker.ask(asked)
        # The answer is on record before anything happens.
        self._audit.write("consent", **noted, asked=list(decision.missing), agreed=agreed)
        if not agreed:
            raise Refused("the person did not agree to this call", Code.NO_CONSENT)
        if not decision.destructive:
            until = time.time() + self._limits.first_use_days * DAY_S
            self._rights.grant(
                [
                    Grant(capability.ref.capability_id, owner.digest, tool, target, until)
                    for target in decision.missing
                ]
            )
        return "asked"

    async def _execute(self, call: _Call, caller: Caller) -> Any:
        limit = min(caller.timeout_s or self._limits.deadline_s, self._limits.longest_deadline_s)
        deadline = time.monotonic() + limit
        owner = call.capability.owner
        try:
            async with asyncio.timeout(limit), self._turns.turn(f"{owner.source} {owner.name}"):
                left = max(0.0, deadline - time.monotonic())
                with carrying(self._token(call, left)):
                    return await call.executor.run(call.arguments, timeout_s=left)
        except TimeoutError:
            raise Unavailable(
                f"the tool did not answer within {limit:g} s", Code.TIMEOUT, fix="try again"
            ) from None

    def _token(self, call: _Call, left: float) -> str | None:
        """Return a token for the state verbs of this call alone, until its deadline."""
        verbs = [request for request in call.requests if isinstance(request, StateRequest)]
        if not verbs:
            return None
        owner = call.capability.owner
        token = Token(
            jti=secrets.token_hex(8),
            package=owner.digest,
            scope=owner.scope or "",
            verbs=tuple(sorted({request.verb for request in verbs})),
            schema_uris=tuple(sorted({request.schema_uri for request in verbs})),
            expires=time.time() + left,
        )
        return self._authority.sign(token)

    def _check_output(self, capability: Capability, output: Any) -> Json:
        try:
            data = orjson.dumps(output)
        except orjson.JSONEncodeError as error:
            raise _bad_output(f"it is not JSON: {error}") from None
        if len(data) > self._limits.output_bytes:
            raise _bad_output(f"it has {len(data)} bytes")
        if not isinstance(output, dict):
            raise _bad_output("it is not an object")
        found: Json = self._redact(output)
        schema = capability.output_schema
        why = None if schema is None else self._check(schema, found)
        if why is not None:
            raise _bad_output(self._redact(why))
        return found

    def _redacted(self, result: InvokeResult) -> InvokeResult:
        return InvokeResult(None, self._redact(result.error), result.duration_ms)


def question(
    capability: Capability, requests: Sequence[Request], decision: Decision, shown: str
) -> Question:
    """Return the question about one call, with the command that grants what is missing.

    `shown` is the input as text, without secrets.
    """
    ref = capability.ref
    named = f"{ref.capability_id}@{ref.version}"
    doubt = "It may destroy or change something. " if decision.destructive else ""
    return Question(
        f"{doubt}Let {clean(named)} do this?",
        lines=(*(clean(line(request), 1_000) for request in requests), f"input: {clean(shown)}"),
        quoted=(("description", clean(capability.description)),),
        requests=tuple(requests),
        grant=shlex.join(
            ["capdex", "grant", named, *decision.missing, "--digest", capability.owner.digest]
        ),
    )


def tool_of(capability: Capability) -> str:
    """Return the name of a tool within its owner; that of a skill is empty."""
    return capability.ref.capability_id.partition("#")[2]


def prompt_of(capability: Capability, arguments: Json) -> Json:
    """Return the output of a skill: its prompt, as its publisher wrote it, and what it was given.

    Raises InvalidInput NOT_FOUND if nothing here runs the capability.
    """
    if capability.kind != "skill":
        raise InvalidInput(
            f"nothing here runs {capability.ref.capability_id}",
            Code.NOT_FOUND,
            why="its package binds it to nothing that the router knows",
        )
    return {"prompt": capability.prompt or "", "vars": arguments}


def _bad_output(why: str) -> ExecutionFailed:
    return ExecutionFailed(
        "the output of the tool cannot be used", Code.OUTPUT_INVALID, why=why[:500]
    )
