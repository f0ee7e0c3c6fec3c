"""`capdex add-to`: the router in the configuration of an agent's host, and out of it again."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from capdex.errors import Code, UsageError
from cli.terminal.app import App
from cli.terminal.click_commands import command
from cli.terminal.prompt import confirm
from cli.terminal.text import safe

if TYPE_CHECKING:
    from router.faces.hosts.edit import Edit
    from router.faces.hosts.table import Host, Scope

NAMES = ("claude", "cursor", "vscode", "zed", "codex", "gemini")


@command(
    "add-to",
    examples=[
        "capdex add-to claude",
        "capdex add-to vscode --scope project",
        "capdex add-to zed --remove",
        "capdex add-to",
    ],
)
@click.argument("host", required=False, type=click.Choice(NAMES), metavar="[HOST]")
@click.option(
    "--scope", type=click.Choice(["user", "project"]), default="user",
    help="For all your projects, or for the current directory and whoever shares it.",
)  # fmt: skip
@click.option("--remove", is_flag=True, help="Remove the router.")
@click.option("--dry-run", is_flag=True, help="Show the plan and stop.")
def add_to_command(app: App, host: str | None, scope: Scope, remove: bool, dry_run: bool) -> None:
    """Add the router to an agent's host: claude, cursor, vscode, zed, codex, gemini.

    The host's configuration file gets one more MCP server, `capdex`; everything else in it, its
    comments too, stays as it is, and a copy is kept. Without a host all are listed.
    """
    from cli.config.settings import user_directories
    from router.faces.hosts.edit import adding, removing, write
    from router.faces.hosts.table import HOSTS

    if host is None:
        _list(app, scope)
        return
    found = HOSTS[host]
    file = _file(found, scope)
    edit = removing(found, file) if remove else adding(found, file, _entry(scope))
    value: dict[str, Any] = {"host": host, "scope": scope, "file": str(file)}
    value |= {"action": edit.action, "backup": None}
    if edit.action == "unchanged":
        known = "has no router" if remove else "has the router already"
        app.output.result("host", value, human=[f"{safe(file)} {known}"])
        return
    _show(app, edit)
    if dry_run:
        value["action"] = "planned"
        app.output.result("host", value, human=["nothing was changed"])
        return
    confirm(app, "Change it?")
    backup = write(edit, user_directories().state / "backups")
    value["backup"] = backup and str(backup)
    human = [f"{edit.action}; start {found.title} again to see it"]
    if found.note and not remove:
        human.append(found.note)
    if backup is not None:
        human.append(f"as it was: {safe(backup)}")
    app.output.result("host", value, human=human)


def _file(host: Host, scope: Scope) -> Path:
    return host.file(
        scope,
        home=Path.home(),
        project=Path.cwd(),
        environ=os.environ,
        mac=sys.platform == "darwin",
    )


def _entry(scope: Scope) -> dict[str, Any]:
    """Return the command of the router. A host on a desktop does not have the shell's PATH."""
    if scope == "project":  # whoever shares the project has it elsewhere
        return {"command": "capdex", "args": ["router"]}
    beside = Path(sys.executable).with_name("capdex")
    program = str(beside) if beside.is_file() else shutil.which("capdex")
    if program is None:
        raise UsageError(
            "the program capdex is not on the PATH", Code.CONFIG, fix="install it, then run this"
        )
    entry: dict[str, Any] = {"command": program, "args": ["router"]}
    home = os.environ.get("CAPDEX_HOME")
    return {**entry, "env": {"CAPDEX_HOME": str(Path(home).absolute())}} if home else entry


def _show(app: App, edit: Edit) -> None:
    app.output.say(f"{safe(edit.file)}{'' if edit.before is not None else ' (new)'}")
    for mark, entry in (("-", edit.known), ("+", edit.wanted)):
        if entry is not None:
            app.output.say(f"  {mark} capdex: {safe(json.dumps(entry, ensure_ascii=False))}")


def _list(app: App, scope: Scope) -> None:
    from capdex.errors import CapdexError
    from router.faces.hosts.edit import removing
    from router.faces.hosts.table import HOSTS

    values = []
    for host in HOSTS.values():
        file = _file(host, scope)
        try:
            state = "added" if removing(host, file).known is not None else "not added"
        except CapdexError as error:
            state = error.line
        values.append({"host": host.name, "title": host.title, "file": str(file), "state": state})
    human = [(x["host"], x["state"], x["file"]) for x in values]
    app.output.results("host", values, human=[tuple(map(safe, row)) for row in human])
