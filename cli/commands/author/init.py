"""`capdex init`: a first package, by a few questions or by options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from capdex.errors import Code, Refused, UsageError
from capdex.uri import check_name
from cli.terminal.app import App
from cli.terminal.click_commands import FILE, command
from cli.terminal.text import safe


@command(
    "init",
    examples=[
        "capdex init",
        "capdex init weather --description 'Tells the weather of a city.' --keyword forecast",
    ],
)
@click.argument("name", required=False)
@click.option("--title", metavar="TEXT", help="What people call it.")
@click.option("--description", metavar="TEXT", help="What it does, in a sentence or two.")
@click.option("--summary", metavar="TEXT", help="The same in 120 characters.")
@click.option(
    "--keyword", "keywords", multiple=True, metavar="TEXT", help="A word that should bring it up."
)
@click.option("--tag", "tags", multiple=True, metavar="TEXT", help="A tag.")
@click.option("--domain", metavar="TEXT", help="Its domain, like weather or productivity.")
@click.option("--license", metavar="SPDX", help="Its licence, like Apache-2.0.")
@click.option(
    "--kind", type=click.Choice(["tool", "prompt"]), default="tool",
    help="A prompt and a tool that calls a service, or a prompt alone.",
)  # fmt: skip
@click.option("--out", type=FILE, metavar="FILE", help="[default: NAME.acp.yaml]")
def init_command(
    app: App,
    name: str | None,
    title: str | None,
    description: str | None,
    kind: str,
    out: Path | None,
    **more: Any,
) -> None:
    """Start a capability package.

    On a terminal it asks for what no option says. A file that exists is never overwritten.
    """
    from publisher.authoring.scaffold import PackageKind, scaffold

    if name is None:
        if not app.may_ask:
            raise Refused(
                "init was given no name, and there is no terminal to ask for it",
                fix="capdex init NAME --description …",
            )
        name = check_name(_ask("Name (a-z, 0-9, hyphens; can never change)"))
        title = title or _ask("Title", name.replace("-", " ").title())
        description = description or _ask("Description, in a sentence or two") or None
    path = out or Path(f"{check_name(name)}.acp.yaml")
    text = scaffold(name, title=title, description=description, kind=PackageKind(kind), **more)
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(
            f"{path} exists already", why="init never overwrites", fix="name another with --out"
        ) from None
    except OSError as error:
        raise UsageError(
            f"cannot write {path}", Code.UNREADABLE, why=error.strerror or "", fix="check the path"
        ) from None
    mark = app.output.out.mark("ok")
    human = [f"{mark} {safe(path)}", f"  edit it, then: capdex validate {safe(path)}"]
    app.output.result("package", {"file": str(path), "name": name}, human=human, plain=[path])


def _ask(question: str, default: str = "") -> str:
    answer: str = click.prompt(question, default=default, show_default=bool(default), err=True)
    return answer
