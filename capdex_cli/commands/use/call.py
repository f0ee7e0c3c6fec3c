"""`capdex route` and `capdex call`: what an agent does with the router, typed by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from capdex.errors import InvalidInput
from capdex_cli.config.completion_cache import complete
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import TEXT, command
from capdex_cli.terminal.text import safe
from capdex_cli.views.calls import at_option, command_line, read_input, show_moves, show_result
from capdex_cli.views.installing import Terminal, open_agent

if TYPE_CHECKING:
    from capdex_router.policy.proposal import Proposal


@command("route", examples=['capdex route "What will the weather be in Oslo?"'])
@click.argument("message", type=TEXT)
async def route_command(app: App, message: str) -> None:
    """Tell which installed capability a message is for, and why.

    The answer is that of the router's tool `route` for the first message of a session.
    """
    async with open_agent(app) as agent:
        answer = agent.actions.route(message)
    if "capability" in answer:
        lines = [f"{answer['capability']}@{answer['version']}", *answer["tools"]]
    else:
        lines = answer.get("ambiguous", [])
    app.output.result(
        "route", answer, human=[*map(safe, lines), safe(f"because: {answer['why']}")], plain=lines
    )


@command(
    "call",
    examples=[
        'capdex call city-weather#get_forecast \'{"latitude": 59.9, "longitude": 10.7}\'',
        'capdex call did:nuwa:cap:note@1.0.0 \'{"message": "milk"}\'',
        "capdex call mail#send - --plan < input.json",
        "capdex call mail#send - --at https://api.example.org=http://127.0.0.1:8000 < input.json",
    ],
)
@click.argument("capability", type=TEXT, shell_complete=complete)
@click.argument("arguments", metavar="[JSON]", default="{}", type=TEXT)
@click.option("--plan", is_flag=True, help="Show the whole question about this call, and stop.")
@at_option
async def call_command(
    app: App, capability: str, arguments: str, plan: bool, at: dict[str, str]
) -> None:
    """Call a tool of an installed capability, and show its output.

    CAPABILITY is a name, a tool as NAME#TOOL, or a whole URI. JSON is the input, an object as the
    tool's schema says; `-` reads it from stdin. You are asked before a first access to a host,
    and before anything that may destroy something.
    """
    from dataclasses import replace

    from capdex_router.catalog.catalog import NOT_HERE
    from capdex_router.invoke.invoke import Caller

    given = read_input(arguments)
    if not plan:
        show_moves(app, at)
    async with open_agent(app, at=at) as agent:
        try:
            tool, invoker = agent.runtime.catalog.find(capability), agent.runtime.invoker
        except InvalidInput as error:
            if error.fix != NOT_HERE:
                raise
            fix = "capdex installed lists what is here, capdex install NAME gets a capability"
            raise replace(error, fix=fix) from None
        call = tool.ref.capability_id, tool.ref.version, given
        if plan:
            _show_plan(app, invoker.proposal(*call))
            return
        result = await invoker.invoke(*call, Caller(Terminal(app)))
    show_result(app, result, command_line("capdex", "call", capability, schema=tool.input_schema))


def _show_plan(app: App, proposal: Proposal | None) -> None:
    """Show what a person would be asked about a call, None for nothing."""
    from capdex_router.policy.consent import text

    shown = "nothing is asked" if proposal is None else text(proposal)
    human = [safe(line) for line in shown.splitlines()]
    value = None if proposal is None else proposal.to_json()
    app.output.result("call", {"proposal": value}, human=human, plain=human)
