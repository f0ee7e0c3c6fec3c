"""`capdex router`: one MCP server over stdin and stdout for all that an agent may use."""

from __future__ import annotations

import shlex
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import click

from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import command
from capdex_cli.views.calls import addresses

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


def _servers(
    ctx: click.Context, _: click.Parameter, values: tuple[str, ...]
) -> dict[str, list[str]]:
    """Return the command of each server by its name."""
    servers: dict[str, list[str]] = {}
    for value in values:
        name, _separator, text = value.partition("=")
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise click.BadParameter(f"{value!r}: {error}", ctx) from None
        if not name.replace("-", "").replace("_", "").isalnum() or not words or name in servers:
            raise click.BadParameter(f"{value!r} is not NAME=COMMAND, each name once", ctx)
        servers[name] = words
    return servers


@command(
    "router",
    examples=[
        "capdex router",
        "capdex router --skills ~/.skills --mcp 'files=mcp-server-filesystem /srv'",
    ],
)
@click.option(
    "--mcp", "servers", multiple=True, metavar="NAME=COMMAND", callback=_servers,
    help="Offer the tools of another MCP server, too.",
)  # fmt: skip
@click.option("--skills", multiple=True, type=_FOLDER, help="Offer a folder of Agent Skills, too.")
@click.option(
    "--socket", "socket_path", metavar="PATH", type=click.Path(path_type=Path),
    help="Serve CAP and CMP to programs on this Unix socket, too.",
)  # fmt: skip
@click.option(
    "--work", metavar="DIR", type=_FOLDER, default=".",
    help="The directory that learned programs see.",
)  # fmt: skip
@click.option(
    "--confirm", type=click.Choice(["human", "caller"]), default="human",
    help="Who agrees to commands on the socket: a person, by `capdex grant`, or its caller.",
)  # fmt: skip
@click.option(
    "--at", "at", multiple=True, metavar="NAME=URL", callback=addresses,
    help="Reach an origin (https://…) or a DID at this URL.",
)  # fmt: skip
def router_command(
    app: App,
    servers: dict[str, list[str]],
    skills: tuple[Path, ...],
    socket_path: Path | None,
    at: dict[str, str],
    work: Path,
    confirm: str,
) -> int:
    """Offer capabilities to an agent: an MCP server over stdin and stdout.

    It offers what capdex.lock lists, and notices when that changes, by five tools, however many
    capabilities there are: find, describe, call, route, manage.
    """
    from capdex.net.stdio import Stdio
    from capdex_cli.terminal.errors import show
    from capdex_router.faces.tools import INTRODUCTION

    stdio = Stdio(INTRODUCTION)

    async def serve() -> None:
        import asyncio

        from mcp.client.stdio import StdioServerParameters

        from capdex_cli.terminal import logs
        from capdex_cli.views.installing import open_agent
        from capdex_router.bindings.egress import Egress
        from capdex_router.commands.cmp import Cmp
        from capdex_router.faces.cap import Cap
        from capdex_router.faces.server import serve_stdio
        from capdex_router.faces.socket import serving

        # Hosts that wait no longer for a call terminate the router, and servers end with it.
        if task := asyncio.current_task():
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        logs.set_up("logfmt")  # to stderr: stdout is the MCP transport
        started = {
            name: StdioServerParameters(command=words[0], args=words[1:])
            for name, words in servers.items()
        }
        egress = Egress(addresses=at)
        async with AsyncExitStack() as stack:
            agent = await stack.enter_async_context(
                open_agent(app, servers=started, folders=skills, egress=egress, work=work)
            )
            if socket_path:
                runtime = agent.runtime
                methods = Cap(runtime.catalog, runtime.invoker).methods
                cmp = Cmp(
                    runtime.learned.tools,
                    runtime.catalog.latest,
                    runtime.invoker.invoke,
                    caller_agrees=confirm == "caller",
                )
                await stack.enter_async_context(serving(socket_path, methods, cmp.answer))
            await serve_stdio(agent.actions, stdio)

    try:
        if socket_path:  # its programs send nothing over stdin
            app.run(serve())
            return 0
        return stdio.run(lambda: app.run(serve()), lambda error: show(error, app.output))
    except BaseException as error:
        from asyncio import CancelledError  # loaded where it was raised; not for each start

        if not isinstance(error, CancelledError):
            raise
        return 128 + signal.SIGTERM
