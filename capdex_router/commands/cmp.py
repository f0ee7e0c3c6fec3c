"""The face of CMP, for programs on the socket: domains, manifests, capabilities, intent, schema.

Two shapes are served. A request with `jsonrpc` follows CMP v0.1.0, section 5, and is answered as
JSON-RPC 2.0; one without follows the examples of CMP's Router Protocol.

A person agrees to commands by `capdex grant`, whatever `confirm` says. A caller that speaks for its
user, as the specification has it, agrees itself: the person who starts the router decides that.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from capdex.errors import CapdexError, Code, InvalidInput
from capdex.json import Json
from capdex_router.catalog.catalog import Listed
from capdex_router.commands.intents.manifest import CommandTool, Intent
from capdex_router.commands.intents.match import is_guarded, match
from capdex_router.commands.source import ref_of
from capdex_router.invoke.invoke import Caller
from capdex_router.model.refs import InvokeResult
from capdex_router.policy.proposal import Proposal

CALLER: Final = "socket, whose caller agrees"  # the session in the audit log
VERSION: Final = "0.1.0"
INVALID_REQUEST: Final = -32600
NO_METHOD: Final = -32601
NO_INTENT: Final = -32000
NO_TOOL: Final = -32001
FAILED: Final = -32003
AMBIGUOUS: Final = -32004
_CODES: Final = {"INVALID_INPUT": -32602, "NOT_FOUND": NO_TOOL}
METHODS: Final = ("domains", "manifests", "capabilities", "intent", "schema")

Invoke = Callable[[str, str | None, Json, Caller], Awaitable[InvokeResult]]


class _Agreed:
    """Agrees: an intent that needs a confirmation has got it before it is invoked."""

    async def ask(self, proposal: Proposal) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Cmp:
    """The methods over learned tools; `invoke` is the router's pipeline.

    `listed` are all capabilities. With `caller_agrees` a request's `confirm` is consent.
    """

    tools: Callable[[], Sequence[CommandTool]]
    listed: Callable[[], Iterable[Listed]]
    invoke: Invoke
    caller_agrees: bool = False

    async def answer(self, request: Json, caller: Caller) -> Json:
        """Return the answer to a request of either shape; never raises."""
        rpc = "jsonrpc" in request
        key = request.get("id")
        if rpc and request["jsonrpc"] != "2.0":
            return _rpc_error(key, INVALID_REQUEST, "jsonrpc must be 2.0")
        name = request.get("method")
        method = name.removeprefix("cmp.") if isinstance(name, str) else ""
        if method not in METHODS or (rpc and method == name):
            if rpc:
                return _rpc_error(key, NO_METHOD, "no such method")
            return _failure(InvalidInput("no such method", fix=f"use {', '.join(METHODS)}"))
        # The examples put `domain` and `tool` beside `method`, and the rest into `params`.
        params = request.get("params", {} if rpc else request)
        try:
            if not isinstance(params, dict):
                raise InvalidInput("params must be an object", fix="give {} for none")
            result = await getattr(self, f"_{method}")(params, rpc=rpc, caller=caller)
        except CapdexError as error:
            if not rpc:
                return _failure(error)
            # A wish that nothing matches and a tool that nobody has are two codes.
            code = AMBIGUOUS if error.code == Code.AMBIGUOUS else _CODES.get(error.kind.cap, FAILED)
            code = NO_INTENT if method == "intent" and error.code == Code.NOT_FOUND else code
            return _rpc_error(key, code, error.line, error.to_json())
        return {"jsonrpc": "2.0", "result": result, "id": key, "cmp": VERSION} if rpc else result

    async def _domains(self, _params: Json, **_: object) -> Json:
        tools = [tool.manifest.domain for tool in self.tools()]
        return {"domains": list(dict.fromkeys([*tools, *self._all_domains()]))}

    async def _manifests(self, params: Json, *, rpc: bool, **_: object) -> Json:
        domain, tools = self._in_domain(params)
        if domain and not tools and domain not in self._all_domains():
            raise InvalidInput(
                f"no tool is of the domain {domain[:64]!r}",
                Code.NOT_FOUND,
                fix="cmp.domains lists the domains",
            )
        if rpc:
            return {"manifests": [tool.manifest.to_json() for tool in tools]}
        return {"tools": [{"name": x.manifest.name, "summary": x.manifest.summary} for x in tools]}

    async def _capabilities(self, params: Json, *, rpc: bool, **_: object) -> Json:
        def shown(intent: Intent) -> Json:
            row: Json = {"patterns": list(intent.patterns), "confirm": is_guarded(intent)}
            return {**row, "destructive": intent.destructive} if rpc else row

        return {"intents": [shown(intent) for intent in self._tool(params).intents]}

    async def _schema(self, params: Json, **_: object) -> Json:
        pattern = _required(params, "pattern")
        for intent in self._tool(params).intents:
            if pattern in intent.patterns:
                return intent.to_json()
        raise InvalidInput(
            f"the tool has no pattern {pattern[:80]!r}",
            Code.NOT_FOUND,
            fix="cmp.capabilities lists the patterns of a tool",
        )

    async def _intent(self, params: Json, *, rpc: bool, caller: Caller) -> Json:
        context = params.get("context", {})
        if not isinstance(context, dict):
            raise InvalidInput(
                "the context must be an object", fix='give it as in {"context": {"path": "."}}'
            )
        want, named = _required(params, "want"), params.get("tool") is not None
        hit = match(want, [self._tool(params)] if named else self._in_domain(params)[1])
        tool, intent = hit.tool, hit.intent
        names = [parameter.name for parameter in intent.template.parameters]
        arguments = {name: context[name] for name in names if name in context}
        command = intent.template.display(arguments)
        shown = {"tool": tool.manifest.name, "command": command}
        if is_guarded(intent) and params.get("confirm") is not True:
            return _unconfirmed(shown, "This command needs a confirmation.")
        if self.caller_agrees:
            caller = replace(caller, asker=_Agreed(), session=CALLER)
        result = await self.invoke(ref_of(tool, intent).capability_id, None, arguments, caller)
        if result.error is None:
            return {
                "success": True,
                "output" if rpc else "result": _unwrapped(result.output),
                **shown,
            }
        # The caller's `confirm` does not replace a person's consent, where that is asked for.
        if result.error.get("reason") == Code.CONFIRM_NEEDED:
            details = result.error.get("details") or {}
            return _unconfirmed(shown, f"{result.error.get('message')}; {details.get('fix', '')}")
        raise _Told(result.error)

    def _all_domains(self) -> list[str]:
        return [listed.domain or "general" for listed in self.listed()]

    def _in_domain(self, params: Json) -> tuple[str | None, list[CommandTool]]:
        """Return the domain that a request names, and the tools in it; without one all of them."""
        domain = None if params.get("domain") is None else _required(params, "domain")
        return domain, [tool for tool in self.tools() if domain in (None, tool.manifest.domain)]

    def _tool(self, params: Json) -> CommandTool:
        name = _required(params, "tool")
        for tool in self.tools():
            if tool.manifest.name == name:
                return tool
        raise InvalidInput(
            f"there is no tool {name[:64]!r}", Code.NOT_FOUND, fix="cmp.manifests lists the tools"
        )


class _Told(CapdexError):
    """A failure that the pipeline has already put into JSON."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        self.told = dict(error)
        code = error.get("reason", error.get("code"))
        super().__init__(
            str(error.get("message", "")),
            Code(code) if code in Code.__members__ else Code.EXECUTION_FAILED,
        )

    def to_json(self) -> Json:
        return self.told


def _unwrapped(output: Json | None) -> Any:
    # An output that is not an object travels as {"result": …}, since CAP's outputs are objects.
    return output["result"] if output is not None and set(output) == {"result"} else output


def _unconfirmed(shown: Json, message: str) -> Json:
    return {"success": False, "reason": "confirmation_required", **shown, "message": message}


def _required(params: Json, key: str) -> str:
    value = params.get(key)
    if not isinstance(value, str) or not value:
        raise InvalidInput(
            f"the request needs a text as {key}", fix=f'give it as in {{"{key}": "…"}}'
        )
    return value


def _failure(error: CapdexError) -> Json:
    candidates = (error.details or {}).get("candidates")
    return {
        "success": False,
        "reason": "ambiguous" if error.code == Code.AMBIGUOUS else str(error.code).lower(),
        "message": error.line,
        "error": error.to_json(),
        **({"candidates": candidates} if candidates else {}),
    }


def _rpc_error(key: object, code: int, message: str, data: Json | None = None) -> Json:
    error: Json = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "error": error, "id": key, "cmp": VERSION}
