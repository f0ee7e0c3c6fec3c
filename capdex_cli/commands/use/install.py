"""`capdex install`, `upgrade`, `remove`, `sync`, `installed` and `audit`: packages of this user."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from capdex.errors import CapdexError, Code, UsageError, VerificationFailure
from capdex.uri import PREFIX
from capdex_cli.config.completion_cache import complete, remember
from capdex_cli.terminal.app import App
from capdex_cli.terminal.click_commands import TEXT, command
from capdex_cli.terminal.errors import exit_code, worst
from capdex_cli.terminal.output import Format
from capdex_cli.terminal.prompt import confirm
from capdex_cli.terminal.status_line import StatusLine
from capdex_cli.terminal.text import number_of, safe
from capdex_cli.views.installing import (
    Terminal,
    chosen_candidate,
    open_installer,
    outcome_json,
    outcome_row,
    router_home,
    show_proposal,
)

if TYPE_CHECKING:
    from capdex_router.install.installer import Installer
    from capdex_router.install.outcome import InstallOutcome

SIGNER = click.option(
    "--allow-signer-change", is_flag=True, help="Accept a version that another key signed."
)


@command(
    "install",
    examples=[
        "capdex install weather",
        "capdex install 'did:nuwa:cap:weather@^1.2' --dry-run",
        "capdex install 'the weather in norwegian'",
        "capdex install pdf-forms --to claude --to codex --user",
    ],
)
@click.argument(
    "targets", metavar="CAPABILITY...", nargs=-1, required=True, type=TEXT, shell_complete=complete
)
@click.option(
    "--to", multiple=True, metavar="HOST|DIR",
    help="Write it as a skill for claude, codex, gemini, cursor, copilot or agents, or into DIR.",
)  # fmt: skip
@click.option("--user", is_flag=True, help="With --to HOST: for all projects of this user.")
@click.option("--dry-run", "--plan", is_flag=True, help="Show the whole question, and stop.")
@SIGNER
def install_command(
    app: App,
    targets: tuple[str, ...],
    to: tuple[str, ...],
    user: bool,
    dry_run: bool,
    allow_signer_change: bool,
) -> None:
    """Install capabilities for the agents of this machine.

    CAPABILITY is a name, a URI with a version or range, or a wish in words. The nodes of the
    network are asked and compared, the package is verified, and what it may do is shown: you are
    asked once. It is noted in capdex.lock, and a running capdex router offers it at once.

    With --to, SKILL.md and the files of the package are written where a host looks for skills: in
    this project, or with --user for all of them. capdex runs none of these files.
    """
    if user and not to:
        raise UsageError("--user needs --to", fix="name a host: --to claude")
    from capdex_router.install.outcome import InstallOutcome
    from capdex_router.install.wish import choose
    from capdex_router.skills.places import folder_of

    async def install(target: str) -> InstallOutcome:
        with StatusLine(app.output) as status:
            status.show(f"asking about {safe(target)}")
            try:
                uri = await choose(
                    target, installer.config, installer.audit.write, certain=app.options.yes
                )
            except CapdexError as error:
                status.clear()
                if (name := chosen_candidate(app, error)) is None:
                    raise
                uri = await choose(name, installer.config)
            place = partial(folder_of, user=user, project=Path.cwd(), environ=os.environ)
            folders = [str(place(host, uri.name)) for host in to]
            plan = await installer.plan(
                uri, allow_signer_change=allow_signer_change, folders=folders
            )
        if not dry_run and not plan.asks:  # a question has them, too
            for warning in plan.release.warnings:
                app.output.warn(safe(warning))
        if dry_run:
            show_proposal(app, plan.proposal())
            return InstallOutcome(plan.entry.name, "planned", plan.entry, plan.old, plan)
        return await installer.carry_out(plan, Terminal(app))

    done: list[InstallOutcome] = []
    with open_installer(app) as installer:
        try:
            for target in targets:
                done.append(app.run(install(target)))  # noqa: PERF401 - kept if a later one fails
        finally:  # what was installed before an error is told, too
            if done:
                _show(app, "install", done)


@command(
    "upgrade",
    examples=[
        "capdex upgrade --preview",
        "capdex upgrade weather",
        "capdex upgrade weather --allow-signer-change",
    ],
)
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete)
@click.option("--preview", is_flag=True, help="Show what would change, and stop.")
@SIGNER
async def upgrade_command(
    app: App, names: tuple[str, ...], preview: bool, allow_signer_change: bool
) -> int:
    """Upgrade installed capabilities to the newest versions that were asked for.

    Shows how permissions, hosts, tools and prompt change. You are asked again only if a version may
    do more than the installed one, tells a model something else, or is an older one. A version that
    another key signed is refused.
    """
    with open_installer(app) as installer:
        with StatusLine(app.output) as status:
            status.show("asking for newer versions")
            outcomes = await installer.upgrades(names, allow_signer_change=allow_signer_change)
        done = [await _upgrade(app, installer, outcome, preview) for outcome in outcomes]
    return _show(app, "upgrade", done)


async def _upgrade(
    app: App, installer: Installer, outcome: InstallOutcome, preview: bool
) -> InstallOutcome:
    plan = outcome.plan
    if plan is None:
        return outcome
    if outcome.status == "unchanged" and not plan.same:
        app.output.warn(
            f"the newest {safe(outcome.name)} that the nodes know is "
            f"{safe(plan.entry.version)}, which is older than what is installed: that may "
            f"be yanked, as capdex show {safe(outcome.name)} tells"
        )
        return replace(outcome, plan=None)
    if plan.same and plan.fresh:
        what = f"{safe(outcome.name)} {safe(plan.entry.version)}"
        app.output.warn(f"nobody agreed to {what} on this machine: capdex sync asks about it")
    if preview or plan.same or not plan.asks:
        for warning in plan.release.warnings:
            app.output.warn(safe(warning))
        for line in dict.fromkeys((*plan.widened, *(x.message for x in plan.changes))):
            app.output.say(f"  {safe(outcome.name)}: {safe(line)}")
    if preview or plan.same:
        return outcome if plan.same else replace(outcome, status="planned")
    try:
        return await installer.carry_out(plan, Terminal(app))
    except CapdexError as error:
        return replace(outcome, status="failed", error=error)


@command("remove", examples=["capdex remove weather", "capdex remove weather --purge-state"])
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=complete)
@click.option("--purge-state", is_flag=True, help="Remove the objects that they keep, too.")
def remove_command(app: App, names: tuple[str, ...], purge_state: bool) -> None:
    """Remove installed capabilities and the rights that were granted to them.

    Files that `install --to` wrote are removed, if nobody has changed them. The objects that they
    keep stay until --purge-state is given, which also takes names that were removed before.
    """
    with open_installer(app) as installer:
        left = _left(installer, names) if purge_state else []
        listed = [name for name in names if _owner(name) not in left]
        # What is not installed is said before anything is asked.
        agreed = {x.name: installer.is_agreed(x) for x in map(installer.entry, listed)}
        if purge_state:
            confirm(app, f"Remove {safe(', '.join(names))} with all objects, for good?")
        gone = installer.remove(listed) if listed else []
        if purge_state:
            from capdex_router.state.store import ObjectStore

            with ObjectStore(router_home().state) as store:
                purged = sum(map(store.drop, [*(_owner(entry.name) for entry in gone), *left]))
    values = [{"name": entry.name, "version": entry.version} for entry in gone]
    human = [(app.output.out.mark("ok"), x.name, x.version, "removed") for x in gone]
    for name, folder in ((x.name, at) for x in gone for at in x.folders if os.path.lexists(at)):
        why = "it has files that capdex did not write, or its line in capdex.lock was edited"
        if not agreed[name]:
            why = f"what was granted to {name} was taken back, and the folder with it; delete it"
        app.output.warn(f"{safe(folder)} stays: {why}")
    if purge_state:
        app.output.say(f"{number_of(purged, 'object')} removed")
    app.output.results("remove", values, human=human, plain=[entry.name for entry in gone])


def _left(installer: Installer, names: tuple[str, ...]) -> list[str]:
    """Return the URIs of those that are not installed any more and have objects here."""
    installed = set(map(_owner, installer.lock.packages))
    return [x for x in map(_owner, names) if x not in installed and installer.kept(x)]


def _owner(name: str) -> str:
    return f"{PREFIX}{name.removeprefix(PREFIX)}"


@command("sync", examples=["capdex sync", "capdex sync --check", "capdex sync --frozen --yes"])
@click.option("--check", "only_check", is_flag=True, help="Compare only; exit 1 if they differ.")
@click.option("--frozen", is_flag=True, help="Never change capdex.lock; refuse if that is needed.")
def sync_command(app: App, only_check: bool, frozen: bool) -> int:
    """Bring this machine to what capdex.lock lists.

    What you agreed to on this machine is verified, and fetched if it is missing. Every other line
    is resolved like an installation: the nodes (and the chain, with a trusted endpoint) must know
    the release as the line has it, and you are asked about each package. A line that fails, such as
    one whose storage proof does not hold, is told and has no effect on others. Folders of skills
    are compared file by file, and written anew if they differ; what was written beside capdex.lock
    and is not in it any more is taken away, but for files that somebody edited or added.
    """
    from capdex_router.install.sync import check, drift, sync

    with open_installer(app) as installer:
        if only_check:
            with StatusLine(app.output) as line:
                problems = check(installer, partial(line.count, "packages"))
            if problems:
                raise drift(problems)
            plain = [f"{x.name}@{x.version}" for x in installer.lock.packages.values()]
            human = [f"{number_of(len(plain), 'package')} as the lock file says"]
            app.output.result("sync", {"packages": len(plain)}, human=human, plain=plain)
            return 0
        outcomes = app.run(sync(installer, Terminal(app), frozen=frozen))
    return _show(app, "sync", outcomes)


@command("installed", examples=["capdex installed", "capdex installed --json"])
def installed_command(app: App) -> None:
    """List what is installed."""
    with open_installer(app) as installer:
        entries = sorted(installer.lock.packages.values(), key=lambda entry: entry.name)
        values = [x.to_json() | {"standing": installer.standing(x)} for x in entries]
    for unverified in (x for x in values if x["standing"] != "ready"):
        unverified["verdict"] = None
    human = [
        (safe(x["name"]), safe(x["version"]), f"asked for: {safe(x['request'] or 'any')}",
         x["standing"], safe(", ".join((*x["permissions"], *x["hosts"], *x.get("folders", ())))))
        for x in values
    ]  # fmt: skip
    plain = [f"{x['name']}@{x['version']}" for x in values]
    app.output.results("installed", values, human=human, plain=plain)
    if not values:
        app.output.say("nothing is installed")


@command("audit", examples=["capdex audit", "capdex audit --last 100 --json"])
@click.option(
    "--last", type=click.IntRange(0, 100_000), default=20, help="Number of lines to show."
)
def audit_command(app: App, last: int) -> None:
    """Check the audit log of the router, and show its last lines.

    Each decision, installation and call is a line that carries the hash of the line before.
    """
    from capdex_router.home.audit_log import tail, verify

    path = router_home().audit
    report = verify(path)
    lines = tail(path, last)
    human = [
        (safe(x.get("at", "")), safe(x.get("event", "")), safe(x.get("capability_id", "")), _how(x))
        for x in lines
    ]
    plain = [" ".join(filter(None, row)) for row in human]
    about = {"lines": report.lines, "broken": report.broken}
    app.output.results("audit", lines, human=human, plain=plain, **about)
    if report.broken is not None:
        raise VerificationFailure(
            f"the audit log was changed at line {report.broken}, or just before it",
            Code.BAD_PROOF,
            why="the line does not carry the hash of the line before it",
            fix=f"keep a copy of {path}, and find out who changed it",
        )
    told = f"{number_of(report.lines, 'line')}, each with the hash of the one before"
    app.output.say(app.output.err.dim(told))


def _how(line: dict[str, Any]) -> str:
    if isinstance(ok := line.get("ok"), bool):
        return "ok" if ok else "failed"
    if isinstance(agreed := line.get("agreed"), bool):
        return "agreed" if agreed else "refused"
    return safe(line.get("version", ""))


def _show(app: App, what: str, outcomes: list[InstallOutcome]) -> int:
    """Show what became of each capability; return the exit code of what failed."""
    for line in (line for outcome in outcomes for line in outcome.lost):
        app.output.warn(safe(line))
    values = [outcome_json(outcome) for outcome in outcomes]
    human = [outcome_row(app, outcome) for outcome in outcomes]
    plain = [f"{x.name}@{x.entry.version}" for x in outcomes if x.entry and not x.error]
    remember(plain)
    app.output.results(what, values, human=human, plain=plain)
    if not outcomes:
        app.output.say("nothing is installed")
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    for x in outcomes if app.output.format is Format.PLAIN else ():
        if x.error is not None:  # the other formats have it on stdout
            app.output.warn(f"{safe(x.name)}: {safe(x.error.line)}")
    for fix in dict.fromkeys(error.fix for error in errors if error.fix):
        app.output.say(f"  fix: {safe(fix)}")
    return worst(map(exit_code, errors))
