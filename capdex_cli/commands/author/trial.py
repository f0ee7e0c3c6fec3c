"""`capdex try`: the request that a tool of a file makes, before anything is published."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import click

from capdex.errors import InvalidInput
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import TEXT, command
from capdex_cli.terminal.file_arguments import read
from capdex_cli.terminal.text import safe
from capdex_cli.views.calls import at_option, command_line, read_input, show_moves, show_result
from capdex_cli.views.installing import Terminal, router_home


@command(
    "try",
    examples=[
        'capdex try weather.acp.yaml#current_weather \'{"latitude": 59.9, "longitude": 10.7}\'',
        "capdex try weather.acp.yaml#current_weather - --send < input.json",
        "capdex try mail.acp.yaml#send '{}' --at https://api.example.org=http://127.0.0.1:8000",
    ],
)
@click.argument("tool", metavar="FILE#TOOL")
@click.argument("arguments", metavar="[JSON]", default="{}", type=TEXT)
@click.option("--send", is_flag=True, help="Send it, after you agreed as to a call.")
@at_option
def try_command(app: App, tool: str, arguments: str, send: bool, at: dict[str, str]) -> None:
    """Show the request that a tool of a file makes; with --send, send it.

    The file need not be signed or published; #TOOL may be left out if one tool has a binding. JSON
    is the input, an object as the tool's schema says; `-` reads it from stdin. Secrets are shown
    by their names. `capdex secret` stores one for a host, for --at that of its second URL.
    """
    from capdex.manifest.manifest import read as read_manifest
    from capdex_router import trial
    from capdex_router.policy.secrets import Secrets

    name, _, called = tool.rpartition("#") if "#" in tool else (tool, "", "")
    file = read_manifest(read(name))
    meant, given, home = trial.chosen(file, called), read_input(arguments), router_home()
    example = command_line("capdex", "try", f"{name}#{meant.name}", schema=meant.parameters)
    show_moves(app, at)
    if send:
        secrets = Secrets(home.secrets)
        call = trial.send(home, file, meant, given, at, secrets=secrets, asker=Terminal(app))
        show_result(app, app.run(call), example)
        return
    try:
        requests = app.run(trial.requests(home, file, meant, given, at))
    except InvalidInput as error:
        raise replace(error, fix=error.fix or f"for example: {example}") from None
    human = [safe(line) for request in requests for line in _lines(request)]
    app.output.results("request", requests, human=human, plain=human)
    app.output.say("  nothing was sent: --send sends it")


def _lines(request: dict[str, Any]) -> Iterator[str]:
    """Yield a request as text: an HTTP message, or the parts of another call."""
    if "url" not in request:
        import orjson

        for key, value in request.items():
            yield f"{key}: {value if isinstance(value, str) else orjson.dumps(value).decode()}"
        return
    yield f"{request['method']} {request['url']}"
    yield from (f"{key}: {value}" for key, value in request["headers"].items())
    if request["body"] is not None:
        yield from ("", *request["body"].splitlines())
