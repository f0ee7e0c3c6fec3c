"""`capdex learn`: command-line programs as tools of the agent, listed and forgotten."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from capdex.errors import UsageError
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import command
from capdex_cli.terminal.prompt import confirm
from capdex_cli.terminal.text import safe
from capdex_cli.views.installing import router_home, show_proposal

if TYPE_CHECKING:
    from capdex_router.commands.intents.manifest import CommandTool
    from capdex_router.commands.learned import Learned

EXISTING = click.Path(exists=True, path_type=Path)


@command(
    "learn",
    examples=[
        "capdex learn rg",
        "capdex learn",
        "capdex learn ./inbox --intents ./inbox-cmp --writable",
        "capdex learn rg --remove",
    ],
)
@click.argument("program", required=False)
@click.option(
    "--intents", metavar="PATH", type=EXISTING,
    help="An adapter's file, or a folder with manifest.json and capability.json.",
)  # fmt: skip
@click.option("--writable", is_flag=True, help="Let it change files in the work directory.")
@click.option(
    "--read", "readable", metavar="DIR", multiple=True, type=EXISTING,
    help="Let it read this directory, too.",
)  # fmt: skip
@click.option("--remove", is_flag=True, help="Remove the program.")
@click.option("--dry-run", is_flag=True, help="Show the plan and stop.")
def learn_command(
    app: App,
    program: str | None,
    intents: Path | None,
    writable: bool,
    readable: tuple[Path, ...],
    remove: bool,
    dry_run: bool,
) -> None:
    """Make a command-line program a tool of the agent, or list what is learned.

    Its help is read and its commands are tried in a sandbox, without a network. When an agent calls
    it, it sees the work directory of the router, and what --read names. You are asked about each
    call, but for commands that are said to read only.
    """
    from capdex_router.commands.learning import Learning
    from capdex_router.commands.store import LearnedStore
    from capdex_router.home.audit_log import AuditLog
    from capdex_router.policy.grant_file import GrantFile

    home = router_home()
    store = LearnedStore(home.learned)
    if program is None:
        if remove or intents:
            raise UsageError("a program must be named", fix="capdex learn PROGRAM")
        _list(app, list(store.all().values()))
        return
    with AuditLog(home.audit) as audit:
        learning = Learning(store, grants=GrantFile(home.grants), audit=audit)
        if remove:
            learned = learning.forget(program)
            _show(app, learned, "removed", [f"{safe(learned.tool.manifest.name)} is forgotten"])
            return
        adapter = _adapter(intents) if intents else None
        visible = [path.resolve() for path in readable]
        work = learning.study(program, adapter, writable=writable, readable=visible)
        learned = app.run(work)
        if learning.is_known(learned):
            known = f"{safe(learned.tool.manifest.name)} is learned already"
            _show(app, learned, "unchanged", [known])
            return
        show_proposal(app, learning.proposal(learned))
        if dry_run:
            _show(app, learned, "planned", ["nothing was changed"])
            return
        confirm(app, "Learn it?")
        learning.keep(learned)
    human = [f"learned; call it as {call['capability_id']}" for call in _calls(learned)]
    _show(app, learned, "learned", human)


def _show(app: App, learned: Learned, action: str, human: list[str]) -> None:
    plain = [learned.tool.manifest.name]
    app.output.result("learned", _value(learned, action), human=human, plain=plain)


def _adapter(path: Path) -> CommandTool:
    """Read the intents of a program, from an adapter's file or a CMP folder."""
    from capdex.net.files import read_bounded
    from capdex_router.commands.adapters import parse
    from capdex_router.commands.intents.manifest import MAX_FILE_BYTES

    files = [path / "manifest.json", path / "capability.json"] if path.is_dir() else [path]
    for file in files:
        if not file.is_file():
            raise UsageError(f"{file} is not a file")
    return parse(*(read_bounded(file, MAX_FILE_BYTES) or b"" for file in files))


def _list(app: App, learned: list[Learned]) -> None:
    values = [_value(tool, "listed") for tool in learned]
    rows = [(x["tool"], x["version"], x["program"], len(x["calls"])) for x in values]
    human = [tuple(map(safe, row)) for row in rows]
    plain = [x["tool"] for x in values]
    app.output.results("learned", values, human=human or ["nothing is learned"], plain=plain)


def _value(learned: Learned, action: str) -> dict[str, Any]:
    return {
        "action": action,
        "tool": learned.tool.manifest.name,
        "version": learned.tool.manifest.version,
        "program": str(learned.program),
        "sha256": learned.digest,
        "writable": learned.writable,
        "readable": [str(path) for path in learned.readable],
        "calls": _calls(learned),
    }


def _calls(learned: Learned) -> list[dict[str, Any]]:
    from capdex_router.commands.intents.match import is_guarded
    from capdex_router.commands.source import refs

    return [
        {
            "capability_id": ref.capability_id,
            "patterns": list(intent.patterns),
            "command": intent.template.text,
            "asks": is_guarded(intent),
        }
        for intent, ref in zip(learned.tool.intents, refs(learned.tool), strict=True)
    ]
