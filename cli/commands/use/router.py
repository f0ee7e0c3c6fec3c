"""`capdex router`: one MCP server over stdin and stdout for all that an agent may use."""

from __future__ import annotations

import shlex
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.terminal.app import App
from cli.terminal.click_commands import DIRECTORY, command

if TYPE_CHECKING:
    from mcp.client.stdio import StdioServerParameters


def _servers(
    ctx: click.Context, _: click.Parameter, values: tuple[str, ...]
) -> dict[str, list[str]]:
    """Return the command of each server by its name."""
    found: dict[str, list[str]] = {}
    for value in values:
        name, _separator, text = value.partition("=")
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise click.BadParameter(f"{value!r}: {error}", ctx) from None
        if not name.replace("-", "").replace("_", "").isalnum() or not words or name in found:
            raise click.BadParameter(f"{value!r} is not NAME=COMMAND, each name once", ctx)
        found[name] = words
    return found


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
@click.option(
    "--skills", multiple=True, type=DIRECTORY, help="Offer a folder of Agent Skills, too."
)
@click.option(
    "--socket", "socket_path", metavar="PATH", type=click.Path(path_type=Path),
    help="Serve CAP to programs on this Unix socket, too.",
)  # fmt: skip
def router_command(
    app: App, servers: dict[str, list[str]], skills: tuple[Path, ...], socket_path: Path | None
) -> None:
    """Offer capabilities to an agent: an MCP server over stdin and stdout.

    It has five tools, however many capabilities there are: find, describe, call, route, manage.
    """
    from mcp.client.stdio import StdioServerParameters

    from cli.terminal import logs

    logs.set_up("logfmt")  # to stderr: stdout is the MCP transport
    started = {
        name: StdioServerParameters(command=words[0], args=words[1:])
        for name, words in servers.items()
    }
    app.run(_serve(started, skills, socket_path))


async def _serve(
    servers: dict[str, StdioServerParameters], skills: tuple[Path, ...], socket_path: Path | None
) -> None:
    from cli.config.settings import user_directories
    from router.faces.actions import Actions
    from router.faces.cap import Cap, methods
    from router.faces.server import serve_stdio
    from router.faces.socket import serving
    from router.runtime.opened import Mounts, opened
    from router.runtime.session import Session

    directory = user_directories().data / "router"
    async with opened(directory, mounts=Mounts(servers, skills)) as runtime:
        cap = Cap(runtime.catalog, runtime.invoker)
        async with serving(socket_path, methods(cap)) if socket_path else nullcontext():
            session = Session(runtime.catalog)
            await serve_stdio(
                Actions(runtime.catalog, runtime.search, runtime.invoker, runtime.results, session)
            )
