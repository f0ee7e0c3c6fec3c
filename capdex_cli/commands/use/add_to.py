"""`capdex add-to`: the router in the configuration of an agent's host, and out of it again."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from capdex.errors import CapdexError, Code, UsageError
from capdex_cli.config.load import CARRIED, variables
from capdex_cli.config.settings import user_directories
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import command
from capdex_cli.terminal.prompt import confirm
from capdex_cli.terminal.text import safe, without_secrets
from capdex_router.faces.hosts.table import ALIASES, HOSTS

if TYPE_CHECKING:
    from capdex_router.faces.hosts.edit import Edit
    from capdex_router.faces.hosts.table import Host, Scope


@command(
    "add-to",
    examples=[
        "capdex add-to claude",
        "capdex add-to goose --network base",
        "capdex add-to vscode --scope project",
        "capdex add-to cursor --via uvx",
        "capdex add-to zed --remove",
        "capdex add-to",
    ],
)
@click.argument("host", required=False, type=click.Choice([*HOSTS, *ALIASES]), metavar="[HOST]")
@click.option(
    "--scope", type=click.Choice(["user", "project"]), default="user",
    help="For all your projects, or for the current directory and whoever shares it.",
)  # fmt: skip
@click.option(
    "--via", type=click.Choice(["uvx"]),
    help="Let the host start `uvx capdex router`, in an environment that uv keeps.",
)  # fmt: skip
@click.option("--remove", is_flag=True, help="Remove the router.")
@click.option("--dry-run", is_flag=True, help="Show the plan and stop.")
def add_to_command(
    app: App, host: str | None, scope: Scope, via: str | None, remove: bool, dry_run: bool
) -> None:
    """Add the router to an agent's host, as Claude Code, Codex, Cursor or VS Code.

    The host's configuration file gets one more MCP server, `capdex`; everything else in it, its
    comments too, stays as it is, and a copy is kept. The server is this user's, and uses the
    network that is chosen here, wherever the host starts it. Without a host, all that have a
    file of the scope are listed.

    Hosts: claude (Claude Code), claude-desktop, codex, gemini, cursor, vscode, zed, opencode,
    goose, windsurf, jetbrains (Junie), amp, copilot, cline, roo, continue, kiro, lm-studio, qwen.
    """
    from capdex_router.faces.hosts.edit import adding, removing, write

    if host is None:
        _list(app, scope)
        return
    target = HOSTS[ALIASES.get(host, host)]
    file = _file(target, scope)
    if file is None:
        other = "project" if scope == "user" else "user"
        raise UsageError(
            f"{target.title} has no file of a {scope}", fix=f"run it with --scope {other}"
        )
    edit = (
        removing(target, file) if remove else adding(target, file, _entry(app, scope, via), CARRIED)
    )
    value: dict[str, Any] = {"host": target.name, "scope": scope, "file": str(file)}
    value |= {"action": edit.action, "backup": None}
    then: list[str] = []
    if not remove:
        asks = [x for x in (target.asks, target.asks_project if scope == "project" else "") if x]
        node = _shown(app.settings.network.mcp_url) if app.settings.network else ""
        value |= {"asks": asks, "check": target.check, "node": node or None}
        then = [*asks, f"look at it by: {target.check}", _asked(node, scope)]
    if edit.action == "unchanged":
        known = "has no router" if remove else "has the router already"
        app.output.result("host", value, human=[f"{safe(file)} {known}", *then], plain=[file])
        return
    _show(app, edit)
    if dry_run:
        value["action"] = "planned"
        app.output.result("host", value, human=["nothing was changed"], plain=[file])
        return
    confirm(app, "Change it?")
    backup = write(edit, user_directories().state / "backups", private=scope == "user")
    value["backup"] = backup and str(backup)
    human = [f"{edit.action}; start {target.title} again to see it", *then]
    if backup is not None:
        human.append(f"as it was: {safe(backup)}")
    app.output.result("host", value, human=human, plain=[file])


def _file(host: Host, scope: Scope) -> Path | None:
    here, mac = Path.cwd(), sys.platform == "darwin"
    return host.file(scope, home=Path.home(), project=here, environ=os.environ, mac=mac)


def _entry(app: App, scope: Scope, via: str | None) -> dict[str, Any]:
    """Return the command of the router, which a host starts anywhere, without the shell's PATH."""
    name = [] if via is None else ["capdex"]
    args = [*name, "router"]
    if scope == "project":  # whoever shares the project has it elsewhere
        return {"command": via or "capdex", "args": args}
    beside = Path(sys.executable).with_name("capdex")
    own = str(beside) if via is None and beside.is_file() else None
    program = own or shutil.which(via or "capdex")
    if program is None:
        fix = "install uv, or leave out --via uvx" if via else "install it, then run this"
        raise UsageError(f"the program {via or 'capdex'} is not on the PATH", Code.CONFIG, fix=fix)
    # Its file alone: the capdex.toml of the project that a host opens may name a stranger's node.
    args = [*name, "--config", str(user_directories().config_file), "router"]
    env = variables(app.settings)
    return {"command": str(Path(program).absolute()), "args": args, "env": env}


def _asked(node: str, scope: Scope) -> str:
    if scope == "project":
        return "it uses the network of whoever starts it there"
    if node:
        return f"find asks {safe(node)}"
    return "find asks no node: no network is chosen here; run `capdex up`, or choose one, then this"


def _show(app: App, edit: Edit) -> None:
    app.output.say(f"{safe(edit.file.resolve())}{'' if edit.before is not None else ' (new)'}")
    for mark, entry in (("-", edit.known), ("+", edit.wanted)):
        if entry is not None:
            text = json.dumps(_shown(entry), ensure_ascii=False)
            app.output.say(f"  {mark} capdex: {safe(text)}")


def _shown(value: object) -> Any:
    if isinstance(value, dict):
        return {key: _shown(inner) for key, inner in value.items()}
    return without_secrets(value)


def _list(app: App, scope: Scope) -> None:
    from capdex_router.faces.hosts.edit import removing

    values = []
    for host in HOSTS.values():
        file = _file(host, scope)
        if file is None:
            continue
        try:
            state = "added" if removing(host, file).known is not None else "not added"
        except CapdexError as error:
            state = error.line
        values.append({"host": host.name, "title": host.title, "file": str(file), "state": state})
    human = [tuple(map(safe, (x["host"], x["state"], x["file"]))) for x in values]
    app.output.results("host", values, human=human, plain=[x["host"] for x in values])
