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
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import Any, Final

import orjson
import structlog

from capdex.errors import (
    CapdexError,
    Code,
    ExecutionFailed,
    InvalidInput,
    Unavailable,
    UsageError,
)
from capdex.json import Json
from capdex.manifest.prompt import fill
from capdex.net.turns import Turns
from capdex_router.catalog.catalog import Catalog
from capdex_router.home.audit_log import AuditLog
from capdex_router.invoke.validation import canonical
from capdex_router.model.capability import Capability, Check, Executor
from capdex_router.model.refs import BUG, InvokeResult, structured_of
from capdex_router.model.requests import Request, StateRequest
from capdex_router.policy.consent import AnswerLater, Asker, Refuse, agree
from capdex_router.policy.grant_file import GrantFile
from capdex_router.policy.permissions import asks_each_time, destroys, line, missing, target
from capdex_router.policy.proposal import Proposal, accessed, sorted_json
from capdex_router.policy.quoting import escaped
from capdex_router.policy.tokens import Token, carrying

MAX_REQUESTS: Final = 64  # of one call
LATE_S: Final = 0.25  # an executor ends by itself before, and says better why it is late
_MAYBE: Final = "it may have been done: find that out before you call it again"
_NO_JSON: Final = "give numbers within 64 bits, and text without half of a surrogate pair"

