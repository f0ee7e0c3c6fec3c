"""`capdex route` and `capdex call`: what an agent does with the router, typed by hand."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from capdex.errors import Code, ExecutionFailed, InvalidInput
from cli.agent.runtime import open_agent
from cli.terminal.app import App
from cli.terminal.click_commands import command
from cli.terminal.text import safe
from cli.views.installing import Terminal

if TYPE_CHECKING:
    from router.model.refs import InvokeResult
    from router.policy.proposal import Proposal

MAX_INPUT_BYTES: Final = 1024 * 1024


@command("route", examples=['capdex route "What will the weather be in Oslo?"'])
@click.argument("message")
def route_command(app: App, message: str) -> None:
    """Tell which installed capability a message is for, and why.

    The answer is that of the router's tool `route` for the first message of a session.
    """
    answer = app.run(_route(app, message))
    if "capability" in answer:
        lines = [f"{answer['capability']}@{answer['version']}", *answer["tools"]]
    else:
        lines = answer.get("ambiguous", [])
    app.output.result(
        "route", answer, human=[*map(safe, lines), safe(f"because: {answer['why']}")], plain=lines
    )


async def _route(app: App, message: str) -> dict[str, Any]:
    async with open_agent(app) as agent:
        return agent.actions.route(message)


@command(
    "call",
    examples=[
        'capdex call city-weather#current_weather \'{"latitude": 59.9, "longitude": 10.7}\'',
        'capdex call did:nuwa:cap:note@1.0.0 \'{"message": "milk"}\'',
        "capdex call mail#send - --plan < input.json",
    ],
)
@click.argument("capability")
@click.argument("arguments", metavar="[JSON]", default="{}")
@click.option("--plan", is_flag=True, help="Show the whole question about this call, and stop.")
def call_command(app: App, capability: str, arguments: str, plan: bool) -> None:
    """Call a tool of an installed capability, and show its output.

    CAPABILITY is a name, a tool as NAME#TOOL, or a whole URI. JSON is the input, an object as the
    tool's schema says; `-` reads it from stdin. You are asked before a first access to a host,
    and before anything that may destroy something.
    """
    given = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1) if arguments == "-" else arguments.encode()
    if len(given) > MAX_INPUT_BYTES:
        raise InvalidInput(f"the input has more than {MAX_INPUT_BYTES} bytes", Code.TOO_LARGE)
    if plan:
        _show_plan(app, app.run(_proposal(app, capability, given)))
        return
    result, example = app.run(_call(app, capability, given))
    if result.error is not None:
        raise _error(result.error, shlex.join(["capdex", "call", capability, example]))
    import orjson

    shown = orjson.dumps(result.output, option=orjson.OPT_INDENT_2).decode("utf-8")
    human = [safe(line) for line in shown.splitlines()]
    app.output.result("call", result.to_json(), human=human, plain=human)


def _read(given: bytes) -> Any:
    import orjson

    try:
        return orjson.loads(given)
    except orjson.JSONDecodeError as error:
        raise InvalidInput(
            "the input is not JSON", why=str(error), fix="quote it: capdex call NAME '{\"a\": 1}'"
        ) from None


async def _proposal(app: App, name: str, given: bytes) -> Proposal | None:
    """Return what a person would be asked about a call, None for nothing."""
    arguments = _read(given)
    async with open_agent(app) as agent:
        ref = agent.runtime.catalog.find(name).ref
        return agent.runtime.invoker.proposal(ref.capability_id, ref.version, arguments)


def _show_plan(app: App, proposal: Proposal | None) -> None:
    from router.policy.consent import text

    shown = "nothing is asked" if proposal is None else text(proposal)
    human = [safe(line) for line in shown.splitlines()]
    value = None if proposal is None else proposal.to_json()
    app.output.result("call", {"proposal": value}, human=human, plain=human)


async def _call(app: App, name: str, given: bytes) -> tuple[InvokeResult, str]:
    """Return the result of a call, and an example of its input."""
    import orjson

    from router.faces.arguments import example
    from router.runtime.invoke import Caller

    arguments = _read(given)
    async with open_agent(app) as agent:
        capability = agent.runtime.catalog.find(name)
        ref = capability.ref
        result = await agent.runtime.invoker.invoke(
            ref.capability_id, ref.version, arguments, Caller(Terminal(app))
        )
        return result, orjson.dumps(example(capability.input_schema)).decode("utf-8")


def _error(found: dict[str, Any], example: str) -> ExecutionFailed:
    """Return the error of a result as the one that a command ends with."""
    details = dict(found["details"])
    if found["reason"] == Code.INVALID_INPUT:
        details.setdefault("fix", f"for example: {example}")
    return ExecutionFailed(
        found["message"],
        Code(found["reason"]),
        why=str(details.pop("why", "")),
        fix=str(details.pop("fix", "")),
        details=details or None,
    )