log = structlog.get_logger(part="router")


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Bounds on calls, shared between owners. A call waits for its turn within its deadline."""

    calls_at_once: int = 8
    calls_waiting: int = 1_024
    deadline_s: float = 30.0
    longest_deadline_s: float = 600.0
    input_bytes: int = 1024 * 1024
    output_bytes: int = 8 * 1024 * 1024
    first_use_days: float = 30.0  # how long a yes to the first use of a host lasts


@dataclass(frozen=True, slots=True)
class Caller:
    """The side that calls: who can be asked, its session, and its deadline in seconds."""

    asker: Asker = field(default_factory=Refuse)
    session: str | None = None
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class _Call:
    """A call with a valid input: what runs, and what it would touch."""

    capability: Capability
    executor: Executor
    arguments: Json
    requests: Sequence[Request]


@dataclass(eq=False)
class Invoker:
    """Invokes capabilities of a catalogue."""

    catalog: Catalog
    _: KW_ONLY
    rights: GrantFile
    audit: AuditLog
    check: Check
    redact: Callable[[Any], Any] = lambda value: value
    renew: Callable[[str], Awaitable[None]] | None = None
    limits: CallLimits = CallLimits()

    def __post_init__(self) -> None:
        self._turns = Turns(self.limits.calls_at_once, self.limits.calls_waiting)

    async def invoke(
        self, capability_id: str, version: str | None, arguments: object, caller: Caller
    ) -> InvokeResult:
        """Invoke a capability, or its highest version; an error is a result with a code of CAP."""
        started = time.perf_counter()
        audited: Json = {"call": secrets.token_hex(8), "capability_id": str(capability_id)[:256]}
        if caller.session is not None:
            audited["session"] = caller.session
        failure: CapdexError | None = None
        output: Json | None = None
        try:
            if self.renew is not None:  # a program that changed is learned again
                await self.renew(capability_id)
            capability = self.catalog.get(capability_id, version)
            output = await self._run(capability, arguments, caller, audited)
        except CapdexError as error:
            failure = error
        except AnswerLater:
            raise
        except (asyncio.CancelledError, KeyboardInterrupt):
            self.audit.write("call", **audited, ok=False, code="CANCELLED")
            raise
        except Exception as error:  # a bug of ours: its details only in the log
            log.exception("call failed", capability_id=capability_id)
            what = "a fault of the router"
            failure = ExecutionFailed(what, Code.INTERNAL, why=type(error).__name__, fix=BUG)
        took = round((time.perf_counter() - started) * 1000)
        told = self.redact(InvokeResult.of_error(failure, took).error) if failure else None
        result, code = InvokeResult(output, told, took), told and told["reason"]
        try:
            self.audit.write("call", **audited, ok=result.ok, code=code, duration_ms=took)
        except UsageError as error:
            if "consent" not in audited:  # nothing has run
                raise
            ran = "the call has run: do not repeat it" if result.ok else _MAYBE
            raise replace(error, fix=f"{error.fix}; {ran}") from None
        return result

    def accepts(self, capability: Capability, arguments: object) -> bool:
        """Return True if a capability can be called with these arguments, by its schema."""
        try:
            self._check_input(capability, arguments, {})
        except InvalidInput:
            return False
        return True

    def proposal(
        self, capability_id: str, version: str | None, arguments: object
    ) -> Proposal | None:
        """Return what a person would be asked about a call; None if nothing is to be asked.

        Nothing runs, and nothing is written. Raises CapdexError for a call that cannot run.
        """
        audited: Json = {}
        call = self._call(self.catalog.get(capability_id, version), arguments, audited)
        return None if call is None else self._proposal(call, audited)

    async def _run(
        self, capability: Capability, arguments: Any, caller: Caller, audited: Json
    ) -> Json:
        audited |= {"version": capability.ref.version, "digest": capability.owner.digest}
        call = self._call(capability, arguments, audited)
        if call is None:
            return prompt_of(capability, arguments)
        self.audit.check()
        proposal = self._proposal(call, audited)
        if proposal is not None:
            await agree(proposal, caller.asker, self.audit.write, **audited)
            # It may have been removed while a person was asked: then this raises NOT_FOUND.
            self.catalog.get(capability.ref.capability_id, capability.ref.version)
            self.rights.grant(proposal.grants(time.time()))
        audited["consent"] = "granted" if proposal is None else "asked"
        return self._check_output(capability, await self._execute(call, caller))

    def _call(self, capability: Capability, arguments: object, audited: Json) -> _Call | None:
        """Return the call of a tool, None for a skill; raises CapdexError for one that cannot be.

        The input that is shown, judged and sent is the canonical one, whatever the order of keys.
        """
        given = self._check_input(capability, arguments, audited)
        if capability.executor is None:
            return None
        requests = capability.executor.requests(given)
        if len(requests) > MAX_REQUESTS:
            fix = f"split it into calls of at most {MAX_REQUESTS}"
            raise InvalidInput(f"the call would make {len(requests)} accesses at once", fix=fix)
        call = _Call(capability, capability.executor, given, requests)
        audited["touches"] = [line(self._shown(request)) for request in requests]
        return call

    def _check_input(self, capability: Capability, arguments: object, audited: Json) -> Json:
        try:
            data = canonical(arguments)
        except orjson.JSONEncodeError as error:
            raise InvalidInput("the input is not JSON", why=str(error), fix=_NO_JSON) from None
        audited["input_sha256"] = hashlib.sha256(data).hexdigest()
        if len(data) > self.limits.input_bytes:
            fix = f"send at most {self.limits.input_bytes} bytes"
            raise InvalidInput("the input is too large", Code.TOO_LARGE, fix=fix)
        given: Json = orjson.loads(data)  # what has no form in JSON, such as 1e400, is null there
        schema = capability.closed_schema or capability.input_schema
        why = self.check(schema, given) if isinstance(arguments, dict) else "it is not an object"
        if why is not None:
            raise InvalidInput("the input breaks the input schema", why=self.redact(why))
        return given

    def _proposal(self, call: _Call, audited: Json) -> Proposal | None:
        """Return what a person must agree to before the call runs; None if all is granted."""
        capability, owner = call.capability, call.capability.owner
        granted = self.rights.granted(owner.name, owner.digest, tool_of(capability))
        wanted = missing(capability, call.requests, granted)
        if not wanted:
            return None
        once = destroys(wanted)
        given = self.redact(call.arguments)
        named = f"{capability.ref.capability_id}@{capability.ref.version}"
        doubt = "It may destroy or change something. " if once else ""
        hints = capability.annotations
        harmless = owner.source == "mcp" and not asks_each_time("mcp", hints, call.requests)
        says = ("its server says that it destroys nothing: later calls are not asked about",)
        before = self.rights.read().by_name.get(capability.ref.capability_id, ())
        changed = before and owner.digest not in {grant.digest for grant in before}
        other = ("its content is not that to which a person agreed before",)
        return Proposal(
            "call",
            f"{doubt}Let {escaped(named)} do this?",
            capability.ref.capability_id,
            capability.ref.version,
            owner.digest,
            ("capdex", "grant", named, *wanted, "--digest", owner.digest),
            owner.signer,
            tool_of(capability),
            accesses=tuple(
                replace(accessed(self._shown(request), given), target=target(request))
                for request in call.requests
            ),
            input=sorted_json(given),
            input_sha256=audited["input_sha256"],
            facts=(*(says if harmless else ()), *(other if changed else ())),
            words=(("description", capability.description),),
            granted=() if once else wanted,
            days=None if once else self.limits.first_use_days,
        )

    def _shown(self, request: Request) -> Request:
        """Return a request without any secret, for people and the audit log."""
        plain = {part.name: self._hidden(getattr(request, part.name)) for part in fields(request)}
        return replace(request, **plain)

    def _hidden(self, value: object) -> Any:
        if isinstance(value, tuple):
            return tuple(map(self._hidden, value))
        if isinstance(value, bytes):
            try:
                return orjson.dumps(self.redact(orjson.loads(value)))
            except orjson.JSONDecodeError:  # a form
                return str(self.redact(value.decode())).encode()
        return self.redact(value) if isinstance(value, str) else value

    async def _execute(self, call: _Call, caller: Caller) -> Any:
        limit = min(caller.timeout_s or self.limits.deadline_s, self.limits.longest_deadline_s)
        deadline = time.monotonic() + limit
        owner, began = call.capability.owner, False
        turn = self._turns.turn(f"{owner.source} {owner.name}")
        state = frozenset(x for x in call.requests if isinstance(x, StateRequest))
        try:
            async with asyncio.timeout(limit + LATE_S), turn:
                if (left := deadline - time.monotonic()) <= 0:  # its turn came too late
                    raise TimeoutError
                began = True
                # For the state requests of this call alone, until its deadline.
                token = Token(owner.digest, state, time.time() + left) if state else None
                with carrying(token):
                    return await call.executor.run(call.arguments, timeout_s=left)
        except TimeoutError:
            what = f"the tool did not answer within {limit:g} s"
            late: CapdexError = Unavailable(what, fix="try again")
        except CapdexError as error:
            if error.code is not Code.TIMEOUT and "sent" not in (error.details or {}):
                raise
            late = error
        if began and asks_each_time(owner.source, call.capability.annotations, call.requests):
            late = replace(late, code=Code.MAYBE_DONE, fix=_MAYBE)
        raise late

    def _check_output(self, capability: Capability, output: object) -> Json:
        try:
            data = orjson.dumps(output)
        except orjson.JSONEncodeError as error:
            raise _bad_output(f"it is not JSON: {error}") from None
        if len(data) > self.limits.output_bytes:
            raise _bad_output(f"it has {len(data)} bytes")
        if not isinstance(output, dict):
            raise _bad_output("it is not an object")
        redacted: Json = self.redact(output)
        schema = capability.output_schema
        try:
            why = None if schema is None else self.check(schema, structured_of(redacted))
        except InvalidInput as error:  # of a schema that is not the caller's
            why = error.line
        if why is not None:
            raise _bad_output(self.redact(why))
        return redacted


def tool_of(capability: Capability) -> str:
    """Return the name of a tool within its owner; that of a skill is empty."""
    return capability.ref.capability_id.partition("#")[2]


def prompt_of(capability: Capability, arguments: Json) -> Json:
    """Return the output of a skill: its prompt with what it was given in its placeholders (P10).

    Raises ExecutionFailed for a tool that nothing here runs, InvalidInput for too long values.
    """
    if capability.kind != "skill":
        raise ExecutionFailed(
            f"nothing here runs {capability.ref.capability_id}",
            why="its package binds it to nothing that the router knows",
            fix="do it with a tool of your own, or call another",
        )
    texts = {name: value for name, value in arguments.items() if isinstance(value, str)}
    return {"prompt": fill(capability.prompt or "", texts), "vars": arguments}


def _bad_output(why: str) -> ExecutionFailed:
    message = "the tool ran, but its output cannot be used"
    fix = "look at what it did before you call it again; its author can mend it"
    return ExecutionFailed(message, Code.OUTPUT_INVALID, why[:500], fix)
